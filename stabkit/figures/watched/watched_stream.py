"""The size of the residual stream along the layers, update by update."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from stabkit.figures.drawing import step_lines
from stabkit.figures.shared import watched
from stabkit.figures.shared.words import short
from stabkit.storage.watched import Watched

NAME = "watched_stream"
SHORT = "Stream"
INDEX: str | None = None
VALUE = "value"
CAPTION = "‖x_i‖/√d, mean over the probe batch's tokens, x_i what leaves sub-layer i, in eval mode."
READ = (
    "Lines that stay together: the stream keeps its size on the way up. A jump between two readings, while the rate is "
    "what it was, is what an update did that was too large."
)


def select(found: Watched) -> pd.DataFrame:
    """One row a stack, sub-layer and reading; at most six sub-layers of a stack."""
    stream = found.cell.records["stream"]
    lines: list[watched.Line] = []
    for stack in found.cell.stacks:
        names = [stack, *(own.name for own in found.cell.of(stack))]
        panel = stack if len(found.cell.stacks) > 1 else ""
        for name in watched.some(names):
            text = f"{stack}, input" if name == stack else name
            lines.append((text, panel, stream.steps, stream.at(name)))
    return watched.frame(lines)


def title(found: Watched) -> str:
    """How much the end of the last stack grew from the first reading to the last."""
    last = found.cell.facts.sublayers[-1].name
    values = found.cell.records["stream"].at(last)
    ratio = values[-1] / values[0] if values[0] else np.nan
    return f"Stream: {last} ends at {short(float(ratio))} times its size at the start"


def alt(frame: pd.DataFrame) -> str:
    """What the picture shows, for those who do not see it."""
    return watched.said(frame, "rms of the residual stream")


def draw(frame: pd.DataFrame) -> Figure:
    """A panel a stack."""
    return step_lines.draw(frame, "rms of x", {})
