"""A row a method, a point a depth: small multiples of horizontal dumbbells on one logarithmic axis.

A frame has `panel`, `method`, `label`, `depth`, `x` (NaN: nothing is drawn) and may have `low` and `high`, an interval.
The deeper, the fuller the point.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from stabkit.figures.drawing import lettering, style
from stabkit.words import short

ROW, NAMES, GAP, TOP, BOTTOM = 0.26, 1.5, 0.2, 0.3, 0.75
"""Inches: of a method, for the names, between panels, above and below them."""
LINE: dict[str, Any] = {"color": style.INK, "linewidth": 0.8, "linestyle": ":", "alpha": 0.8}
"""Of a vertical reference."""
MOST_LABEL = 24
"""Letters of a name."""
FAN = 0.5
"""Of a row, how far apart its shallowest and its deepest point stand, so that equal ones are seen."""
EDGE = 0.03
"""Of the limits' span in logarithms: what they are widened by, and how far outside a point beyond them stands."""


def draw(
    frame: pd.DataFrame, name: str, limits: tuple[float, float], ticks: Sequence[float], lines: Mapping[float, str]
) -> Figure:
    """`name` of the axis; `lines`: {where: what} of vertical references."""
    with style.look():
        drawn = frame[frame["x"].notna()]
        if drawn.empty:
            return style.empty("There are no runs yet.")
        labels = list(dict.fromkeys(drawn["label"]))
        depths = sorted(set(drawn["depth"]))
        groups = list(drawn.groupby("panel", sort=False))
        tall = TOP + ROW * len(labels) + BOTTOM
        figure = Figure(figsize=(style.WIDTH, tall))
        wide = (style.WIDTH - NAMES - GAP * len(groups)) / max(len(groups), 2)
        for number, (title, rows) in enumerate(groups):
            left = NAMES + number * (wide + GAP)
            axes = figure.add_axes((left / style.WIDTH, BOTTOM / tall, wide / style.WIDTH, ROW * len(labels) / tall))
            axes.set_title(str(title))
            axes.tick_params(labelleft=not number)
            style.log_axis(axes, "x", limits[0] / _edge(limits), limits[1] * _edge(limits), ticks=ticks)
            axes.set_xticks(list(ticks), [f"{tick:g}" if 1 <= tick < 1e4 else short(tick, 1) for tick in ticks])
            axes.set_ylim(len(labels) - 0.4, -0.6)
            axes.set_yticks(range(len(labels)), [lettering.safe(label, MOST_LABEL) for label in labels])
            for where in lines:
                axes.axvline(where, **LINE)
            for height, label in enumerate(labels):
                _row(axes, height, rows[rows["label"] == label], limits, depths, name)
            axes.set_xlabel(name)
        handles = [
            Line2D([], [], linestyle="none", marker="o", color=style.INK, label=f"{n} layers", **_face(n, depths))
            for n in depths
        ]
        handles += [Line2D([], [], label=what, **LINE) for what in lines.values()]
        style.legend(figure, handles, ncols=len(handles))
        return figure


def _row(
    axes: Axes, middle: int, rows: pd.DataFrame, limits: tuple[float, float], depths: Sequence[int], name: str
) -> None:
    if rows.empty:
        return
    method = str(rows["method"].iloc[0])
    hue, (low, high) = style.colour(method), limits
    edge = _edge(limits)
    x = rows["x"].clip(low / edge**0.6, high * edge**0.6).to_numpy()
    down = [middle + FAN * (list(depths).index(depth) / max(len(depths) - 1, 1) - 0.5) for depth in rows["depth"]]
    (line,) = axes.plot(x, down, "-", color=hue, linewidth=1.0, alpha=0.6)
    style.mark(line, method)
    for row, at, height in zip(rows.to_dict("records"), x, down, strict=True):
        if "low" in row and np.isfinite(row["low"]):
            ends = np.clip([row["low"], row["high"]], low / edge, high * edge)
            (bar,) = axes.plot(ends, [height, height], "-", color=hue, linewidth=2.4, alpha=0.35)
            style.mark(bar, method)
        shape = "<" if row["x"] < low else ">" if row["x"] > high else "o"
        (point,) = axes.plot([at], [height], shape, color=hue, markersize=5.5, **_face(row["depth"], depths, hue))
        style.mark(
            point, method, f"{row['label']}, {row['depth']} layers: {row.get('text') or short(row['x'])}", x=name
        )


def _edge(limits: tuple[float, float]) -> float:
    """The factor."""
    return float((limits[1] / limits[0]) ** EDGE)


def _face(depth: int, depths: Sequence[int], hue: str = style.INK) -> dict[str, Any]:
    """The deepest is full, the shallowest empty, between them half."""
    rank = list(depths).index(depth)
    if rank == 0 and len(depths) > 1:
        return {"markerfacecolor": "none"}
    if rank == len(depths) - 1:
        return {"markerfacecolor": hue}
    style_of = "left" if rank % 2 else "bottom"
    return {"fillstyle": style_of, "markerfacecolor": hue, "markerfacecoloralt": "none"}
