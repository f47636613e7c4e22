"""Lines against the updates of a training: linear up to sixteen, logarithmic beyond; the later in the order, the
heavier."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd
from matplotlib.figure import Figure

from stabkit.figures.drawing import style
from stabkit.figures.drawing.line_ends import label_ends

HUE = "#0072B2"
LINEAR = 16


def draw(frame: pd.DataFrame, y: str, limits: Mapping[float, str]) -> Figure:
    """A panel a value of the column `panel`; `limits` are drawn where they are near."""
    with style.look():
        usable = frame[(frame["value"] > style.LOWEST) & (frame["value"] < style.HIGHEST)]
        if usable.empty:
            return style.empty("Nothing that can be drawn was recorded.")
        groups, more = style.kept(list(usable.groupby("panel", sort=False)))
        figure, panels = style.panels(len(groups), 2 if len(groups) > 1 else 1, 3.0, right=1.3, more=more)
        low, high = usable["value"].min(), usable["value"].max()
        for value in limits:
            if low / 30 < value < high * 30:
                low, high = min(low, value), max(high, value)
        last = int(frame["x"].max())
        for axes, (name, own) in zip(panels, groups, strict=True):
            axes.set_title(str(name))
            style.log_axis(axes, "y", low / 1.3, high * 1.3)
            axes.set_xscale("symlog", linthresh=LINEAR, linscale=1.5)
            ticks = [t for t in (0, 4, 8, 16, *(16 * 4**k for k in range(1, 12))) if t <= max(last, 4)]
            axes.set_xticks(ticks, [f"{t:,}" for t in ticks])
            axes.minorticks_off()
            axes.set_xlim(-0.5, max(last, 1) * 1.02)
            for value, word in limits.items():
                if low <= value <= high:
                    style.reference(axes, value, word)
            ends = []
            lines = list(own.groupby("run", sort=False))
            for place, (run, mine) in enumerate(lines):
                (line,) = axes.plot(mine["x"], mine["value"], color=HUE, **style.depth_line(place, len(lines)))
                style.mark(line, "", str(run))
                ends.append((float(mine["value"].iloc[-1]), str(run), HUE, ""))
            label_ends(axes, ends, 0.07)
            axes.set_xlabel("update")
        panels[0].set_ylabel(y)
        return figure
