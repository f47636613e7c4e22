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

from stabkit import methods
from stabkit.results.forecast.links import FITTED, Link
from stabkit.results.forecast.logistic import Array
from studies.forecast.regression import Labels, features, fit
from studies.rows import StudyRow

AXES: Mapping[str, Callable[[StudyRow], Any]] = {
    "method": lambda row: row.method,
    "depth": lambda row: row.depth,
    "task": lambda row: row.task,
    "architecture": lambda row: row.architecture,
    "rate": lambda row: row.rate,
}
"""What a run is grouped by."""


@cache
def fixed() -> Mapping[str, Any]:
    """The groups as they were fixed."""
    groups: dict[str, Any] = json.loads(Path(__file__).with_name("holdouts.json").read_text(encoding="utf-8"))
    return groups


@dataclass(frozen=True, slots=True)
class HeldOutGroup:
    """The runs of one group and their forecasts by a fit without them."""

    axis: str
    value: Any
    places: NDArray[np.intp]
    """Which of the rows."""
    p: Array

    @property
    def name(self) -> str:
        """`DeepNorm`, `18 layers`, `a rate of 0.03`, `text`."""
        if self.axis == "method":
            return methods.label(str(self.value), {})
        forms = {"depth": "{} layers", "rate": "a rate of {:g}"}
        return forms.get(self.axis, "{}").format(self.value)


FAMILIES: Mapping[str, tuple[str, ...]] = {
    "norm after the sum": ("post-ln", "post-ln-init", "ds-init", "admin", "deepnorm"),
    "norm before the branch": ("pre-ln", "dlcl", "normformer", "sub-ln"),
    "no norm": ("rezero", "r-fixup", "t-fixup"),
}
"""Methods that are relatives: held out together, a fit has seen none of its kind."""


def harder(rows: Sequence[StudyRow], label: Labels) -> tuple[HeldOutGroup, ...]:
    """Hold-outs that were thought of after the first fit: a family of methods at a time; and of every run its method,
    depth, task and architecture at once, by a fit on the runs that share none of them."""
    x = features(rows)

    def forecasts(inside: Labels, without: Labels) -> Array:
        rest = label[~without]
        if rest.all() or not rest.any():
            return np.full(inside.sum(), np.nan)
        return fit(x[~without], rest).probability(x[inside])

    groups = []
    for name, keys in FAMILIES.items():
        inside = np.array([row.method in keys for row in rows], dtype=bool)
        if inside.any() and not inside.all():
            groups.append(HeldOutGroup("family", name, np.flatnonzero(inside), forecasts(inside, inside)))
    axes = [AXES[axis] for axis in ("method", "depth", "task", "architecture")]
    kinds = [tuple(of(row) for of in axes) for row in rows]
    p = np.full(len(rows), np.nan)
    for kind in dict.fromkeys(kinds):
        inside = np.array([other == kind for other in kinds], dtype=bool)
        alike = np.array([any(a == b for a, b in zip(other, kind, strict=True)) for other in kinds], dtype=bool)
        p[inside] = forecasts(inside, alike)
    known = np.flatnonzero(np.isfinite(p))
    return (*groups, HeldOutGroup("all", "method, depth, task and architecture at once", known, p[known]))


def out_of_group(rows: Sequence[StudyRow], label: Labels, links: Sequence[Link] = FITTED) -> tuple[HeldOutGroup, ...]:
    """Every group of every axis; `rows` are labelled ones."""
    x = features(rows, links)
    groups = []
    for axis, of in AXES.items():
        values = [of(row) for row in rows]
        for value in fixed()[axis]:
            inside = np.array([other == value for other in values], dtype=bool)
            if inside.any() and not inside.all():
                p = fit(x[~inside], label[~inside]).probability(x[inside])
                groups.append(HeldOutGroup(axis, value, np.flatnonzero(inside), p))
    return tuple(groups)
