"use strict";
// The surfaces of one row at a time, and the reader may turn them: plotly.js is unpacked when that is first asked for.
// Without this script, and on paper, all rows stand below one another.
(() => {
  const place = document.querySelector("[data-turn]");
  const svg = place?.closest("article").querySelector(".drawing svg");
  if (!svg) return;
  const rows = JSON.parse(place.querySelector("script").textContent);
  const box = svg.viewBox.baseVal, whole = [box.x, box.y, box.width, box.height].join(" "), height = box.height / rows.length;
  const buttons = [...place.querySelectorAll("[data-row]")], turner = place.querySelector("[data-start]");
  const spot = place.querySelector("[data-surfaces]"), drawing = svg.closest(".drawing");
  let chosen = 0, turning = false, ready = null;

  const show = () => {
    svg.setAttribute("viewBox", `${box.x} ${chosen * height} ${box.width} ${height}`);
    svg.removeAttribute("height");
    for (const button of buttons) button.setAttribute("aria-pressed", String(Number(button.dataset.row) === chosen));
    drawing.hidden = turning;
    spot.hidden = !turning;
    turner.setAttribute("aria-pressed", String(turning));
    if (turning) unpack().then((Plotly) => rows[chosen].surfaces.forEach((surface, i) => draw(Plotly, spot.children[i], rows[chosen], surface)));
  };

  const unpack = () => {
    if (ready) return ready;
    const bytes = Uint8Array.from(atob(document.getElementById("plotly").textContent), (c) => c.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    ready = new Response(stream).text().then((text) => {
      const script = document.createElement("script");
      script.textContent = text.replace(/^\uFEFF/, "");
      document.head.append(script);
      return window.Plotly;
    });
    return ready;
  };

  const draw = (Plotly, at, row, surface) => {
    const ink = getComputedStyle(at).color;
    const grid = ink.replace(/rgb\(([^)]+)\)/, "rgba($1, 0.2)");
    const scale = row.log ? Math.log10 : (x) => x;
    const axis = (title) => ({ title: { text: title }, color: ink, gridcolor: grid, zerolinecolor: grid, showbackground: false });
    const z = surface.loss.map((line) => line.map((x) => (x === null ? null : scale(x))));
    const range = [scale(row.low), scale(row.high)];
    at.setAttribute("aria-label", `${surface.label}, ${row.name}: the loss as a surface to turn`);
    Plotly.react(
      at,
      [{
        type: "surface", x: surface.a, y: surface.b, z, cmin: range[0], cmax: range[1], colorscale: "Cividis",
        showscale: false, customdata: surface.loss,
        hovertemplate: "a %{x:.3g}, b %{y:.3g}<br>loss %{customdata:.4g}<extra>" + surface.label + "</extra>",
        contours: { z: { show: true, color: "rgba(255,255,255,0.5)", width: 1, usecolormap: false, project: { z: false } } },
      }],
      {
        paper_bgcolor: "rgba(0,0,0,0)", margin: { l: 0, r: 0, t: 28, b: 0 }, font: { color: ink, size: 11 },
        title: { text: surface.label, x: 0.02, font: { size: 13, color: ink } },
        scene: {
          xaxis: axis("a"), yaxis: axis("b"), zaxis: { ...axis(row.log ? "log₁₀ loss" : "loss"), range },
          aspectmode: "manual", aspectratio: { x: 1, y: 1, z: 0.7 }, camera: { eye: { x: 1.3, y: -1.3, z: 0.75 } },
        },
      },
      { displayModeBar: false, responsive: true },
    );
  };

  for (const button of buttons) button.addEventListener("click", () => { chosen = Number(button.dataset.row); show(); });
  turner.addEventListener("click", () => { turning = !turning; show(); });
  turner.hidden = !(document.getElementById("plotly") && "DecompressionStream" in window && document.createElement("canvas").getContext("webgl"));
  addEventListener("beforeprint", () => { svg.setAttribute("viewBox", whole); drawing.hidden = false; });
  addEventListener("afterprint", show);
  place.hidden = false;
  show();
})();
