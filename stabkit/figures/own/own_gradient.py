"""What part of the top layer's gradient reaches each layer, at the step at which the link is judged."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from stabkit.figures.drawing import depth_curves
from stabkit.figures.shared import probed
from stabkit.figures.shared.probed import COLUMNS
from stabkit.results.own.judged import Judged

NAME = "own_gradient"
SHORT = "Gradient"
INDEX: str | None = None
VALUE = "value"
CAPTION = "‖∂L/∂θ‖ over all parameters of a layer, over that of the top layer, before the update of the step judged."
READ = (
    "Level: every layer learns alike. Falling to the right: the lower layers receive next to nothing and stand still; "
    "rising: their gradients explode. In stabkit's own runs nothing trained below 10⁻⁴, nearly all did above 10⁻²."
)
LIMITS = {1e-2: "warns below", 1e-4: "fails below", 1e2: "warns above", 1e4: "fails above"}


def select(found: Judged) -> pd.DataFrame:
    """One row a cell, stack and layer; x is the share of the way from the top layer to the lowest."""
    steps = {verdict.lr: verdict.gradient.step for verdict in found.verdicts}
    rows: list[dict[str, object]] = []
    for cell in found.cells:
        for stack in cell.stacks:
            norms = cell.gradients(stack)
            if norms.shape[1] < 2:
                continue
            own = norms[min(steps[cell.facts.lr], len(norms) - 1)]
            top = float(own[-1]) or float("nan")
            points = [(i / (len(own) - 1), float(value) / top) for i, value in enumerate(own[::-1])]
            rows += probed.rows(cell, probed.panel(found, cell, stack), points)
    return pd.DataFrame(rows, columns=list(COLUMNS))


def title(found: Judged) -> str:
    """What the link's verdict says."""
    return f"Gradient: {found.worst.gradient.why}"


def alt(frame: pd.DataFrame) -> str:
    """What the picture shows, for those who do not see it."""
    return probed.said(frame, "Gradient of each layer over the top layer's")


def draw(frame: pd.DataFrame) -> Figure:
    """A panel a stack and rate."""
    return depth_curves.draw(
        frame, "way through the stack, from the top layer to the lowest", "gradient ÷ top layer's", LIMITS
    )
