"""The chain of DeepNet §2 as one small picture a run: update → LN input → gradient → loss, from left to right.

‖ΔF‖/√(2d)            1: the output has nothing in common with that of step 0        (probe `update`)
LN input              mean over sub-layers of its norm over that at step 0            (probe `ln_input`)
gradient              first over last decoder layer                                   (probe `grad_norm`)
loss                  the probe batch's over the unigram loss: 1 is a constant predictor's (probe `loss`)
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from stabkit.figures.drawing import lettering, style
from stabkit.figures.picture import Note, Picture, RunPicture
from stabkit.figures.shared.comparison import FACTS, shown
from stabkit.figures.shared.once import once
from stabkit.figures.shared.points import parted
from stabkit.figures.shared.words import listed, short
from stabkit.results.chain import gradient_ratio
from stabkit.storage.store import Run

COLUMNS = (*FACTS, "step", "update", "ln_input", "gradient", "loss")
MOST = 80
"""Rows drawn; the frame holds all."""
ROW, LEFT, HEAD = 0.3, 2.5, 0.55
"""Inches: height of a row, width of the names, height of the column heads."""


@dataclass(frozen=True, slots=True)
class ChainColumn:
    """One column of the picture."""

    column: str
    head: str
    log: bool
    least: float
    """A logarithmic column shows nothing below."""


LINKS = (
    ChainColumn("update", "‖ΔF‖ / √(2d)", True, 1e-6),
    ChainColumn("ln_input", "LN input / its start", False, 0.0),
    ChainColumn("gradient", "gradient, first / last layer", True, 1e-20),
    ChainColumn("loss", "loss / unigram loss", False, 0.0),
)


@once
def select(runs: Sequence[Run]) -> pd.DataFrame:
    """One row a run and recorded step."""
    rows = []
    for placed in shown(runs):
        records = placed.run.records
        if not {"update", "ln_input", "grad_norm", "loss"} <= set(records):
            continue
        update, ln_input, loss = records["update"], records["ln_input"], records["loss"]
        raw = ln_input.values[:, [not site.endswith("@omega") for site in ln_input.sites]]
        with np.errstate(all="ignore"):
            links = {
                "update": update.at("state") / math.sqrt(2 * placed.run.spec.model.hidden),
                "ln_input": (raw / raw[0]).mean(axis=1),
                "gradient": gradient_ratio(records["grad_norm"]),
                "loss": loss.at("probe") / placed.run.outcome.unigram_loss,
            }
        facts = placed.facts()
        steps = update.steps.tolist()
        if all(len(values) == len(steps) for values in links.values()):
            for i, step in enumerate(steps):
                rows.append({**facts, "step": step, **{name: float(values[i]) for name, values in links.items()}})
    return pd.DataFrame(rows, columns=list(COLUMNS))


def title(runs: Sequence[Run]) -> str:
    """Which runs lost their gradient on the way from the first to the last step."""
    frame = select(runs)
    if frame.empty:
        return "The chain, link by link"
    return "Update, norm input, gradient, loss: the chain of every run"


def alt(frame: pd.DataFrame) -> str:
    parts = []
    for (label, depth, condition, seed), rows in frame.groupby(["label", "depth", "condition", "seed"], sort=False):
        last = rows.iloc[-1]
        values = ", ".join(short(float(last[link.column])) for link in LINKS)
        parts.append(f"{listed(label, depth, condition)} seed {seed}: {values}")
    more = f" and {len(parts) - 16} more" if len(parts) > 16 else ""
    return f"Small curves of the chain, one row per run; last values of its four links. {'; '.join(parts[:16])}{more}."


def draw(frame: pd.DataFrame) -> Figure:
    """Four columns of small curves beside the runs' names."""
    drawn = parted(frame, ["run"], list(frame.columns))[:MOST]
    tall = ROW * len(drawn) + HEAD
    figure = Figure(figsize=(style.WIDTH, tall))
    width = (style.WIDTH - LEFT) / len(LINKS)
    bottom, height = 0.0, 1 - HEAD / tall
    names = figure.add_axes((0, bottom, LEFT / style.WIDTH, height))
    _frame(names, len(drawn))
    last = max(1.0, float(frame["step"].max()))
    columns = []
    for place, link in enumerate(LINKS):
        axes = figure.add_axes(((LEFT + place * width) / style.WIDTH, bottom, 0.94 * width / style.WIDTH, height))
        _frame(axes, len(drawn))
        scale = _scale(frame[link.column], link)
        kind = "log" if link.log else "linear"
        axes.set_title(f"{link.head}\n{short(scale[0])} to {short(scale[1])}, {kind}", fontsize=8)
        columns.append((axes, link, scale))
    for row, run in enumerate(drawn):
        _row(names, columns, run, len(drawn) - 1 - row, last)
    return figure


def _frame(axes: Axes, rows: int) -> None:
    axes.set_xlim(0, 1)
    axes.set_ylim(0, rows)
    axes.axis("off")


def _scale(values: pd.Series[float], link: ChainColumn) -> tuple[float, float]:
    seen = values[np.isfinite(values) & (values > 0)]
    low, high = (float(seen.min()), float(seen.max())) if len(seen) else (1.0, 1.0)
    low, high = min(max(low, link.least), 1.0), max(high, 1.0)
    return (low / 1.2, high * 1.2) if link.log else (low - 0.02, high + 0.02)


def _row(
    names: Axes,
    columns: list[tuple[Axes, ChainColumn, tuple[float, float]]],
    run: Mapping[str, list[Any]],
    row: int,
    last: float,
) -> None:
    """One run: its name, its outcome, and a curve in each column."""
    label, depth, condition, seed, outcome = (
        str(run[name][0]) for name in ("label", "depth", "condition", "seed", "outcome")
    )
    method = str(run["method"][0])
    hue = style.colour(method)
    name = listed(f"{label} {depth}", condition)
    text = names.text(0.02, row + 0.5, lettering.safe(name, 36), fontsize=7.5, va="center")
    word = names.text(0.97, row + 0.5, f"s{seed} {outcome}", fontsize=7, va="center", ha="right", alpha=0.8)
    style.mark(text, method)
    style.mark(word, method)
    across = 0.72 * np.array(run["step"]) / last
    for axes, link, scale in columns:
        measured = np.array(run[link.column], dtype=float)
        values = np.where(np.isfinite(measured), measured, np.nan)
        base = [row + _height(np.ones(1), link, scale)[0]] * 2
        level = style.line(axes, [0, 0.72], base, color=style.INK, linewidth=0.5, linestyle=":", alpha=0.6)
        line = style.line(axes, across, row + _height(values, link, scale), color=hue, linewidth=1.3)
        points = list(zip(map(float, run["step"]), measured.tolist(), strict=True))
        style.mark(line, method, f"{link.head}: {listed(name, f'seed {seed}')}", points)
        there = np.flatnonzero(np.isfinite(values))
        if len(there):
            end = axes.text(0.745, row + 0.5, short(float(values[there[-1]])), fontsize=7, va="center")
            style.mark(end, method)
        if outcome == "diverged":
            at = there[-1] if len(there) else len(values) - 1
            height = row + _height(np.nan_to_num(values, nan=1.0), link, scale)[at]
            look = {"marker": "x", "linestyle": "", "color": hue, "markersize": 6, "mew": 1.6}
            style.mark(style.line(axes, [across[at]], [height], **look), method)
        style.mark(level, method)


def _height(values: NDArray[Any], link: ChainColumn, scale: tuple[float, float]) -> NDArray[np.float64]:
    """Where a value stands in its row, from 0.12 to 0.88; beyond the scale at its edge, nowhere without a logarithm."""
    low, high = scale
    shown = np.clip(np.where((values > 0) | (not link.log), values, np.nan), low, high)
    share = np.log(shown / low) / math.log(high / low) if link.log else (shown - low) / (high - low)
    placed: NDArray[np.float64] = 0.12 + 0.76 * share
    return placed


PICTURE: RunPicture = Picture(
    name="chain",
    short="The chain, drawn",
    room="chain",
    caption="DeepNet §2 (journal version): the chain of Fig. 3(a) to 3(d), one row a run.",
    see="The chain breaks where the rows of stuck runs differ from those of runs that train.",
    read=(
        Note(
            "Each row is one run, each column one link with one common scale; dotted: 1. The number is the "
            "link's last value."
        ),
    ),
    columns=COLUMNS,
    value="update",
    select=select,
    draw=draw,
    title=title,
    alt=alt,
    none="No run has recorded the whole chain.",
)
