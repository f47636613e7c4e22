"""docs/evidence/ladder.png: every recipe's outcome beside the word of its copy, a panel a width and a reading; and
docs/evidence/ladder_logits.png: the largest attention logit over updates, a panel a width with and without QK-norm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from stabkit.results.own.alarm import LOGIT
from studies.ladder.curves import RATES
from studies.ladder.design import OFFSETS, OPTIMIZERS, SCHEMES
from studies.ladder.judge import JudgedRecipe, Reading
from studies.ladder.logits import RateGroup

ROWS: Mapping[Reading, str] = {
    "kept": "copy of width 64, rate kept",
    "root": "copy of width 64, √(d/64) × rate",
    "whole": "copy of width 64, d/64 × rate",
}
RIGHT, MISSED, FALSE, OPEN = "#0072B2", "#D55E00", "#E69F00", "#8A8A8A"
SIGNS: Sequence[tuple[str, dict[str, Any]]] = (
    ("trains, word right", {"marker": "o", "color": RIGHT, "markerfacecolor": RIGHT}),
    ("fails, word right", {"marker": "o", "color": RIGHT, "markerfacecolor": "white"}),
    ("missed: told to train, fails", {"marker": "X", "color": MISSED, "markerfacecolor": MISSED}),
    ("false: told to fail, trains", {"marker": "^", "color": FALSE, "markerfacecolor": FALSE}),
    ("undecided, trains", {"marker": "s", "color": OPEN, "markerfacecolor": OPEN}),
    ("undecided, fails", {"marker": "s", "color": OPEN, "markerfacecolor": "white"}),
)
ENDS: Mapping[str, dict[str, Any]] = {
    "ends well": {"marker": "o"},
    "too high a rate": {"marker": "o", "markerfacecolor": "white"},
    "diverged": {"marker": "X"},
}


def draw(by: Mapping[int, Sequence[JudgedRecipe]]) -> Figure:
    """The widths that have an outcome beside each other, the readings below each other."""
    widths = list(by)
    figure = Figure(figsize=(1.8 + 2.6 * len(widths), 1.0 + 2.5 * len(ROWS)), layout="constrained", dpi=110)
    grid = figure.subplots(len(ROWS), len(widths), squeeze=False, sharex=True, sharey=True)
    for row, (reading, name) in zip(grid, ROWS.items(), strict=True):
        for axes, width in zip(row, widths, strict=True):
            _panel(axes, by[width], reading)
            axes.set_title(f"width {width}: {name}", fontsize=8, loc="left")
    for axes in grid[-1]:
        axes.set_xlabel("rate ÷ the highest that trains at width 64", fontsize=8)
    handles = [Line2D([], [], linestyle="none", label=name, markersize=6, **look) for name, look in SIGNS]
    figure.legend(handles=handles, loc="outside lower center", ncols=3, fontsize=8, frameon=False)
    return figure


def _panel(axes: Axes, some: Sequence[JudgedRecipe], reading: Reading) -> None:
    names = list(SCHEMES)
    for one in some:
        setup = one.recipe.setup
        height = names.index(setup.scheme) + (0.2 if setup.optimizer == OPTIMIZERS[1] else -0.2)
        axes.plot([one.recipe.offset], [height], linestyle="none", markersize=6, **SIGNS[_sign(one, reading)][1])
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.set_yticks(range(len(names)), names, fontsize=7)
    axes.set_xticks(OFFSETS, ["⅛", "¼", "½", "1", "2"], fontsize=8)
    axes.set_xlim(min(OFFSETS) - 1, max(OFFSETS) + 1)
    axes.grid(axis="y", linewidth=0.4, alpha=0.5)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def _sign(one: JudgedRecipe, reading: Reading) -> int:
    """Of SIGNS."""
    true = one.came_true(reading)
    if true is None:
        return 4 if one.trains else 5
    if true:
        return 0 if one.trains else 1
    return 3 if one.trains else 2


def draw_logits(some: Sequence[RateGroup]) -> Figure:
    """A line a rate; a cross where it diverged, an open end where it is hurt."""
    figure = Figure(figsize=(1.0 + 2.3 * len(some), 3.0), layout="constrained", dpi=110)
    grid = figure.subplots(1, len(some), squeeze=False, sharex=True, sharey=True)[0]
    hues = colormaps["viridis"](np.linspace(0.0, 0.9, len(RATES)))
    for axes, group in zip(grid, some, strict=True):
        own = group.rows[0].training
        axes.set_title(f"width {own.width}, {'with' if own.heads else 'without'} QK-norm", fontsize=8, loc="left")
        for hue, row in zip(hues, group.rows, strict=True):
            x, y = zip(*((t, z) for t, z in row.largest.items() if t and z == z), strict=True)
            axes.plot(x, y, "-", color=hue, linewidth=1.3)
            end = "X" if row.reached < own.updates else "o"
            face = "white" if group.hurt(row) and end == "o" else hue
            axes.plot(x[-1:], y[-1:], end, color=hue, markerfacecolor=face, markersize=5)
        axes.axhline(LOGIT, color="black", linewidth=0.8, linestyle=":")
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel("updates", fontsize=8)
    grid[0].set_ylabel("largest attention logit", fontsize=8)
    handles = [Line2D([], [], color=hue, label=f"rate {rate:g}") for hue, rate in zip(hues, RATES, strict=True)]
    for label, look in ENDS.items():
        handles.append(Line2D([], [], linestyle="none", color="black", label=label, **look))
    figure.legend(handles=handles, loc="outside lower center", ncols=5, fontsize=8, frameon=False)
    return figure


def write(by: Mapping[int, Sequence[JudgedRecipe]], curves: Sequence[RateGroup], path: Path) -> None:
    """Both files; none of what has no rows."""
    if by:
        draw(by).savefig(path, metadata={"Software": None})
    if curves:
        draw_logits(curves).savefig(path.with_stem(f"{path.stem}_logits"), metadata={"Software": None})
