"""The residual stream before any update, from the first sub-layer to the last, a curve a depth."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from stabkit.figures.drawing import depth_curves
from stabkit.figures.shared import probed
from stabkit.figures.shared.probed import COLUMNS
from stabkit.results.own.judged import Judged

NAME = "own_stream"
SHORT = "Stream"
INDEX: str | None = None
VALUE = "value"
CAPTION = "rms of x_i before any update, x_i what leaves sub-layer i; the band is the range over seeds."
READ = (
    "The axis is logarithmic: a straight slope is growth by a factor a layer; independent branches, which add up as "
    "the square root of their number, bend down. Where every sub-layer ends in a norm it is level."
)


def select(found: Judged) -> pd.DataFrame:
    """One row a cell, stack and sub-layer; x is the share of the way through the stack."""
    rows: list[dict[str, object]] = []
    for cell in found.cells:
        stream = cell.records["stream"]
        for stack in cell.stacks:
            names = [stack, *(own.name for own in cell.of(stack))]
            points = [(i / (len(names) - 1), float(stream.at(name)[0])) for i, name in enumerate(names)]
            rows += probed.rows(cell, probed.panel(found, cell, stack), points)
    return pd.DataFrame(rows, columns=list(COLUMNS))


def title(found: Judged) -> str:
    """What the link's verdict says."""
    why = found.worst.stream.why
    return f"Stream: {why}"


def alt(frame: pd.DataFrame) -> str:
    """What the picture shows, for those who do not see it."""
    return probed.said(frame, "rms of the residual stream")


def draw(frame: pd.DataFrame) -> Figure:
    """A panel a stack and rate."""
    return depth_curves.draw(frame, "way through the stack, from the first sub-layer to the last", "rms of x", {})
