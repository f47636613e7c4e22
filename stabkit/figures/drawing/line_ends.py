"""Names right of a panel, each beside the end of its line."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import pandas as pd
from matplotlib.axes import Axes

from stabkit.figures.drawing import style
from stabkit.figures.drawing.lettering import safe
from stabkit.results import points

MOST_NAMES = 12
"""Beside the lines of one panel, or as many as fit; of more the first, the last and evenly chosen ones between."""
BEYOND = 1.0
"""Inches that they take."""
End = tuple[float, str, str, str]
"""Where a line ends: its last value, its name, its colour, its method or ""."""


def label_ends(axes: Axes, ends: Sequence[End], step: float) -> None:
    """Names right of the panel beside the ends of their lines, `step` of its height apart."""
    low, high = axes.get_ylim()
    most = max(MOST_NAMES, int(1 / step))
    ends = points.evenly(ends, most)
    scale: Callable[[float], float] = math.log10 if axes.get_yscale() == "log" else float
    span = scale(high) - scale(low)
    wanted = sorted(((scale(min(max(end[0], low), high)) - scale(low)) / span, *end[1:]) for end in ends)
    placed = within(spread([end[0] for end in wanted], step), step)
    size = 7.5 if len(ends) <= MOST_NAMES else 6.5
    for (at, text, ink, method), to in zip(wanted, placed, strict=True):
        (lead,) = axes.plot([1.005, 1.035], [at, to], color=ink, linewidth=1, transform=axes.transAxes, clip_on=False)
        word = axes.text(1.045, to, safe(text, 16), transform=axes.transAxes, va="center", fontsize=size)
        if method:
            style.mark(lead, method)
            style.mark(word, method)


def last_read(
    frame: pd.DataFrame, x: str, y: str, name: str, *, middle: Callable[[Sequence[float]], float], log: bool
) -> list[End]:
    """Where the line of each method and `name` of a panel ends: at the middle of what was read last."""
    ends = []
    for (method, text), rows in frame.groupby(["method", name], sort=False):
        kept = rows[points.drawable_rows(rows[y], log)]
        if len(kept):
            values = kept[kept[x] == kept[x].max()][y].tolist()
            ends.append((middle(values), str(text), style.colour(str(method)), str(method)))
    return ends


def within(placed: Sequence[float], step: float) -> list[float]:
    """Sorted places that are `step` apart, pushed into the panel from above as far as that goes, then from below."""
    last = len(placed) - 1
    under = [min(at, 1.0 - (last - i) * step) for i, at in enumerate(placed)]
    return [max(at, i * step) for i, at in enumerate(under)]


def spread(wanted: Sequence[float], step: float) -> list[float]:
    """Sorted places moved as little as possible (least squares), so that neighbours are at least `step` apart."""
    blocks: list[tuple[float, int]] = []  # pooled adjacent violators of `wanted` less i steps: (mean, members)
    for i, at in enumerate(wanted):
        mean, members = at - i * step, 1
        while blocks and blocks[-1][0] > mean:
            before, more = blocks.pop()
            mean, members = (before * more + mean * members) / (more + members), more + members
        blocks.append((mean, members))
    flat = [mean for mean, members in blocks for _ in range(members)]
    return [at + i * step for i, at in enumerate(flat)]
