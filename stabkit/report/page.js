if (navigator.clipboard) for (const button of document.querySelectorAll("button.copy")) {
  button.hidden = false;
  button.addEventListener("click", () => navigator.clipboard.writeText(button.parentElement.querySelector("code").textContent)
    .then(() => { button.textContent = "copied"; setTimeout(() => { button.textContent = "copy"; }, 1500); }));
}
