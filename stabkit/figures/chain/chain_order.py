"""Which link of DeepNet §2's chain breaks, and when: the first step at which each is beyond its limit, run by run.

    update          ‖ΔF‖ (eq. 1) beyond half of √(2d)
    LN input        its mean over the sub-layers half as large again as at step 0
    gradient        first/last layer below the one limit for a vanished gradient
    token cosine    tokens' output states beyond a mean cosine of 0.9: no link of the paper's, a candidate

The paper's order is from the top down: the update explodes, LN inputs grow, the gradient vanishes as training goes on.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from stabkit.figures.drawing import lettering, style
from stabkit.figures.drawing.palette import MARKS
from stabkit.figures.picture import Note, Picture, RunPicture
from stabkit.results import breaks
from stabkit.results.chain import SATURATED
from stabkit.results.outcome import GROWN, VANISHED
from stabkit.results.run import Run
from stabkit.spec import depth_text
from stabkit.wording.breaks import goes_first
from stabkit.words import listed

LINKS: dict[breaks.LinkName, str] = {
    "update": f"‖ΔF‖ beyond {SATURATED:g} of √(2d)",
    "ln_input": f"LN input {GROWN:g} times its first",
    "gradient": f"gradient ratio below {VANISHED:g}",
    "token_cosine": f"token cosine above {breaks.COLLAPSED:g}",
}
STEP = "first step at which the link exceeds its limit"


def title(runs: Sequence[Run]) -> str:
    """Which link goes first in runs that fail; of others how many lost the gradient."""
    if said := goes_first(runs):
        return said.removesuffix(".").partition(";")[0]
    steps = [int(step) for step in breaks.frame(runs).query("link == 'gradient'")["step"]]
    if not steps:
        return "When each link of the chain breaks"
    lost = sum(step != breaks.NEVER for step in steps)
    count = f"{len(steps)} run{'s' * (len(steps) != 1)}"
    return f"The lowest layer's gradient fell below its limit in {lost or 'none'} of {count}"


def alt(frame: pd.DataFrame) -> str:
    parts = []
    for link, text in LINKS.items():
        rows = frame[frame["link"] == link]
        if rows.empty:
            continue
        start, never = int((rows["step"] == 0).sum()), int((rows["step"] == breaks.NEVER).sum())
        parts.append(f"{text}: {start} before any update, {len(rows) - start - never} later, {never} never")
    return f"First steps at which links of the chain break, one row per link. {'; '.join(parts)}."


DASHES: dict[breaks.LinkName, Any] = {
    "update": "-",
    "ln_input": (0, (1.6, 0.4)),
    "gradient": (0, (0.5, 0.3)),
    "token_cosine": (0, (0.2, 0.5)),
}
"""A pattern a link, in the colour of the text: colours belong to methods."""
BAR, ROW, NAMES, HEAD, FOOT = 0.075, 0.44, 1.75, 0.62, 0.42
"""Inches: a bar, a row of cells, the column of names, what stands above the first row and below the last."""
GAP = 0.08
"""Of a cell's width, left free beside the next."""


def draw(frame: pd.DataFrame) -> Figure:
    """A row a method, a column a depth; in a cell a bar a link, from the first step at which it is beyond its limit."""
    rows = list(dict.fromkeys(zip(frame["label"], frame["condition"], frame["method"], strict=True)))
    shapes = list(dict.fromkeys(zip(frame["encoder_layers"], frame["decoder_layers"], strict=True)))
    links = [link for link in LINKS if link in set(frame["link"])]
    conditions = frame["condition"].nunique() > 1
    last = max(1, int(frame["last"].max()))
    height = HEAD + ROW * len(rows) + FOOT
    full, left, size = (style.WIDTH, NAMES, 7.5) if len(shapes) > 1 else (style.SINGLE, 0.1, 6.5)  # of the legend
    figure = Figure(figsize=(full, height))
    axes = figure.add_axes((NAMES / full, FOOT / height, 1 - (NAMES + 0.1) / full, ROW * len(rows) / height))
    for row, (label, condition, method) in enumerate(rows):
        named = [(str(label), 8.0, 26), (str(condition), 6.5, 34)] if conditions else [(str(label), 8.0, 26)]
        for line, (name, points, most) in enumerate(named):
            y = row + 0.5 + (line - (len(named) - 1) / 2) * 0.36
            text = axes.text(-0.015, y, lettering.safe(name, most), ha="right", va="center", fontsize=points)
            text.set_transform(axes.get_yaxis_transform())
            style.mark(text, method)
        mine = frame[(frame["label"] == label) & (frame["condition"] == condition)]
        for column, (encoder, decoder) in enumerate(shapes):
            cell = mine[(mine["encoder_layers"] == encoder) & (mine["decoder_layers"] == decoder)]
            if len(cell):
                _cell(axes, cell, links, (column, row), method, f"{label} {depth_text(encoder, decoder)}", last)
    axes.set_xlim(0, len(shapes))
    axes.set_ylim(len(rows), 0)
    axes.set_yticks([])
    axes.spines[:].set_visible(False)
    for line in range(len(rows) + 1):
        axes.axhline(line, color=style.INK, linewidth=0.4, alpha=0.25)
    ticks = [0, *(tick for tick in (1, 4, 16, 64, 256, 1024, 4096) if tick < last / 2), last]
    places = [(column, tick) for column in range(len(shapes)) for tick in ticks]
    crowded = len(shapes) > 3
    labels = ["" if crowded and tick == last and column < len(shapes) - 1 else str(tick) for column, tick in places]
    axes.set_xticks([column + _place(tick, last) for column, tick in places], labels, fontsize=7)
    axes.set_xlabel(STEP, fontsize=8)
    for column, (encoder, decoder) in enumerate(shapes):
        axes.text(column + GAP / 2, -0.12, depth_text(encoder, decoder), fontsize=8, fontweight="bold", va="bottom")
    for place, link in enumerate(links):
        x = left / full + place * (1 - left / full) / 4
        y = 1 - 0.16 / height
        sample: dict[str, Any] = {"color": style.INK, "linewidth": BAR * 72, "solid_capstyle": "butt", "alpha": 0.85}
        figure.add_artist(Line2D([x - 0.004, x + 0.02], [y, y], linestyle=DASHES[link], **sample))
        figure.text(x + 0.026, 1 - 0.16 / height, LINKS[link], fontsize=size, va="center")
    if len(shapes) > 1:
        half, wide, below = (full - NAMES) / 2, (full - NAMES - 0.1) / len(shapes), 0.3
        tall = ROW * len(rows) + HEAD - below + 0.22  # without the axis' label
        legend: list[list[style.Cut]] = [[(NAMES + place * half - 0.05, 0.0, half, below)] for place in range(2)]
        columns = [NAMES + place * wide for place in range(len(shapes))]
        style.windows(figure, [*legend, *([(0.0, below, NAMES, tall), (left, below, wide, tall)] for left in columns)])
    return figure


def _place(step: float, last: int) -> float:
    """Where a step stands in a cell, 0 to 1 less the gap; logarithmic."""
    return GAP / 2 + (1 - GAP) * math.log1p(max(step, 0)) / math.log1p(last)


def _cell(
    axes: Axes,
    cell: pd.DataFrame,
    links: Sequence[str],
    corner: tuple[int, int],
    method: str,
    name: str,
    last: int,
) -> None:
    """Four tracks; of seeds the median of those that break, as strong as their share."""
    column, row = corner
    for turn, word in enumerate(word for word in ("diverged", "stuck") if word in set(cell["outcome"])):
        x = column + 1 - GAP / 2 + GAP * (0.45 + turn) / 2
        (drawn,) = axes.plot([x], [row + 0.5], linestyle="", color=style.colour(method), **MARKS[word])
        style.mark(drawn, method, listed(name, word), x="")
    for place, link in enumerate(links):
        y = row + 0.14 + 0.72 * (place + 0.5) / len(links)
        start, end = column + _place(0, last), column + _place(last, last)
        axes.plot([start, end], [y, y], color=style.INK, linewidth=0.5, alpha=0.25)
        steps = cell.loc[cell["link"] == link, "step"]
        broken = steps[steps != breaks.NEVER]
        if not len(broken):
            continue
        step = statistics.median(int(value) for value in broken)
        x = column + _place(step, last)
        share = len(broken) / len(steps)
        (bar,) = axes.plot(
            [x, end], [y, y], color=style.INK, linewidth=BAR * 72, alpha=0.2 + 0.65 * share, solid_capstyle="butt"
        )
        bar.set_linestyle(DASHES[link])  # type: ignore[index]
        (edge,) = axes.plot([x], [y], marker="|", color=style.INK, markersize=BAR * 72, markeredgewidth=1.5)
        said = listed(name, f"{LINKS[link]} in {len(broken)} of {len(steps)}")  # type: ignore[index]
        style.mark(bar, method)
        style.mark(edge, method, said, [(step, share)], x="step")


def counts(frame: pd.DataFrame) -> str:
    """`of 12 runs ‖ΔF‖ beyond 0.5 of √(2d) in 12, gradient ratio below 0.01 in 3 (1 before any update)`."""
    told = []
    for link, rows in frame.groupby("link", sort=False):
        beyond, before = int((rows["step"] != breaks.NEVER).sum()), int((rows["step"] == 0).sum())
        told.append(f"{LINKS[link]} in {beyond}" + f" ({before} before any update)" * bool(before))  # type: ignore[index]
    count = frame["run"].nunique()
    return f"of {count} run{'s' * (count != 1)} {', '.join(told)}"


PICTURE: RunPicture = Picture(
    name="chain_order",
    short="Which link breaks, and when",
    room="chain",
    caption="DeepNet §2 (journal version), the chain of causes: not drawn in the paper.",
    see="no bar for the gradient; bars for the output and its tokens are common in runs that train, too",
    here=counts,
    read=(
        Note(
            "A bar begins at the first step at which its link exceeds its limit; 0 is before any update. In the "
            "paper's chain the bars of a run that fails begin one after the other, from the top down."
        ),
        Note(
            "With several seeds a bar begins at the median of the seeds that break; the fewer break, the paler it "
            "is. ✕: a run of the cell diverged; □: one is stuck.",
            marks=("diverged", "stuck"),
        ),
    ),
    columns=breaks.COLUMNS,
    value="step",
    select=breaks.frame,
    draw=draw,
    title=title,
    alt=alt,
    none="No run has recorded its chain.",
    optional=True,
)
