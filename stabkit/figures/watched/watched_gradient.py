"""What part of the top layer's gradient reaches each layer, update by update."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from stabkit.figures.drawing import step_lines
from stabkit.figures.shared import watched
from stabkit.storage.watched import Watched

NAME = "watched_gradient"
SHORT = "Gradient"
INDEX: str | None = None
VALUE = "value"
CAPTION = "‖∂L/∂θ‖ over all parameters of a layer, over that of the top layer, before every update."
READ = (
    "Level at 1: every layer learns alike. A line that falls: that layer receives less and less and stands still; few "
    "of stabkit's own runs came back from below 10⁻². A line that rises: its gradient explodes."
)
LIMITS = {1e-2: "warns below", 1e-4: "nothing trained", 1e2: "warns above"}


def select(found: Watched) -> pd.DataFrame:
    """One row a stack, layer and update; at most six layers of a stack."""
    lines: list[watched.Line] = []
    table = found.cell.records.get("gradient")
    for stack in found.cell.stacks:
        if table is None:
            continue
        norms = found.cell.gradients(stack)
        if norms.shape[1] < 2:
            continue
        with np.errstate(all="ignore"):
            ratio = norms / norms[:, -1:]
        panel = stack if len(found.cell.stacks) > 1 else ""
        for layer in watched.some(range(norms.shape[1] - 1)):
            lines.append((f"{stack}.{layer + 1}", panel, table.steps, ratio[:, layer]))
    return watched.frame(lines)


def title(found: Watched) -> str:
    """The lowest that a layer came to, and what became of it."""
    own = select(found)
    own = own[np.isfinite(own["value"])]
    if own.empty:
        return "Gradient: no two layers could be compared"
    least = own.loc[own["value"].idxmin()]
    if least["value"] > 0.5:
        return "Gradient: every layer receives as much as the top layer, or more"
    return f"Gradient: {least['run']} receives {least['value']:.2g} of the top layer's at update {least['x']:,}"


def alt(frame: pd.DataFrame) -> str:
    """What the picture shows, for those who do not see it."""
    return watched.said(frame, "Gradient of each layer over the top layer's")


def draw(frame: pd.DataFrame) -> Figure:
    """A panel a stack."""
    return step_lines.draw(frame, "gradient ÷ top layer's", LIMITS)
