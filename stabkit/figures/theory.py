"""Measured ‖ΔF‖ against what the theorem makes of the measured ‖Δθ‖, over steps, depths and methods, with R².

The theorem gives an order of growth, so a constant is free and nothing else: on logarithmic axes the prediction is a
line of slope 1, and R² = 1 − Σ(log m − log p − c)²/Σ(log m − mean)², c the mean of log m − log p. Points are the steps
STEPS of every run, as long as ‖ΔF‖ is below half of √(2d), where it bends.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from stabkit.figures import style, theorem
from stabkit.figures.comparison import FACTS, listed, series, short, shown
from stabkit.figures.contrast import SATURATED
from stabkit.store import Run

NAME = "theory"
SHORT = "Theory and measurement"
INDEX: str | None = None
VALUE = "update"
CAPTION = "DeepNet Theorems 2 and 3 (journal version), predicted against measured: not drawn in the paper."
READ = (
    "A point is one run at one step. On a line of slope 1 the theorem's sum, from the ‖Δθ‖ of that step, tells ‖ΔF‖ up "
    "to a constant; the grey line has the one constant that suits all points best. R² is of the logarithms, and falls "
    "below 0 where the mean alone would predict better."
)
STEPS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
COLUMNS = (*FACTS, "step", "predicted", "update")
OPTIONAL = True
"""Not on pages without a method that the theorems speak of."""


def select(runs: Sequence[Run]) -> pd.DataFrame:
    """One row a run and step of STEPS."""
    rows = []
    for each in shown(runs):
        steps, values = series(each.run, "update", "state")
        bends = SATURATED * math.sqrt(2 * each.run.spec.model.hidden)
        for step, value in zip(steps.tolist(), values.tolist(), strict=True):
            if step in STEPS and 0 < value <= bends:
                sum_ = theorem.predicted(each.run, step)
                if 0 < sum_ < math.inf:
                    rows.append({**each.facts(), "step": step, "predicted": sum_, "update": value})
    return pd.DataFrame(rows, columns=list(COLUMNS))


def r_squared(frame: pd.DataFrame) -> float:
    """Of log ‖ΔF‖ by the sum and one constant; NaN for fewer than three points or no spread."""
    measured, told = np.log(frame["update"].to_numpy(float)), np.log(frame["predicted"].to_numpy(float))
    spread = ((measured - measured.mean()) ** 2).sum() if len(measured) > 2 else 0.0
    if not spread > 0:
        return math.nan
    rest = measured - told
    return float(1 - ((rest - rest.mean()) ** 2).sum() / spread)


def by_what(frame: pd.DataFrame) -> list[tuple[str, float]]:
    """(what one constant is for, R²): all together; over depths and steps, of each method; over steps, of each run."""

    def mean_of(keys: list[str]) -> float:
        """1 − the groups' residuals together over the spread of all, each group with a constant of its own."""
        logs = frame.assign(m=np.log(frame["update"].astype(float)), p=np.log(frame["predicted"].astype(float)))
        rest = logs["m"] - logs["p"]
        left = rest - rest.groupby([frame[key] for key in keys]).transform("mean")
        spread = ((logs["m"] - logs["m"].mean()) ** 2).sum()
        return float(1 - (left**2).sum() / spread) if spread > 0 else math.nan

    if len(frame) < 3:
        return []
    found = [("all methods, depths and steps", r_squared(frame))]
    if frame["label"].nunique() > 1:
        found.append(("each method", mean_of(["label"])))
    if frame["depth"].nunique() > 1:
        found.append(("each method and depth", mean_of(["label", "depth"])))
    return found


def title(runs: Sequence[Run]) -> str:
    """R² with one constant for all."""
    frame = select(runs)
    found = by_what(frame)
    if not found or math.isnan(found[0][1]):
        return "What the theorem predicts against what was measured"
    rest = "".join(f"; {short(value)} with one for {what}" for what, value in found[1:])
    return f"The theorem's sum explains ‖ΔF‖ with R² = {short(found[0][1])} and one constant for all{rest}"


def alt(frame: pd.DataFrame) -> str:
    """What the picture shows, for those who do not see it."""
    if frame.empty:
        return "No run has a prediction."
    parts = [f"{label} R² {short(r_squared(own))}" for label, own in frame.groupby("label", sort=False)]
    return f"Measured against predicted ‖ΔF‖, both logarithmic. {'; '.join(parts)}."


def draw(frame: pd.DataFrame) -> Figure:
    """One panel: a dot a run and step, in the method's colour."""
    with style.look():
        if frame.empty:
            return style.empty("No run has a prediction: the theorems speak of norms after the sum.")
        figure, (axes,) = style.panels(1, 1, 3.9, titles=0, right=2.2)
        x, y = (frame[name].to_numpy(float) for name in ("predicted", "update"))
        style.log_axis(axes, "x", x.min() / 1.5, x.max() * 1.5)
        style.log_axis(axes, "y", y.min() / 1.5, y.max() * 1.5)
        handles = [_dots(axes, str(label), own) for label, own in frame.groupby("label", sort=False)]
        level = float(np.exp((np.log(y) - np.log(x)).mean()))
        ends = np.array([x.min(), x.max()])
        axes.plot(ends, level * ends, color=style.INK, linewidth=0.9, alpha=0.5)
        axes.set_xlabel("the theorem's sum over the measured ‖Δθ‖")
        axes.set_ylabel("measured ‖ΔF‖, output units")
        style.legend(axes, handles, loc="upper left", bbox_to_anchor=(1.0, 1.0))
        return figure


def _dots(axes: Axes, label: str, own: pd.DataFrame) -> Line2D:
    method = str(own["method"].iloc[0])
    name = f"{style.safe(label, 40)}, R² {short(r_squared(own))}"
    (handle,) = axes.plot(
        own["predicted"], own["update"], ".", color=style.colour(method), markersize=4, alpha=0.6, label=name
    )
    style.mark(handle, method, listed(label, "by its prediction"))
    return handle
