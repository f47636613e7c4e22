"""A model's coordinates over its width: flat lines are what lets a rate carry over."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from stabkit.figures.drawing import style
from stabkit.figures.drawing.line_ends import label_ends
from stabkit.figures.picture import Picture, always
from stabkit.results.own.coordinates import Coordinates
from stabkit.words import short

COLUMNS = ("run", "coordinate", "label", "width", "size")
SIGNS = ("o", "s", "D", "^", "v")


def select(found: Coordinates) -> pd.DataFrame:
    """One row a coordinate and width."""
    rows = [
        {"run": f"{row.key} {width}", "coordinate": row.name, "label": row.label, "width": width, "size": size}
        for row in found.rows
        for width, size in row.sizes.items()
    ]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def alt(frame: pd.DataFrame) -> str:
    parts = []
    for label, rows in frame.groupby("label", sort=False):
        parts.append(f"{label}: " + ", ".join(f"{r['width']}: {short(r['size'])}" for r in rows.to_dict("records")))
    return f"Chart of sizes per coordinate against the width, both logarithmic. {'; '.join(parts)}."


def draw(frame: pd.DataFrame) -> Figure:
    """A line a coordinate."""
    figure, (axes,) = style.panels(1, 1, 3.4, right=2.6)
    widths = sorted(set(frame["width"]))
    style.log_axis(axes, "x", widths[0] / 1.2, widths[-1] * 1.2, ticks=widths)
    style.log_axis(axes, "y", frame["size"].min() / 1.5, frame["size"].max() * 1.5)
    ends = []
    for sign, ((name, label), rows) in zip(SIGNS, frame.groupby(["coordinate", "label"], sort=False), strict=False):
        (line,) = axes.plot(rows["width"], rows["size"], "-", marker=sign, markersize=5, color=style.INK, linewidth=1.2)
        style.mark(line, "", str(label), x="width")
        ends.append((float(np.asarray(rows["size"])[-1]), str(name), style.INK, ""))
    label_ends(axes, ends, 0.06)
    axes.set_xlabel("width d")
    axes.set_ylabel("size per coordinate")
    return figure


PICTURE: Picture[Coordinates] = Picture(
    name="coordinates",
    short="Coordinates over width",
    room="depth",
    caption="The coordinate check of μP (Yang et al. 2021), with its law in width.",
    see="A flat line keeps its size over width; a rising or falling one needs another rate or scale at larger width.",
    read=always(
        "Root mean square per coordinate, geometric mean over seeds; for scores their length. Δ: the change by the "
        "first update, or by all of them."
    ),
    columns=COLUMNS,
    value="size",
    select=select,
    draw=draw,
    title=lambda found: {
        "carries": "Every coordinate keeps its size over width",
        "drifts": "Not every coordinate keeps its size over width",
        "cannot tell": "Coordinates over width",
    }[found.verdict],
    alt=alt,
    none="No number was recorded at two widths.",
)
