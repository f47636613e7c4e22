"""docs/ladder.png: every recipe's outcome beside the word of its copy, a panel a width and a reading."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from studies.ladder.design import OFFSETS, OPTIMIZERS, SCHEMES
from studies.ladder.judge import Judged, Reading

ROWS: Mapping[Reading, str] = {
    "kept": "copy of width 64, rate kept",
    "root": "copy of width 64, rate × √(d/64)",
    "whole": "copy of width 64, rate × d/64",
}
RIGHT, MISSED, FALSE, OPEN = "#0072B2", "#D55E00", "#E69F00", "#8A8A8A"
SIGNS: Sequence[tuple[str, dict[str, Any]]] = (
    ("trains, word right", {"marker": "o", "color": RIGHT, "markerfacecolor": RIGHT}),
    ("fails, word right", {"marker": "o", "color": RIGHT, "markerfacecolor": "white"}),
    ("missed: told to train, fails", {"marker": "X", "color": MISSED, "markerfacecolor": MISSED}),
    ("false: told to fail, trains", {"marker": "^", "color": FALSE, "markerfacecolor": FALSE}),
    ("word open, trains", {"marker": "s", "color": OPEN, "markerfacecolor": OPEN}),
    ("word open, fails", {"marker": "s", "color": OPEN, "markerfacecolor": "white"}),
)


def draw(by: Mapping[int, Sequence[Judged]]) -> Figure:
    """The widths that have an outcome beside each other, the readings below each other."""
    widths = [width for width, some in by.items() if some]
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


def _panel(axes: Axes, some: Sequence[Judged], reading: Reading) -> None:
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


def _sign(one: Judged, reading: Reading) -> int:
    """Of SIGNS."""
    true = one.came_true(reading)
    if true is None:
        return 4 if one.trains else 5
    if true:
        return 0 if one.trains else 1
    return 3 if one.trains else 2


def write(by: Mapping[int, Sequence[Judged]], path: Path) -> None:
    """The picture's file; nothing where no width has an outcome."""
    if any(by.values()):
        draw(by).savefig(path, metadata={"Software": None})
