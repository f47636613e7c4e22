"""The small curves in the cells of the verdict matrix.

A cell whose runs were judged has their validation loss, with a line at the unigram loss; any other ‖ΔF‖,
logarithmic, and where that is saturated none. All sparks of one kind have one scale.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stabkit.results.matrix import Matrix, VerdictCell
from stabkit.results.points import HIGHEST, LOWEST
from stabkit.results.readings import series
from stabkit.results.run import Run

MOST_POINTS = 48
"""Of a curve."""
CURVES = 16
"""Of a cell: those of its first seeds."""
WIDTH, HEIGHT, MARGIN = 96, 30, 2
"""Of a drawing."""
Points = tuple[list[float], list[float]]


@dataclass(frozen=True, slots=True)
class Spark:
    """One cell's curves as points of polylines, and the height of its reference line; NaN for none."""

    curves: tuple[str, ...]
    level: float = math.nan


class _Scale:
    """A drawing scaled to what is drawn in it."""

    def __init__(self, x: Iterable[float], y: Iterable[float]) -> None:
        xs, ys = list(x), list(y)
        self.first, self.last = min(xs, default=0.0), max(xs, default=1.0)
        self.low, self.high = min(ys, default=0.0), max(ys, default=1.0)

    def down(self, y: float) -> float:
        return MARGIN + (HEIGHT - 2 * MARGIN) * (self.high - y) / max(self.high - self.low, math.ulp(1))

    def points(self, x: Sequence[float], y: Sequence[float]) -> str:
        wide, span = WIDTH - 2 * MARGIN, max(self.last - self.first, 1)
        return " ".join(
            f"{MARGIN + wide * (a - self.first) / span:.1f},{self.down(b):.1f}" for a, b in zip(x, y, strict=True)
        )


def sparks(runs: Sequence[Run], verdicts: Matrix) -> Mapping[tuple[str, ...], Spark]:
    """{ids of a cell's runs: its spark}."""
    by = {run.run_id: run for run in runs}
    cells = [cell for row in verdicts.rows for cell in row.cells if cell.run_ids]
    judged = [cell for cell in cells if math.isfinite(cell.loss)]
    others = [cell for cell in cells if not math.isfinite(cell.loss) and not cell.saturated]
    levels = {cell.run_ids: cell.unigram for cell in judged}
    losses = {cell.run_ids: [_loss(by[one]) for one in cell.run_ids[:CURVES]] for cell in judged}
    none = {cell.run_ids: Spark(()) for cell in cells}
    return none | _scaled(losses, levels) | _scaled({cell.run_ids: _updates(cell, by) for cell in others}, {})


def _loss(run: Run) -> Points:
    steps, values = series(run, "validation", "validation")
    return _thinned(steps, values, np.isfinite(values))


def _updates(cell: VerdictCell, by: Mapping[str, Run]) -> list[Points]:
    rows = []
    for name in cell.run_ids[:CURVES]:
        steps, values = series(by[name], "update", "state")
        seen = (values >= LOWEST) & (values <= HIGHEST)
        rows.append(_thinned(steps, np.log10(np.where(seen, values, 1.0)), seen))
    return rows


def _thinned(steps: NDArray[Any], values: NDArray[Any], keep: NDArray[Any]) -> Points:
    """The points where it is so, so many at most, evenly spread."""
    seen = np.flatnonzero(keep)
    if len(seen):
        seen = seen[np.unique(np.linspace(0, len(seen) - 1, MOST_POINTS).round().astype(int))]
    return steps[seen].astype(float).tolist(), values[seen].tolist()


def _scaled(
    curves: Mapping[tuple[str, ...], Sequence[Points]], levels: Mapping[tuple[str, ...], float]
) -> dict[tuple[str, ...], Spark]:
    """All of them from the first to the last step of any, and from the least to the greatest height."""
    every = [curve for own in curves.values() for curve in own]
    lines = {key: level for key, level in levels.items() if math.isfinite(level)}
    scale = _Scale((x for xs, _ in every for x in xs), (*(y for _, ys in every for y in ys), *lines.values()))
    return {
        key: Spark(
            tuple(scale.points(*curve) for curve in own),
            round(scale.down(lines[key]), 1) if key in lines else math.nan,
        )
        for key, own in curves.items()
    }
