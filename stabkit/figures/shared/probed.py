"""What the pictures of a user's model are made of: cells with their verdicts, as rows of a frame."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from stabkit.figures.shared.words import short
from stabkit.results.own.cell import ModelCell
from stabkit.results.own.depth_fit import geometric
from stabkit.results.own.judged import Judged
from stabkit.results.tolerance import power

COLUMNS = ("run", "panel", "depth", "seed", "x", "value")


def panel(judged: Judged, cell: ModelCell, stack: str = "") -> str:
    """Where a cell is drawn: by rate where there are several, by stack where there are."""
    rate = f"rate {power(cell.facts.lr)}" if len(judged.verdicts) > 1 else ""
    stack = stack if len(cell.stacks) > 1 else ""
    return ", ".join(word for word in (rate, stack) if word)


def depth_text(cell: ModelCell) -> str:
    """`12 layers`; of a factory that takes no depth, the sub-layers found."""
    depth = cell.facts.depth
    return f"{depth} layers" if depth is not None else f"{len(cell.facts.sublayers)} sub-layers"


def rows(cell: ModelCell, panel: str, points: Sequence[tuple[float, float]]) -> list[dict[str, object]]:
    """A curve as rows of a frame."""
    return [
        {
            "run": f"{depth_text(cell)}, seed {cell.facts.seed}{f', {panel}' if panel else ''}",
            "panel": panel,
            "depth": cell.facts.depth or 0,
            "seed": cell.facts.seed,
            "x": x,
            "value": value,
        }
        for x, value in points
    ]


def said(frame: pd.DataFrame, what: str) -> str:
    """The picture in words: where each depth ends."""
    if frame.empty:
        return "Nothing was recorded."
    parts = []
    for (panel, depth), own in frame.groupby(["panel", "depth"], sort=False):
        last = geometric(own[own["x"] == own["x"].max()]["value"].tolist())
        where = f"{depth} layers" if depth else "the model"
        parts.append(f"{where}{f', {panel}' if panel else ''}: {short(last)}")
    return f"{what}, at its right end: {'; '.join(parts)}."
