"use strict";
// The page is whole without this: it adds copying, values under the pointer, switching methods, and downloads.
const tip = document.getElementById("tip"), off = new Set();

if (navigator.clipboard) for (const button of document.querySelectorAll("button.copy")) {
  button.hidden = false;
  button.addEventListener("click", () => navigator.clipboard.writeText(button.parentElement.querySelector("code").textContent)
    .then(() => { button.textContent = "copied"; setTimeout(() => { button.textContent = "copy"; }, 1500); }));
}

function flip(method) {
  off.has(method) ? off.delete(method) : off.add(method);
  for (const each of document.querySelectorAll("[data-method], [data-legend], [data-switch]")) {
    const own = each.dataset.method ?? each.dataset.legend ?? each.dataset.switch;
    if (own !== method) continue;
    each.classList.toggle("off", off.has(method));
    if (each.dataset.switch !== undefined) each.setAttribute("aria-pressed", String(!off.has(method)));
  }
  for (const button of document.querySelectorAll("[data-group]")) {
    const on = button.dataset.group.split(" ").some((key) => !off.has(key));
    button.classList.toggle("off", !on);
    button.setAttribute("aria-pressed", String(on));
  }
}

// Of many methods a few are in colour, and a switch brings one into it or out of it.
const lit = new Set((document.querySelector(".switches")?.dataset.lit ?? "").split(" ").filter(Boolean));

function light(method) {
  lit.has(method) ? lit.delete(method) : lit.add(method);
  const others = [...lit].map((key) => `:not([data-method="${CSS.escape(key)}"])`).join("");
  const names = ".drawing text[data-method] { opacity: 1 !important; cursor: pointer; }";
  document.getElementById("lit").textContent = lit.size ? `.drawing [data-method]${others} { opacity: 0.3; filter: grayscale(1); } ${names}` : names;
  press();
}

function press() {
  for (const each of document.querySelectorAll("[data-lit] [data-switch]")) each.setAttribute("aria-pressed", String(lit.has(each.dataset.switch)));
  for (const each of document.querySelectorAll("[data-lit] [data-group]"))
    each.setAttribute("aria-pressed", String(each.dataset.group.split(" ").every((key) => lit.has(key))));
}
press();

for (const bar of document.querySelectorAll(".switches[data-lit]")) {
  bar.hidden = false;
  for (const group of bar.querySelectorAll("[data-group]")) group.addEventListener("click", () => {
    const keys = group.dataset.group.split(" "), all = keys.every((key) => lit.has(key));
    for (const key of keys) if (lit.has(key) === all) light(key);
  });
  for (const button of bar.querySelectorAll("[data-switch]")) button.addEventListener("click", () => light(button.dataset.switch));
  for (const name of document.querySelectorAll(".drawing text[data-method]")) name.addEventListener("click", () => light(name.dataset.method));
}

for (const bar of document.querySelectorAll(".switches:not([data-lit])")) {
  bar.hidden = false;
  for (const button of bar.querySelectorAll("[data-switch]")) button.addEventListener("click", () => flip(button.dataset.switch));
  for (const button of bar.querySelectorAll("[data-group]")) button.addEventListener("click", () => {
    const keys = button.dataset.group.split(" "), some = keys.some((key) => !off.has(key));
    for (const key of keys) if (off.has(key) !== some) flip(key);
  });
}
for (const entry of document.querySelectorAll("[data-legend]")) entry.addEventListener("click", () => flip(entry.dataset.legend));

// A column head sorts the rows, best first, and once more brings the methods back into their order.
for (const table of document.querySelectorAll("table.matrix")) {
  const bodies = [...table.tBodies], rows = [...table.querySelectorAll("tbody tr")], places = rows.map((row) => row.parentElement);
  for (const button of table.querySelectorAll("button.sort")) {
    button.hidden = false;
    button.addEventListener("click", () => {
      const again = button.getAttribute("aria-pressed") === "true", column = button.parentElement.cellIndex;
      for (const each of table.querySelectorAll("button.sort")) each.setAttribute("aria-pressed", "false");
      rows.forEach((row, i) => places[i].append(row));
      if (again) return;
      button.setAttribute("aria-pressed", "true");
      const rank = (row) => Number(row.cells[column].dataset.rank.replace("inf", "Infinity"));
      bodies[0].append(...rows.filter((row) => !row.classList.contains("group")).sort((a, b) => rank(a) - rank(b)));
    });
  }
}

// Whoever follows a link into what is folded finds it open; on paper all is.
function unfold() {
  for (let each = document.getElementById(decodeURIComponent(location.hash.slice(1))); each; each = each.parentElement)
    if (each.tagName === "DETAILS") each.open = true;
}
addEventListener("hashchange", unfold);
unfold();
let folded = [];
addEventListener("beforeprint", () => {
  folded = [...document.querySelectorAll("details.fold:not([open])")];
  for (const each of folded) each.open = true;
});
addEventListener("afterprint", () => { for (const each of folded) each.open = false; });

// On a phone the panels of a picture stand below one another: each is a window onto the drawing, with the labels of its
// row's first panel where it has none of its own.
const phone = matchMedia("(max-width: 40rem)");

function windows(svg) {
  if (svg.dataset.windows) return JSON.parse(svg.dataset.windows);
  const box = svg.getBoundingClientRect(), scale = svg.viewBox.baseVal.width / box.width, wide = svg.viewBox.baseVal.width;
  const panels = [...svg.querySelectorAll("[data-panel]")].map((group, i) => {
    group.id ||= `${svg.id}-panel-${i}`;
    const [x, y, w, h] = group.dataset.panel.split(" ").map(Number);
    let [left, top, right, bottom] = [x, y, x + w, y + h];
    for (const text of group.querySelectorAll("text")) {
      const at = text.getBoundingClientRect();
      if (!at.width) continue;
      left = Math.min(left, (at.left - box.left) * scale);
      top = Math.min(top, (at.top - box.top) * scale);
      right = Math.max(right, (at.right - box.left) * scale);
      bottom = Math.max(bottom, (at.bottom - box.top) * scale);
    }
    return {x, y, w, h, id: group.id, left: Math.max(0, left - 3), top: Math.max(0, top - 3), right: Math.min(wide, right + 3), bottom: bottom + 3};
  }).sort((a, b) => (Math.abs(a.y - b.y) < 9 ? a.x - b.x : a.y - b.y));
  const whole = panels.filter((panel) => panel.w >= 60);
  for (const bar of panels.filter((panel) => panel.w < 60)) { // a scale of colours goes with the panel at its left
    const host = whole.filter((panel) => panel.x < bar.x && Math.abs(panel.y - bar.y) < 9).at(-1);
    if (host) [host.right, host.id] = [Math.max(host.right, bar.right), svg.id];
  }
  const lines = []; // what stands over a row, or is a legend of all
  for (const text of svg.querySelectorAll("text")) {
    const at = text.getBoundingClientRect();
    if (text.closest("[data-panel]") || !at.width) continue;
    const middle = [(at.left + at.right) / 2 - box.left, (at.top + at.bottom) / 2 - box.top].map((value) => value * scale);
    const around = whole.find((p) => Math.abs(middle[0] - p.x - p.w / 2) < p.w / 2 + 20 && middle[1] > p.y && middle[1] < p.y + p.h);
    if (around) { // an axis in 3-D writes outside of its group
      around.left = Math.min(around.left, Math.max(0, (at.left - box.left) * scale - 3));
      around.right = Math.max(around.right, (at.right - box.left) * scale + 3);
      around.id = svg.id;
      continue;
    }
    const top = (at.top - box.top) * scale - 2, line = lines.find((other) => Math.abs(other.top - top) < 9) ?? {top, left: wide, right: 0, bottom: 0};
    if (!lines.includes(line)) lines.push(line);
    line.left = Math.min(line.left, Math.max(0, (at.left - box.left) * scale - 20));
    line.right = Math.max(line.right, (at.right - box.left) * scale + 3);
    line.bottom = Math.max(line.bottom, (at.bottom - box.top) * scale + 2);
  }
  const heads = lines.map((line) => [line.top, [[line.left, line.top, Math.max(300, line.right - line.left), line.bottom - line.top]]]);
  return [...heads, ...whole.map((panel) => [top(panel), cuts(panel)])].sort((a, b) => a[0] - b[0]).map((each) => each[1]);

  function row(panel) {
    return whole.filter((other) => Math.abs(other.y - panel.y) < 9);
  }

  function top(panel) { // those of a row stay together
    return Math.min(...row(panel).map((other) => other.top));
  }

  function cuts(panel) {
    const [first] = row(panel), bare = panel !== first && panel.x - panel.left < 15;
    const high = panel.bottom - panel.top, own = [panel.x, panel.top, panel.right - panel.x, high, panel.id];
    if (bare) return [[first.left, panel.top, first.x - first.left, high, first.id], own];
    return [[panel.left, panel.top, panel.right - panel.left, high, panel.id]]; // its own group alone, where that is all of it
  }
}

function pile(svg) {
  const drawing = svg.parentElement, old = drawing.querySelector(".pile");
  const many = svg.dataset.windows || svg.querySelectorAll("[data-panel]").length > 1;
  if (!phone.matches || !many || !svg.id) {
    old?.remove();
    drawing.classList.remove("piled");
    return;
  }
  if (old || !svg.getBoundingClientRect().width) return;
  const made = document.createElement("div");
  made.className = "pile";
  made.setAttribute("aria-hidden", "true");
  for (const cuts of windows(svg)) {
    const wide = cuts.reduce((sum, cut) => sum + cut[2], 0), shown = draw(made, "svg", {viewBox: `0 0 ${wide} ${cuts[0][3]}`});
    let x = 0;
    for (const [left, top, w, h, id] of cuts) {
      const cut = draw(shown, "svg", {x, y: 0, width: w, height: h, viewBox: `${left} ${top} ${w} ${h}`});
      draw(cut, "use", {href: `#${id ?? svg.id}`});
      x += w;
    }
  }
  drawing.append(made);
  drawing.classList.add("piled");
}

function pileAll() {
  for (const svg of document.querySelectorAll(".drawing > svg")) pile(svg);
}
phone.addEventListener("change", pileAll);
document.addEventListener("toggle", pileAll, true);
pileAll();

const number = (value) => value !== 0 && (Math.abs(value) < 1e-3 || Math.abs(value) >= 1e5) ? value.toExponential(2) : String(value);

function nearest(curves, x, y) {
  let best = null, least = 14 * 14;
  for (const curve of curves) if (!off.has(curve.m)) for (let i = 0; i < curve.p[0].length; i += 1) {
    const far = (curve.p[0][i] - x) ** 2 + (curve.p[1][i] - y) ** 2;
    if (far < least) { least = far; best = [curve, i]; }
  }
  return best;
}

function point(svg, dot, curves, event) {
  const box = svg.getBoundingClientRect(), scale = svg.viewBox.baseVal.width / box.width;
  const found = nearest(curves, (event.clientX - box.left) * scale, (event.clientY - box.top) * scale);
  tip.hidden = !found;
  dot.setAttribute("visibility", found ? "visible" : "hidden");
  if (!found) return;
  const [curve, i] = found;
  dot.setAttribute("cx", curve.p[0][i]);
  dot.setAttribute("cy", curve.p[1][i]);
  tip.textContent = `${curve.n}\n${curve.x} ${number(curve.v[0][i])}: ${number(curve.v[1][i])}`;
  tip.style.left = `${Math.max(4, Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8))}px`;
  tip.style.top = `${Math.max(4, event.clientY - tip.offsetHeight - 12)}px`;
}

function save(name, kind, blob) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = `${name}.${kind}`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

// The picture alone; with a card also what it says and where it comes from, for those who pass it on.
function standalone(svg, card) {
  const copy = svg.cloneNode(true), box = svg.viewBox.baseVal, size = {width: box.width, height: box.height}, texts = [];
  for (const hidden of copy.querySelectorAll(".off:not([data-legend]), .dot")) hidden.remove();
  copy.setAttribute("style", "color: #000; font-family: 'DejaVu Sans', Verdana, sans-serif");
  if (card) {
    const command = document.querySelector(".command code"), lines = wrapped(card.querySelector("h3").textContent.trim(), 84);
    const source = `${document.querySelector("meta[name=generator]").content}: ${command ? command.textContent : ""}`;
    lines.forEach((line, i) => texts.push([line, 12 * (i - lines.length) + 4, 9.5, "bold"]));
    wrapped(source, 130).slice(0, 2).forEach((line, i) => texts.push([line, box.height + 8 + 8 * i, 6, "normal"]));
    size.top = 12 * lines.length + 10;
    size.height += size.top + 22;
    copy.setAttribute("viewBox", `0 ${-size.top} ${size.width} ${size.height}`);
    copy.setAttribute("height", size.height);
  }
  draw(copy, "rect", {y: -(size.top ?? 0), width: size.width, height: size.height, fill: "#fff"}, true);
  draw(copy, "style", {}, true).textContent = document.getElementById("drawn").textContent;
  for (const [line, y, high, weight] of texts)
    draw(copy, "text", {x: 6, y, "font-size": high, "font-weight": weight, fill: "#000"}).textContent = line;
  return [new Blob([new XMLSerializer().serializeToString(copy)], {type: "image/svg+xml"}), size];
}

function draw(svg, name, attributes, first) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return first ? svg.insertBefore(made, svg.firstChild) : svg.appendChild(made);
}

function wrapped(text, wide) {
  const lines = [""];
  for (const word of text.split(/\s+/)) {
    if (lines.at(-1) && lines.at(-1).length + word.length >= wide) lines.push("");
    lines.push(`${lines.pop()} ${word}`.trim());
  }
  return lines;
}

function raster(svg, card, then) {
  const [whole, box] = standalone(svg, card), picture = new Image(), url = URL.createObjectURL(whole);
  picture.addEventListener("load", () => {
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [box.width * 3, box.height * 3];
    canvas.getContext("2d").drawImage(picture, 0, 0, canvas.width, canvas.height);
    URL.revokeObjectURL(url);
    canvas.toBlob(then, "image/png");
  });
  picture.src = url;
}

const quoted = (value) => value === null ? "" : /[",\n\r]/.test(value) ? `"${String(value).replaceAll('"', '""')}"` : String(value);

function csv(table) {
  const lines = [[...table.facts, ...table.columns]];
  table.of.forEach((run, i) => lines.push([...table.runs[run], ...table.cells.map((column) => column[i])]));
  return new Blob([lines.map((line) => line.map(quoted).join(",") + "\n").join("")], {type: "text/csv"});
}

// A card's numbers are packed in it, and unpacked when they are first asked for.
async function unpacked(card) {
  const bytes = Uint8Array.from(atob(card.querySelector("script[data-packed]").textContent), (c) => c.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"))).json();
}

for (const card of document.querySelectorAll(".card")) {
  const svg = card.querySelector(".drawing svg"), dot = draw(svg, "circle", {class: "dot", r: 3.5, visibility: "hidden"});
  const name = card.querySelector("h3").id.replace("figure-", "");
  let curves = [], asked = null, last = null;
  const data = () => asked ??= unpacked(card).then((found) => { curves = found.curves; return found; });
  const at = (event) => { last = event; if (event) point(svg, dot, curves, event); };
  if ("DecompressionStream" in window) svg.addEventListener("pointerenter", () => data().then(() => at(last)), {once: true});
  svg.addEventListener("pointermove", at);
  svg.addEventListener("pointerleave", () => { last = null; tip.hidden = true; dot.setAttribute("visibility", "hidden"); });
  const get = {
    svg: () => save(name, "svg", standalone(svg)[0]),
    png: () => raster(svg, card, (blob) => save(name, "png", blob)),
    csv: () => data().then((found) => save(name, "csv", csv(found.table))),
  };
  card.querySelector(".get").hidden = false;
  for (const button of card.querySelectorAll("[data-get]")) {
    if (button.dataset.get === "csv" && !("DecompressionStream" in window)) button.remove();
    else button.addEventListener("click", get[button.dataset.get]);
  }
}
