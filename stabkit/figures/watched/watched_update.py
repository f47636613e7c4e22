"""How far the output has moved since the start, and how far one update moves the weights, update by update."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from stabkit.figures.drawing import step_lines
from stabkit.figures.shared import watched
from stabkit.storage.watched import Watched

NAME = "watched_update"
SHORT = "Update"
INDEX: str | None = None
VALUE = "value"
CAPTION = (
    "‖F(θ_t) − F(θ_0)‖/‖F(θ_0)‖, F the last stack's output after its final norm; ‖θ_t − θ_{t−1}‖/‖θ_{t−1}‖ of the "
    "sub-layer that an update moves most."
)
READ = (
    "Output: how far it is from where it began; at √2 it has nothing to do with that. Largest step: where one update "
    "moves a sub-layer by as much as its own norm, the rate is too high for it."
)
LIMITS = {1.0: "an update as large as the weights"}
OUTPUT, WEIGHTS = "output", "largest step"


def select(found: Watched) -> pd.DataFrame:
    """One row a number and reading."""
    update, delta = found.cell.records["update"], found.cell.records.get("delta")
    lines: list[watched.Line] = [(OUTPUT, "", update.steps, update.at("state@relative"))]
    if delta is not None:
        names = [f"{own.name}@relative" for own in found.cell.facts.sublayers]
        lines.append((WEIGHTS, "", delta.steps, delta.select(names).max(axis=1)))
    return watched.frame(lines)


def title(found: Watched) -> str:
    """Where the output is in the end, and the largest step of the weights."""
    own = select(found)
    moved, steps = (own[own["run"] == name]["value"].to_numpy() for name in (OUTPUT, WEIGHTS))
    most = f", one update moves weights by up to {np.nanmax(steps):.2g} of their norm" if len(steps) else ""
    return f"Update: the output ends {moved[-1]:.2g} times its size away from the start{most}"


def alt(frame: pd.DataFrame) -> str:
    """What the picture shows, for those who do not see it."""
    return watched.said(frame, "Relative movement")


def draw(frame: pd.DataFrame) -> Figure:
    """One panel."""
    return step_lines.draw(frame, "relative movement", LIMITS)
