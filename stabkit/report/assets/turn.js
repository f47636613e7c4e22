"use strict";
// Surfaces that the reader turns. plotly.js is unpacked when the first of them comes near the window.
(() => {
  const cards = [...document.querySelectorAll("[data-turn]")];
  if (!cards.length || !("DecompressionStream" in window)) return;
  if (!document.createElement("canvas").getContext("webgl")) return; // the contours beside them are enough
  const packed = document.getElementById("plotly");
  let ready = null;

  const unpack = () => {
    if (ready) return ready;
    const bytes = Uint8Array.from(atob(packed.textContent), (c) => c.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    ready = new Response(stream).text().then((text) => {
      const script = document.createElement("script");
      script.textContent = text.replace(/^﻿/, "");
      document.head.append(script);
      return window.Plotly;
    });
    return ready;
  };

  const draw = (Plotly, place, row, surface) => {
    const ink = getComputedStyle(place).color;
    const grid = ink.replace(/rgb\(([^)]+)\)/, "rgba($1, 0.2)");
    const scale = row.log ? Math.log10 : (x) => x;
    const axis = (title) => ({ title: { text: title }, color: ink, gridcolor: grid, zerolinecolor: grid, showbackground: false });
    const z = surface.loss.map((line) => line.map((x) => (x === null ? null : scale(x))));
    const range = [scale(row.low), scale(row.high)];
    const name = row.log ? "log₁₀ loss" : "loss";
    Plotly.newPlot(
      place,
      [{
        type: "surface", x: surface.a, y: surface.b, z, cmin: range[0], cmax: range[1], colorscale: "Cividis",
        showscale: false, customdata: surface.loss,
        hovertemplate: "a %{x:.3g}, b %{y:.3g}<br>loss %{customdata:.4g}<extra>" + surface.label + "</extra>",
        contours: { z: { show: true, color: "rgba(255,255,255,0.5)", width: 1, usecolormap: false, project: { z: false } } },
      }],
      {
        paper_bgcolor: "rgba(0,0,0,0)", margin: { l: 0, r: 0, t: 28, b: 0 }, font: { color: ink, size: 11 },
        title: { text: surface.label + ", " + row.name, x: 0.02, font: { size: 13, color: ink } },
        scene: {
          xaxis: axis("a"), yaxis: axis("b"), zaxis: { ...axis(name), range },
          aspectmode: "manual", aspectratio: { x: 1, y: 1, z: 0.7 }, camera: { eye: { x: 1.3, y: -1.3, z: 0.75 } },
        },
      },
      { displaylogo: false, responsive: true, modeBarButtonsToRemove: ["resetCameraLastSave3d", "hoverClosest3d"] },
    );
  };

  const show = (card) => {
    const row = JSON.parse(card.querySelector("script").textContent);
    card.hidden = false;
    return unpack().then((Plotly) => {
      [...card.querySelectorAll("div[data-surface]")].forEach((place, i) => draw(Plotly, place, row, row.surfaces[i]));
      card.dataset.drawn = "yes";
    });
  };

  const near = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (entry.isIntersecting) {
        near.unobserve(entry.target);
        show(entry.target);
      }
    }
  }, { rootMargin: "300px" });
  for (const card of cards) {
    card.hidden = false;
    near.observe(card);
  }
})();
