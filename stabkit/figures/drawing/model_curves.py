"""The curves of a user's model, in one hue: a curve a depth, or lines against the updates of a training.

The later in the order (the deeper), the heavier. Logarithmic in y; limits are drawn where they are near.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from stabkit.figures.drawing import style
from stabkit.figures.drawing.line_ends import End, label_ends
from stabkit.figures.shared import points

HUE = "#0072B2"
LINEAR = 16
"""Updates up to which the axis is linear; logarithmic beyond."""


def by_depth(frame: pd.DataFrame, x_name: str, x_note: str, y_label: str, limits: Mapping[float, str]) -> Figure:
    """A panel a value of the column `panel`, a curve a depth: the geometric mean over seeds in the band of their
    range."""

    def curves(axes: Axes, rows: pd.DataFrame, usable: pd.DataFrame) -> list[End]:
        first, last = float(usable["x"].min()), float(usable["x"].max())
        room = 0.02 * (last - first or 1)
        axes.set_xlim(first - room, last + room)
        depths = sorted(set(rows["depth"]))
        ends = []
        for place, depth in enumerate(depths):
            values = rows[rows["depth"] == depth].groupby("x")["value"]
            x = np.array(sorted(values.groups), dtype=float)
            mean = np.exp(values.apply(lambda seeds: np.log(seeds).mean()).to_numpy())
            axes.fill_between(x, values.min().to_numpy(), values.max().to_numpy(), color=HUE, alpha=0.15, linewidth=0)
            name = f"{depth}L" if depth else "all seeds"
            (line,) = axes.plot(x, mean, color=HUE, **style.depth_line(place, len(depths)))
            style.mark(line, "", name, x=x_name)
            ends.append((float(mean[-1]), name, HUE, ""))
        return ends

    return _panels(frame, x_name + x_note, y_label, limits, curves, right=1.0, apart=0.06)


def by_update(frame: pd.DataFrame, y_label: str, limits: Mapping[float, str]) -> Figure:
    """A panel a value of the column `panel`, a line a value of `run`."""
    last = int(frame["x"].max()) if len(frame) else 0

    def lines(axes: Axes, rows: pd.DataFrame, usable: pd.DataFrame) -> list[End]:
        axes.set_xscale("symlog", linthresh=LINEAR, linscale=1.5)
        ticks = [t for t in (0, 4, 8, 16, *(16 * 4**k for k in range(1, 12))) if t <= max(last, 4)]
        axes.set_xticks(ticks, [f"{t:,}" for t in ticks])
        axes.minorticks_off()
        axes.set_xlim(-0.5, max(last, 1) * 1.02)
        runs = list(rows.groupby("run", sort=False))
        ends = []
        for place, (run, line_rows) in enumerate(runs):
            (line,) = axes.plot(line_rows["x"], line_rows["value"], color=HUE, **style.depth_line(place, len(runs)))
            style.mark(line, "", str(run), x="update")
            ends.append((float(line_rows["value"].iloc[-1]), str(run), HUE, ""))
        return ends

    return _panels(frame, "update", y_label, limits, lines, right=1.3, apart=0.07)


def _panels(
    frame: pd.DataFrame,
    x_label: str,
    y_label: str,
    limits: Mapping[float, str],
    lines: Callable[[Axes, pd.DataFrame, pd.DataFrame], list[End]],
    right: float,
    apart: float,
) -> Figure:
    """The panels on one scale; `lines` draws those of one and says where they end; names stand `apart` at least."""
    usable = frame[points.drawable_rows(frame["value"], log=True)]
    if usable.empty:
        return style.empty("Nothing that can be drawn was recorded.")
    groups, more = style.kept(list(usable.groupby("panel", sort=False)))
    figure, panels = style.panels(len(groups), 2 if len(groups) > 1 else 1, 3.0, right=right, more=more)
    low, high = usable["value"].min(), usable["value"].max()
    for value in limits:
        if low / 30 < value < high * 30:
            low, high = min(low, value), max(high, value)
    for axes, (name, rows) in zip(panels, groups, strict=True):
        axes.set_title(str(name))
        style.log_axis(axes, "y", low / 1.3, high * 1.3)
        for value, text in limits.items():
            if low <= value <= high:
                style.reference(axes, value, text)
        label_ends(axes, lines(axes, rows, usable), apart)
        axes.set_xlabel(x_label)
    panels[0].set_ylabel(y_label)
    return figure
