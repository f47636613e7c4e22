"""How far the updates have moved the output, step by step, a curve a depth."""

from __future__ import annotations

import math

import pandas as pd
from matplotlib.figure import Figure

from stabkit.figures.drawing import depth_curves
from stabkit.figures.shared import probed
from stabkit.figures.shared.probed import COLUMNS
from stabkit.results.own.judged import Judged

NAME = "own_update"
SHORT = "Update"
INDEX: str | None = None
VALUE = "value"
CAPTION = "‖F(θ_t) − F(θ_0)‖/‖F(θ_0)‖, F the last stack's output after its final norm, mean over the batch's tokens."
READ = (
    "Curves that lie on one another: depth does not change how far an update reaches. At √2 the output has nothing to "
    "do with what it was: a plateau there is saturation, not stability."
)
LIMITS = {0.9: "saturated", math.sqrt(2): "√2: nothing of the start is left"}


def select(found: Judged) -> pd.DataFrame:
    """One row a cell and step; step 0, at which nothing has moved, is left out."""
    rows: list[dict[str, object]] = []
    for cell in found.cells:
        steps = cell.records["update"].steps
        points = [(int(t), float(value)) for t, value in zip(steps[1:], cell.update()[1:], strict=True)]
        rows += probed.rows(cell, probed.panel(found, cell), points)
    return pd.DataFrame(rows, columns=list(COLUMNS))


def title(found: Judged) -> str:
    """What the link's verdict says."""
    return f"Update: {found.worst.update.why}"


def alt(frame: pd.DataFrame) -> str:
    """What the picture shows, for those who do not see it."""
    return probed.said(frame, "Share of its size that the output has moved")


def draw(frame: pd.DataFrame) -> Figure:
    """A panel a rate."""
    return depth_curves.draw(frame, "update", "‖ΔF‖ ÷ ‖F‖", LIMITS)
