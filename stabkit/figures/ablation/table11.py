"""DeepNet Table 11 as a picture: the method, without its residual scale, without its initialisation; a dot a run.

"− DeepNorm" is α = 1 with β kept, "− Init" β = 1 with α kept. Runs at the method's own factors only; a panel a setting
(warm-up, depth), because the table is not expected to come out in every one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from stabkit.figures.drawing import lettering, style
from stabkit.figures.drawing.palette import MARKS
from stabkit.figures.picture import Note, Picture, RunPicture
from stabkit.methods.papers.deepnorm import TABLE_11
from stabkit.results import points
from stabkit.results.conditions import FACTS, conditions, shown
from stabkit.results.once import once
from stabkit.results.run import Run
from stabkit.words import listed, short

COLUMNS = (*FACTS, "row", "unigram_loss", "validation_loss")
ROWS = {"": "as published", "deepnorm": "without DeepNorm (α = 1)", "init": "without Init (β = 1)"}
MOST = 8
"""Panels drawn; the frame holds all."""


@once
def select(runs: Sequence[Run]) -> pd.DataFrame:
    """One row a run of a method of which a variant without one of its parts is there too; `row`: which of the three."""
    placed = [
        (each, row)
        for each in shown(runs)
        if each.run.spec.alpha_scale == 1 == each.run.spec.beta_scale and (row := _row(each.run)) is not None
    ]
    cut = {each.run.spec.method for each, row in placed if row}
    kept = [(each, row) for each, row in placed if each.run.spec.method in cut]
    rest = conditions([each.run.spec for each, _ in kept])
    rows = [
        {
            **each.facts(),
            "condition": condition.text,
            "row": ROWS[row],
            "unigram_loss": each.run.outcome.unigram_loss,
            "validation_loss": each.run.outcome.validation_loss,
        }
        for (each, row), condition in zip(kept, rest, strict=True)
    ]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _row(run: Run) -> str | None:
    """ "" for the method as published, the name of the part that is taken away, None for anything else."""
    options = dict(run.spec.options)
    return "" if not options else next((name for name, drop in TABLE_11.items() if drop == options), None)


def title(runs: Sequence[Run]) -> str:
    """How many runs of each variant train, over all settings, in the paper's order."""
    frame = select(runs)
    whole = [f"{row} {_rate(of_row)}" for row, of_row in frame.groupby("row", sort=False)] if _panels(frame) else []
    told = ", ".join(whole) or "The method without one of its two parts"
    return f"{told[0].upper()}{told[1:]}"


def here(frame: pd.DataFrame) -> str:
    """What each variant does in each setting."""
    parts = []
    for name, group in _panels(frame):
        words = [f"{row} {_rate(of_row)}" for row, of_row in group.groupby("row", sort=False)]
        parts.append(f"{name}: {', '.join(words)}" if name else ", ".join(words))
    return "; ".join(parts)


def _panels(frame: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    by = frame.groupby(["depth", "condition"], sort=False)
    named = [(listed(*(str(part) for part in key)), own) for key, own in by]
    return [(name, own) for name, own in named if set(own["row"]) != {ROWS[""]}]


def _rate(rows: pd.DataFrame) -> str:
    """`trains in 2 of 3`, of those long enough to judge."""
    early = int((rows["outcome"] == "early").sum())
    if early == len(rows):
        return "too short to judge"
    short_ = f", {early} too short to judge" if early else ""
    return f"trains in {int((rows['outcome'] == 'trains').sum())} of {len(rows) - early}{short_}"


def alt(frame: pd.DataFrame) -> str:
    parts = [
        f"{listed(name, row)} {_rate(of_row)}, median loss {short(float(of_row['validation_loss'].median()), 3)}"
        for name, own in _panels(frame)
        for row, of_row in own.groupby("row", sort=False)
    ]
    return f"Validation loss with and without each part of the method. {'; '.join(parts[:24])}."


def draw(frame: pd.DataFrame) -> Figure:
    """A panel a setting, a row a variant."""
    seen = frame[points.drawable_rows(frame["validation_loss"], log=False)]
    if seen.empty:
        return style.empty("Every run diverged.")
    panels = _panels(frame)[:MOST]
    figure, all_axes = style.panels(len(panels), 2, 1.9, legend=1, right=1.2)
    lines = [height for height in frame["unigram_loss"].unique() if np.isfinite(height)]
    low, high = min([seen["validation_loss"].min(), *lines]), max([seen["validation_loss"].max(), *lines])
    room = 0.08 * (high - low or 1.0)
    rows = [row for row in ROWS.values() if row in set(frame["row"])]
    for axes, (name, group) in zip(all_axes, panels, strict=True):
        lettering.entitle(axes, name)
        axes.set_xlim(low - room, high + room)
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.set_yticks(range(len(rows)), [""] * len(rows))
        axes.tick_params(axis="y", length=0)
        for height in sorted(set(group["unigram_loss"].dropna()))[:3]:
            axes.axvline(height, color=style.INK, linewidth=0.8, linestyle=(0, (2, 2)), alpha=0.7)
        for at, row in enumerate(rows):
            _variant(axes, at, row, group[group["row"] == row])
        axes.set_xlabel("validation loss, nats a token (dashed: unigram loss)")
    words = [word for word in MARKS if word in set(frame["outcome"])]
    handles = [Line2D([], [], color=style.INK, linestyle="", label=word, **MARKS[word]) for word in words]
    style.legend(figure, handles, ncols=4)
    return figure


def _variant(axes: Axes, at: int, row: str, rows: pd.DataFrame) -> None:
    """One row: its name, its runs, their median, and how many train."""
    axes.text(0.015, at - 0.22, row, transform=axes.get_yaxis_transform(), fontsize=7.5, va="bottom")
    if rows.empty:
        return
    axes.text(1.02, at, _rate(rows), transform=axes.get_yaxis_transform(), fontsize=7.5, va="center")
    middle = rows["validation_loss"].median()
    if np.isfinite(middle):
        axes.plot([middle, middle], [at - 0.2, at + 0.2], color=style.INK, linewidth=1.6)
    for _, run in rows.iterrows():
        _dot(axes, run, at)


def _dot(axes: Axes, run: pd.Series[Any], at: int) -> None:
    method = str(run["method"])
    marker = MARKS.get(str(run["outcome"]), MARKS["early"])
    there = np.isfinite(run["validation_loss"])
    x = [float(run["validation_loss"])] if there else [1.0]
    where: dict[str, Any] = (
        {} if there else {"transform": axes.get_yaxis_transform(), "clip_on": False}
    )  # ✕ at the right edge
    (point,) = axes.plot(x, [at], color=style.colour(method), linestyle="", **marker, **where)
    text = listed(str(run["row"]), str(run["depth"]), str(run["condition"]), f"seed {run['seed']}", str(run["outcome"]))
    style.mark(point, method, text, x="validation loss")


PICTURE: RunPicture = Picture(
    name="table11",
    short="Table 11",
    room="ablation",
    caption=(
        "DeepNet Table 11 (journal version): 42.4 BLEU; − DeepNorm: diverged; − Init: 42.2. Validation loss for BLEU."
    ),
    see="each part removed leaves the loss where the published method has it",
    here=here,
    read=(
        Note("Each dot is a run, each bar the median of its seeds; left is better."),
        Note(
            "On the dashed line the model has learnt nothing. The claims test the paper's two sentences (without "
            "DeepNorm it diverges, without the initialisation it is slightly worse) run by run, and say where they "
            "hold."
        ),
    ),
    columns=COLUMNS,
    value="validation_loss",
    select=select,
    draw=draw,
    title=title,
    alt=alt,
    none="No run is without one of the method's parts.",
    optional=True,
)
