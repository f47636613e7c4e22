"""The small curves of a page. A run's own: its training loss and ‖ΔF‖ by step, its gradient by layer at the end. And
those in the cells of the verdict matrix, the sparks.

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

from stabkit.results.conditions import output_layers, shown
from stabkit.results.matrix import Matrix, VerdictCell
from stabkit.results.points import HIGHEST, LOWEST
from stabkit.results.readings import series
from stabkit.results.run import Run
from stabkit.spec import RunSpec
from stabkit.words import listed, short

MOST_POINTS, MOST_SPARKS = 60, 48
"""Points of a curve of a run, and of a cell."""
CURVES = 16
"""Of a cell: those of its first seeds."""
Points = tuple[list[float], list[float]]


@dataclass(frozen=True, slots=True)
class Curve:
    """One of a run's curves: its name with both ends, and the points of a polyline; "" where nothing was recorded."""

    words: str
    points: str


@dataclass(frozen=True, slots=True)
class RunCurves:
    """The curves of one run."""

    key: str
    method: str
    words: str
    curves: tuple[Curve, ...]


@dataclass(frozen=True, slots=True)
class Spark:
    """One cell's curves as points of polylines, and the height of its reference line; NaN for none."""

    curves: tuple[str, ...]
    level: float = math.nan


class _Scale:
    """A drawing of this width and height, scaled to what is drawn in it."""

    def __init__(self, size: tuple[int, int, int, int], x: Iterable[float], y: Iterable[float]) -> None:
        xs, ys = list(x), list(y)
        self.width, self.height, self.margin, self.digits = size
        self.first, self.last = min(xs, default=0.0), max(xs, default=1.0)
        self.low, self.high = min(ys, default=0.0), max(ys, default=1.0)

    def down(self, y: float) -> float:
        return self.margin + (self.height - 2 * self.margin) * (self.high - y) / max(self.high - self.low, math.ulp(1))

    def points(self, x: Sequence[float], y: Sequence[float]) -> str:
        wide, span = self.width - 2 * self.margin, max(self.last - self.first, 1)
        return " ".join(
            f"{self.margin + wide * (a - self.first) / span:.{self.digits}f},{self.down(b):.1f}"
            for a, b in zip(x, y, strict=True)
        )


OF_RUN, OF_CELL = (240, 70, 3, 0), (96, 30, 2, 1)
"""Width, height and margin of a drawing, and the digits of its x."""


def _some(keep: NDArray[Any], most: int) -> NDArray[Any]:
    """Places where it is so, so many at most, evenly spread."""
    seen = np.flatnonzero(keep)
    return seen[np.unique(np.linspace(0, len(seen) - 1, most).round().astype(int))] if len(seen) else seen


def key(spec: RunSpec) -> str:
    """The id of a run's panel."""
    return f"curves-{spec.run_id[-12:]}"


def panels(runs: Sequence[Run]) -> list[RunCurves]:
    """One a run, in the order of the tables."""
    return [
        RunCurves(
            key(each.run.spec),
            each.paint,
            listed(f"{each.label} {each.run.spec.depth}", each.condition, f"seed {each.run.spec.seed}"),
            (
                _curve("training loss", "step", *series(each.run, "loss", "train")),
                _curve("‖ΔF‖", "step", *series(each.run, "update", "state"), logarithmic=True),
                _curve("gradient at the end", "layer", *_gradient(each.run), logarithmic=True),
            ),
        )
        for each in shown(runs)
    ]


def _gradient(run: Run) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """(layers, norms) of the output's stack at the last step at which all are finite."""
    table, sites = run.records.get("grad_norm"), output_layers(run.spec)
    if table is not None and set(sites) <= set(table.sites):
        values = table.select(sites)
        if len(finite := np.flatnonzero(np.isfinite(values).all(axis=1))):
            return np.arange(1, len(sites) + 1), values[finite[-1]]
    return np.empty(0, dtype=np.int64), np.empty(0)


def _curve(name: str, along: str, x: NDArray[np.int64], y: NDArray[np.float64], *, logarithmic: bool = False) -> Curve:
    keep = _some(np.isfinite(y) & (y > 0) if logarithmic else np.isfinite(y), MOST_POINTS)
    if len(keep) < 2:
        return Curve(f"{name}: not recorded", "")
    across, up = x[keep].astype(float), np.log10(y[keep]) if logarithmic else y[keep]
    ends = f"{short(float(y[keep[0]]), 3)} at {along} {x[keep[0]]} to {short(float(y[keep[-1]]), 3)} at {x[keep[-1]]}"
    points = _Scale(OF_RUN, across, up).points(across.tolist(), up.tolist())
    return Curve(f"{name}, {ends}{', logarithmic' if logarithmic else ''}", points)


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
    seen = _some(keep, MOST_SPARKS)
    return steps[seen].astype(float).tolist(), values[seen].tolist()


def _scaled(
    curves: Mapping[tuple[str, ...], Sequence[Points]], levels: Mapping[tuple[str, ...], float]
) -> dict[tuple[str, ...], Spark]:
    """All of them from the first to the last step of any, and from the least to the greatest height."""
    every = [curve for own in curves.values() for curve in own]
    lines = {key: level for key, level in levels.items() if math.isfinite(level)}
    scale = _Scale(OF_CELL, (x for xs, _ in every for x in xs), (*(y for _, ys in every for y in ys), *lines.values()))
    return {
        key: Spark(
            tuple(scale.points(*curve) for curve in own),
            round(scale.down(lines[key]), 1) if key in lines else math.nan,
        )
        for key, own in curves.items()
    }
