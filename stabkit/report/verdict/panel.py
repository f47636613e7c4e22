"""A run's own curves, small: its training loss and ‖ΔF‖ by step, its gradient by layer at the end. From its records."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stabkit.results.conditions import output_layers, shown
from stabkit.results.readings import series
from stabkit.results.run import Run
from stabkit.spec import RunSpec
from stabkit.words import listed, short

WIDTH, HEIGHT, MARGIN = 240, 70, 3
MOST_POINTS = 60
"""Points of a curve."""


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
    if table is None or not set(sites) <= set(table.sites):
        return np.empty(0, dtype=np.int64), np.empty(0)
    values = table.select(sites)
    finite = np.flatnonzero(np.isfinite(values).all(axis=1))
    if not len(finite):
        return np.empty(0, dtype=np.int64), np.empty(0)
    return np.arange(1, len(sites) + 1), values[finite[-1]]


def _curve(name: str, along: str, x: NDArray[np.int64], y: NDArray[np.float64], *, logarithmic: bool = False) -> Curve:
    keep = np.flatnonzero(np.isfinite(y) & (y > 0) if logarithmic else np.isfinite(y))
    if len(keep) < 2:
        return Curve(f"{name}: not recorded", "")
    keep = keep[np.unique(np.linspace(0, len(keep) - 1, MOST_POINTS).round().astype(int))]
    across, up = x[keep].astype(float), np.log10(y[keep]) if logarithmic else y[keep]
    low, high = float(up.min()), float(up.max())
    first, last = across[0], across[-1]
    points = " ".join(
        f"{MARGIN + (WIDTH - 2 * MARGIN) * (a - first) / max(last - first, 1):.0f},"
        f"{MARGIN + (HEIGHT - 2 * MARGIN) * (high - b) / max(high - low, math.ulp(1)):.1f}"
        for a, b in zip(across, up, strict=True)
    )
    ends = f"{short(float(y[keep[0]]), 3)} at {along} {x[keep[0]]} to {short(float(y[keep[-1]]), 3)} at {x[keep[-1]]}"
    return Curve(f"{name}, {ends}{', logarithmic' if logarithmic else ''}", points)
