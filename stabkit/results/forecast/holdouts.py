"""Forecasts of runs by fits that have not seen their group: each method, depth, task, architecture, the highest rates.

The groups stand in holdouts.json since before the first fit. A run belongs to one group of each axis; its out-of-group
forecast on an axis comes from a fit on all the others. Pooled: those of all axes together, so that no axis is chosen.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stabkit.results.forecast.fit import fit
from stabkit.results.forecast.links import Setting, numbers
from stabkit.results.forecast.rows import Row

AXES: Mapping[str, Callable[[Row], Any]] = {
    "method": lambda row: row.method,
    "depth": lambda row: row.depth,
    "task": lambda row: row.task,
    "architecture": lambda row: row.architecture,
    "rate": lambda row: row.rate,
}
"""What a run is grouped by."""

Array = NDArray[np.float64]


@cache
def fixed() -> Mapping[str, Any]:
    """The groups as they were fixed."""
    found: dict[str, Any] = json.loads(Path(__file__).with_name("holdouts.json").read_text(encoding="utf-8"))
    return found


@dataclass(frozen=True, slots=True)
class Group:
    """The runs of one group and what they were given by a fit without them."""

    axis: str
    value: Any
    places: NDArray[np.intp]
    """Which of the rows."""
    p: Array


FAMILIES: Mapping[str, tuple[str, ...]] = {
    "norm after the sum": ("post-ln", "post-ln-init", "ds-init", "admin", "deepnorm"),
    "norm before the branch": ("pre-ln", "dlcl", "normformer", "sub-ln"),
    "no norm": ("rezero", "r-fixup", "t-fixup"),
}
"""Methods that are relatives: held out together, a fit has seen none of its kind."""


def harder(rows: Sequence[Row], label: NDArray[np.bool_]) -> tuple[Group, ...]:
    """Hold-outs that were thought of after the first fit: a family of methods at a time; and of every run its method,
    depth, task and architecture at once, by a fit on the runs that share none of them."""
    x = numbers(seen(rows))

    def told(inside: NDArray[np.bool_], without: NDArray[np.bool_]) -> Array:
        kept = label[~without]
        return (
            fit(x[~without], kept).probability(x[inside])
            if kept.any() and not kept.all()
            else np.full(inside.sum(), np.nan)
        )

    found = []
    for name, keys in FAMILIES.items():
        inside = np.array([row.method in keys for row in rows], dtype=bool)
        if inside.any() and not inside.all():
            found.append(Group("family", name, np.flatnonzero(inside), told(inside, inside)))
    axes = [AXES[axis] for axis in ("method", "depth", "task", "architecture")]
    kinds = [tuple(of(row) for of in axes) for row in rows]
    p = np.full(len(rows), np.nan)
    for kind in dict.fromkeys(kinds):
        inside = np.array([one == kind for one in kinds], dtype=bool)
        p[inside] = told(
            inside, np.array([any(a == b for a, b in zip(one, kind, strict=True)) for one in kinds], dtype=bool)
        )
    known = np.flatnonzero(np.isfinite(p))
    return (*found, Group("all", "method, depth, task and architecture at once", known, p[known]))


def seen(rows: Sequence[Row]) -> list[tuple[Any, Setting]]:
    """What links read of labelled rows."""
    return [(row.measured, Setting(row.rate, row.hidden)) for row in rows]


def labels(rows: Sequence[Row]) -> NDArray[np.bool_]:
    return np.array([row.trains for row in rows], dtype=bool)


def out_of_group(rows: Sequence[Row], label: NDArray[np.bool_]) -> tuple[Group, ...]:
    """Every group of every axis; `rows` are labelled ones."""
    x = numbers(seen(rows))
    found = []
    for axis, of in AXES.items():
        values = [of(row) for row in rows]
        for value in fixed()[axis]:
            inside = np.array([one == value for one in values], dtype=bool)
            if inside.any() and not inside.all():
                p = fit(x[~inside], label[~inside]).probability(x[inside])
                found.append(Group(axis, value, np.flatnonzero(inside), p))
    return tuple(found)
