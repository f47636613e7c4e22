"""The small curves in the cells of the verdict matrix.

A cell whose runs were judged has their validation loss, with a line at the unigram loss; any other ‖ΔF‖,
logarithmic, and where that is saturated none. All curves of one kind have one scale.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from stabkit.report.verdict.matrix import Matrix, VerdictCell
from stabkit.results.points import HIGHEST, LOWEST
from stabkit.results.readings import series
from stabkit.results.run import Run

WIDTH, HEIGHT, MARGIN = 96, 30, 2
MOST_SPARKS = 48
"""Points of a curve."""
CURVES = 16
"""Of a cell: those of its first seeds."""


@dataclass(frozen=True, slots=True)
class Spark:
    """One cell's curves as points of polylines, and the height of its reference line; NaN for none."""

    curves: tuple[str, ...]
    level: float = math.nan


Curve = tuple[list[float], list[float]]


def of(runs: Sequence[Run], verdicts: Matrix) -> Mapping[tuple[str, ...], Spark]:
    """{ids of a cell's runs: its spark}."""
    by = {run.run_id: run for run in runs}
    cells = [cell for row in verdicts.rows for cell in row.cells if cell.run_ids]
    judged = [cell for cell in cells if math.isfinite(cell.loss)]
    others = [cell for cell in cells if not math.isfinite(cell.loss) and not cell.saturated]
    levels = {cell.run_ids: cell.unigram for cell in judged}
    losses = {cell.run_ids: [_loss(by[one]) for one in cell.run_ids[:CURVES]] for cell in judged}
    none = {cell.run_ids: Spark(()) for cell in cells}
    return none | _scaled(losses, levels) | _scaled({cell.run_ids: _updates(cell, by) for cell in others}, {})


def _loss(run: Run) -> Curve:
    steps, values = series(run, "validation", "validation")
    return _thinned(steps, values, np.isfinite(values))


def _updates(cell: VerdictCell, by: Mapping[str, Run]) -> list[Curve]:
    rows = []
    for name in cell.run_ids[:CURVES]:
        steps, values = series(by[name], "update", "state")
        seen = (values >= LOWEST) & (values <= HIGHEST)
        rows.append(_thinned(steps, np.log10(np.where(seen, values, 1.0)), seen))
    return rows


def _thinned(steps: np.ndarray, values: np.ndarray, keep: np.ndarray) -> Curve:
    seen = np.flatnonzero(keep)
    seen = seen[np.unique(np.linspace(0, len(seen) - 1, MOST_SPARKS).round().astype(int))] if len(seen) else seen
    return steps[seen].astype(float).tolist(), values[seen].tolist()


def _scaled(
    curves: Mapping[tuple[str, ...], Sequence[Curve]], levels: Mapping[tuple[str, ...], float]
) -> dict[tuple[str, ...], Spark]:
    """All of them from the first to the last step of any, and from the least to the greatest height."""
    every = [curve for own in curves.values() for curve in own]
    heights = [y for _, ys in every for y in ys] + [level for level in levels.values() if math.isfinite(level)]
    ends = [x for xs, _ in every for x in xs]
    first, last = min(ends, default=0.0), max(ends, default=1.0)
    low, high = min(heights, default=0.0), max(heights, default=1.0)

    def down(y: float) -> float:
        return MARGIN + (HEIGHT - 2 * MARGIN) * (high - y) / max(high - low, math.ulp(1))

    def point(x: float, y: float) -> str:
        return f"{MARGIN + (WIDTH - 2 * MARGIN) * (x - first) / max(last - first, 1):.1f},{down(y):.1f}"

    return {
        key: Spark(
            tuple(" ".join(point(x, y) for x, y in zip(*curve, strict=True)) for curve in own),
            round(down(levels[key]), 1) if math.isfinite(levels.get(key, math.nan)) else math.nan,
        )
        for key, own in curves.items()
    }
