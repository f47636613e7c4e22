"""A curve a depth in one hue, the deeper the heavier: the geometric mean over seeds in the band of their range."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from stabkit.figures.drawing import style
from stabkit.figures.drawing.line_ends import label_ends

HUE = "#0072B2"


def draw(frame: pd.DataFrame, x: str, y: str, limits: Mapping[float, str]) -> Figure:
    """A panel a value of the column `panel`; `limits` are drawn where they are near. Logarithmic in y."""
    with style.look():
        usable = frame[(frame["value"] > style.LOWEST) & (frame["value"] < style.HIGHEST)]
        if usable.empty:
            return style.empty("Nothing that can be drawn was recorded.")
        groups, more = style.kept(list(usable.groupby("panel", sort=False)))
        figure, panels = style.panels(len(groups), 2 if len(groups) > 1 else 1, 3.0, right=1.0, more=more)
        low, high = usable["value"].min(), usable["value"].max()
        for value in limits:
            if low / 30 < value < high * 30:
                low, high = min(low, value), max(high, value)
        for axes, (name, own) in zip(panels, groups, strict=True):
            axes.set_title(str(name))
            style.log_axis(axes, "y", low / 1.3, high * 1.3)
            axes.set_xlim(*_reach(usable["x"]))
            for value, word in limits.items():
                if low <= value <= high:
                    style.reference(axes, value, word)
            depths = sorted(set(own["depth"]))
            ends = []
            for place, depth in enumerate(depths):
                mine = own[own["depth"] == depth].groupby("x")["value"]
                at = np.array(sorted(mine.groups), dtype=float)
                middle = np.exp(mine.apply(lambda values: np.log(values).mean()).to_numpy())
                look = style.depth_line(place, len(depths))
                axes.fill_between(at, mine.min().to_numpy(), mine.max().to_numpy(), color=HUE, alpha=0.15, linewidth=0)
                text = f"{depth}L" if depth else "all seeds"
                (line,) = axes.plot(at, middle, color=HUE, **look)
                style.mark(line, "", text)
                ends.append((float(middle[-1]), text, HUE, ""))
            label_ends(axes, ends, 0.06)
            axes.set_xlabel(x)
        panels[0].set_ylabel(y)
        return figure


def _reach(x: pd.Series) -> tuple[float, float]:
    low, high = float(x.min()), float(x.max())
    return low - 0.02 * (high - low or 1), high + 0.02 * (high - low or 1)
