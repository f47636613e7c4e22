"""Measured ‖ΔF‖ against what the theorem predicts, over steps, depths and methods, with R².

A theorem gives an order of growth, so a constant of its own is free and nothing else: on logarithmic axes the
prediction is a line of slope 1, and R² = 1 − Σ(log m − log p − c)²/Σ(log m − mean)², c the mean of log m − log p over
the runs of one theorem. Points are the steps STEPS of every run, as long as ‖ΔF‖ is below half of √(2d), where it
bends.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from stabkit.figures.drawing import lettering, style
from stabkit.figures.picture import Note, Picture, RunPicture
from stabkit.figures.shared import theorem
from stabkit.figures.shared.comparison import FACTS, shown
from stabkit.figures.shared.numbers import series
from stabkit.figures.shared.once import once
from stabkit.figures.shared.words import listed, short
from stabkit.results.chain import SATURATED
from stabkit.storage.store import Run

STEPS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
COLUMNS = (*FACTS, "theorem", "step", "predicted", "update")


@once
def select(runs: Sequence[Run]) -> pd.DataFrame:
    """One row a run and step of STEPS."""
    rows = []
    for placed in shown(runs):
        steps, values = series(placed.run, "update", "state")
        number = theorem.number_of(placed.run.spec)
        bends = SATURATED * math.sqrt(2 * placed.run.spec.model.hidden)
        for step, value in zip(steps.tolist(), values.tolist(), strict=True):
            if step in STEPS and 0 < value <= bends:
                sum_ = theorem.predicted(placed.run, step)
                if 0 < sum_ < math.inf:
                    rows.append({**placed.facts(), "theorem": number, "step": step, "predicted": sum_, "update": value})
    return pd.DataFrame(rows, columns=list(COLUMNS))


def r_squared(frame: pd.DataFrame) -> float:
    """Of log ‖ΔF‖ by the sum and one constant a theorem; NaN for fewer than three points or no spread."""
    return _explained(frame, "theorem") if len(frame) > 2 else math.nan


def _explained(frame: pd.DataFrame, by: str) -> float:
    """1 − what a constant for each of `by` leaves of log ‖ΔF‖ over its spread."""
    measured, predicted = (frame[name].astype(float).map(math.log) for name in ("update", "predicted"))
    rest = measured - predicted
    left = ((rest - rest.groupby(frame[by]).transform("mean")) ** 2).sum()
    spread = ((measured - measured.mean()) ** 2).sum()
    return float(1 - left / spread) if spread > 0 else math.nan


def by_what(frame: pd.DataFrame) -> list[tuple[str, float]]:
    """(over what, R²): over the runs at one step, that which most of them have; over all steps; and over all steps with
    a constant for each method that has three points or more."""
    if len(frame) < 3:
        return []
    counts = frame["step"].value_counts()
    step = int(max(counts.index[counts == counts.max()]))
    spreads = [(f"over {counts.max()} runs at step {step}", r_squared(frame[frame["step"] == step]))]
    spreads.append(("over all steps", r_squared(frame)))
    several = frame[frame.groupby("label")["step"].transform("size") >= 3]
    if several["label"].nunique() > 1:
        spreads.append(("with one constant per method", _explained(several, "label")))
    return [(what, value) for what, value in spreads if not math.isnan(value)]


def title(runs: Sequence[Run]) -> str:
    """R² with one constant a theorem."""
    frame = select(runs)
    spreads = by_what(frame)
    if not spreads:
        return "The theorem's prediction against the measurement"
    texts = [f"{value:.2f} {what}" for what, value in spreads]
    one_theorem = frame["theorem"].nunique() == 1
    who = "With one constant the theorem explains" if one_theorem else "With one constant each, the theorems explain"
    return f"{who} ‖ΔF‖ with R² = {', '.join(texts)}"


def alt(frame: pd.DataFrame) -> str:
    parts = [f"{label} R² {short(r_squared(rows))}" for label, rows in frame.groupby("label", sort=False)]
    return f"Measured against predicted ‖ΔF‖, both logarithmic. {'; '.join(parts)}."


def draw(frame: pd.DataFrame) -> Figure:
    """One panel: a dot a run and step, in the method's colour."""
    figure, (axes,) = style.panels(1, 1, 3.9, titles=0, right=2.2)
    x, y = (frame[name].to_numpy(float) for name in ("predicted", "update"))
    style.log_axis(axes, "x", x.min() / 1.5, x.max() * 1.5)
    style.log_axis(axes, "y", y.min() / 1.5, y.max() * 1.5)
    handles = [_dots(axes, str(label), rows) for label, rows in frame.groupby("label", sort=False)]
    for number, rows in frame.groupby("theorem"):
        prediction = rows["predicted"].astype(float)
        level = math.exp((rows["update"].astype(float) / prediction).map(math.log).mean())
        ends = np.array([prediction.min(), prediction.max()])
        axes.plot(ends, level * ends, color=style.INK, linewidth=0.9, alpha=0.5)
        where = (ends[0], level * ends[0])  # the other end may lie above the panel
        axes.annotate(f"Theorem {number}", where, xytext=(4, 8), textcoords="offset points", fontsize=7)
    axes.set_xlabel("the theorem's prediction, up to a constant")
    axes.set_ylabel("measured ‖ΔF‖, output units")
    style.legend(axes, handles, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return figure


def _dots(axes: Axes, label: str, rows: pd.DataFrame) -> Line2D:
    method = str(rows["method"].iloc[0])
    name = f"{lettering.safe(label, 40)}, R² {short(r_squared(rows))}"
    (handle,) = axes.plot(
        rows["predicted"], rows["update"], ".", color=style.colour(method), markersize=4, alpha=0.6, label=name
    )
    style.mark(handle, method, listed(label, "by its prediction"), x="what the theorem predicts")
    return handle


PICTURE: RunPicture = Picture(
    name="theory",
    short="Theory and measurement",
    room="depth",
    caption=(
        "DeepNet Theorems 2, 3 and, under SGD, 4 (journal version), predicted against measured: not drawn in the paper."
    ),
    see="On a line of slope 1 the theorem (2 and 3 from that step's ‖Δθ‖) predicts ‖ΔF‖ up to a constant.",
    read=(
        Note(
            "Each point is one run at one step; each theorem's line uses the constant that fits its points best. R² "
            "is of the logarithms, with one constant per theorem. It is below 0 where the mean alone would predict "
            "better; over all steps it is higher because both sides grow in time. Points beyond half of √(2d), where "
            "‖ΔF‖ bends, are left out."
        ),
    ),
    columns=COLUMNS,
    value="update",
    select=select,
    draw=draw,
    title=title,
    alt=alt,
    none="No run has a prediction.",
    optional=True,
    at_start=True,
)
