"""The plane of factors on α and β as heat maps: where it trains, and which link of the chain says so.

Each cell is one pair of factors: median over seeds (of the loss the median), and how many of its runs train.
One colour scale serves all planes of a page. Pairs that were not run are left blank.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from stabkit.figures.drawing import style
from stabkit.figures.drawing.palette import OUTCOME_COLOURS
from stabkit.figures.picture import Picture, RunPicture, always
from stabkit.results import points, scales
from stabkit.results.readings import centre
from stabkit.results.run import Run
from stabkit.words import short, some

MOST_PLANES = 8
"""Planes drawn; the frame holds all."""
CELL, HEAD, FOOT, LABEL, COLUMN_COUNT = 0.34, 0.32, 0.22, 0.2, 3
WIDE = (style.WIDTH - 0.15) / COLUMN_COUNT
"""Inches: a cell's height, above a panel, its ticks below, their label; panels side by side."""


@dataclass(frozen=True, slots=True)
class HeatMap:
    """One heat map."""

    column: str
    head: str
    log: bool
    low_hurts: bool = False
    digits: int = 2
    middle: Callable[[pd.Series[float]], float] = centre


PLANES = (
    HeatMap(
        "validation_loss",
        "validation loss, nats a token",
        False,
        digits=3,
        middle=lambda values: float(values.median()),
    ),
    HeatMap("update_first", "‖ΔF‖ after update 1, output units", True),
    HeatMap("ln_input_growth", "greatest LN input over its start", True),
    HeatMap("gradient_ratio_lowest", "lowest gradient, first / last layer", True, low_hurts=True, digits=1),
)


def title(runs: Sequence[Run]) -> str:
    """How many pairs of factors train in every seed."""
    frame = scales.frame(runs)
    planes = scales.groups(frame)
    if not planes:
        return "Outcome of a method with scaled α and β"
    return scales.sentence(frame, *planes[0])


def alt(frame: pd.DataFrame) -> str:
    parts = []
    for name, plane in scales.groups(frame):
        for cell in scales.cells(plane):
            loss = short(float(cell.runs["validation_loss"].median()), 3)
            parts.append(f"{name}, {cell.name}: {cell.rate}, loss {loss}")
    told = some(parts, 25, " and {} more")
    return f"Heat maps over the factors on α and β, with outcome and validation loss. {told}."


def draw(frame: pd.DataFrame) -> Figure:
    """Five panels a plane: the outcomes, and four numbers of the chain."""
    planes = scales.groups(frame)[:MOST_PLANES]
    together = pd.concat([group for _, group in planes])
    heights = [HEAD + FOOT + CELL * group["beta_scale"].nunique() for _, group in planes]
    beside = 0.28 + LABEL  # the plane's name above, the label of its factors below
    tall = sum(2 * height + beside for height in heights)
    figure = Figure(figsize=(style.WIDTH, tall))
    top = tall
    for (name, group), height in zip(planes, heights, strict=True):
        style.heading(figure, name, top, 100, 9)
        top -= beside - LABEL
        for place in range(len(PLANES) + 1):
            row, column = divmod(place, COLUMN_COUNT)
            axes = style.placed(
                figure, 0.5 + column * WIDE, top - (row + 1) * height + FOOT, WIDE - 0.6, height - HEAD - FOOT
            )
            _grid(axes, group, bottom=place + COLUMN_COUNT > len(PLANES), left=column == 0)
            if place:
                _numbers(axes, group, PLANES[place - 1], together)
            else:
                _outcomes(axes, group)
        top -= 2 * height + LABEL
    return figure


def _grid(axes: Axes, rows: pd.DataFrame, *, bottom: bool, left: bool) -> None:
    """Columns and rows named by their factors."""
    for axis, column, limit in ((axes.xaxis, "alpha_scale", axes.set_xlim), (axes.yaxis, "beta_scale", axes.set_ylim)):
        values = sorted(rows[column].unique())
        axis.set_ticks(range(len(values)), [f"{value:.3g}" for value in values])
        axis.set_tick_params(length=0, rotation=60 if axis is axes.xaxis and len(values) > 6 else 0)
        limit(-0.5, len(values) - 0.5)
    for spine in axes.spines.values():
        spine.set_visible(False)
    if bottom:
        axes.set_xlabel("factor on α")
    if left:
        axes.set_ylabel("factor on β")


def _placed(rows: pd.DataFrame) -> list[tuple[int, int, scales.Cell]]:
    """(column, row, cell) of every pair."""
    alphas, betas = sorted(rows["alpha_scale"].unique()), sorted(rows["beta_scale"].unique())
    return [(alphas.index(cell.a), betas.index(cell.b), cell) for cell in scales.cells(rows)]


def _outcomes(axes: Axes, rows: pd.DataFrame) -> None:
    axes.set_title("how many runs train")
    for x, y, cell in _placed(rows):
        count, word = cell.rate.rsplit(" ", 1)
        _cell(axes, x, y, OUTCOME_COLOURS[cell.word], "#000000", f"{count}\n{word}")


def _numbers(axes: Axes, rows: pd.DataFrame, plane: HeatMap, together: pd.DataFrame) -> None:
    axes.set_title(plane.head)
    seen = together.loc[points.drawable_rows(together[plane.column], plane.log), plane.column]
    low, high = (float(seen.min()), float(seen.max())) if len(seen) else (1.0, 1.0)
    for x, y, cell in _placed(rows):
        value = plane.middle(cell.runs[plane.column])
        if not math.isfinite(value):
            _cell(axes, x, y, "#b8bcc4", "#000000", "–")
            continue
        share = _share(value, low, high, plane.log)
        fill = matplotlib.colormaps["YlGnBu"](0.05 + 0.9 * (1 - share if plane.low_hurts else share))
        luminance = 0.2126 * fill[0] + 0.7152 * fill[1] + 0.0722 * fill[2]
        _cell(axes, x, y, fill, "#000000" if luminance > 0.45 else "#ffffff", short(value, plane.digits))


def _share(value: float, low: float, high: float, log: bool) -> float:
    """Where a value stands between the least and the greatest: 0 to 1."""
    if high <= low:
        return 0.5
    value = min(max(value, low), high)
    where = math.log(value / low) / math.log(high / low) if log else (value - low) / (high - low)
    return where


def _cell(axes: Axes, x: int, y: int, fill: Any, ink: str, text: str) -> None:
    axes.add_patch(Rectangle((x - 0.48, y - 0.46), 0.96, 0.92, facecolor=fill, edgecolor="none"))
    axes.text(x, y, text, ha="center", va="center", fontsize=6.5 if "\n" in text else 7.5, color=ink, linespacing=1.05)


PICTURE: RunPicture = Picture(
    name="scale_map",
    short="α × β, heat maps",
    room="ablation",
    caption="DeepNet Fig. 9 (journal version), with α and β scaled together.",
    see="Each cell is a pair of factors; 1, 1 is the method itself.",
    read=always(
        "Dark is bad: a high loss, a large first update, LN inputs that grow, a gradient that vanishes "
        "on its way down. "
        "The first update is shown because later ones saturate: ‖ΔF‖ cannot exceed 2√d, and uncorrelated "
        "outputs are √(2d) apart, for all factors."
    ),
    columns=scales.COLUMNS,
    value="validation_loss",
    select=scales.frame,
    draw=draw,
    title=title,
    alt=alt,
    none="No run has a scaled α or β.",
    grid=False,
    optional=True,
)
