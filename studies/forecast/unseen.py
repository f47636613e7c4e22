"""Does the forecast hold for optimisers, blocks and methods that its corpus lacks? A hold-out that nobody chose for it.

Runs of other studies are scored by a fit that has seen none of them, as it stood. Only then are they joined to the
corpus; for an optimiser, block or method whose skill was below TRUSTED the forecast goes on to abstain, and so it does
for an optimiser of which fewer than FAILED runs fail, which cannot show that a failure would be forecast. What decides
are runs at rates that the corpus has: beyond them no forecast was given.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from stabkit.results.forecast.logistic import Array, Logistic
from studies.forecast.regression import features, labels
from studies.forecast.scores import ForecastScores, resampled, score, skill
from studies.rows import StudyRow

TRUSTED = 0.25
"""Brier skill from which on a forecast is worth giving."""
RESAMPLES = 1000
NEARLY = 1.1
"""A rate this many times the corpus' highest still is its own: 0.032 beside 0.03."""
FAILED = 8
"""Runs of either outcome from which on a group's own base rate says something; of those that do not train an optimiser
has at least as many where it is given a forecast."""
AXES: Mapping[str, Callable[[StudyRow], str]] = {
    "optimizer": lambda row: row.optimizer,
    "block": lambda row: row.block,
    "method": lambda row: row.method,
}
"""What they are grouped by."""


@dataclass(frozen=True)
class HeldOutRuns:
    """Labelled runs, and what a fit without them gives each."""

    rows: tuple[StudyRow, ...]
    by: Logistic
    highest: float
    """The highest rate of the corpus."""

    def part(self, wanted: Callable[[StudyRow], bool]) -> HeldOutRuns:
        """Some of them."""
        return HeldOutRuns(tuple(row for row in self.rows if wanted(row)), self.by, self.highest)

    @cached_property
    def within(self) -> HeldOutRuns:
        """Those at rates of the corpus."""
        return self.part(lambda row: row.rate <= self.highest * NEARLY)

    @cached_property
    def p(self) -> Array:
        return self.by.probability(features(self.rows)) if self.rows else np.empty(0)

    @cached_property
    def whole(self) -> ForecastScores:
        """Of all of them."""
        return score(self.p, labels(self.rows))

    @cached_property
    def skill_interval(self) -> tuple[float, float]:
        """95 % of the Brier skill over cells drawn again (a method, block, optimiser and depth: their runs, a ladder of
        rates, are not independent), draws of one outcome left out; NaN where all end alike."""
        label = labels(self.rows)
        if label.all() or not label.any():
            return math.nan, math.nan
        by: dict[tuple[object, ...], list[int]] = {}
        for i, row in enumerate(self.rows):
            by.setdefault((row.method, row.block, row.optimizer, row.depth), []).append(i)
        cells = [np.array(cell) for cell in by.values()]

        def drawn(pick: NDArray[np.intp]) -> float:
            runs = np.concatenate([cells[i] for i in pick])
            return skill(self.p[runs], label[runs])

        return resampled(len(cells), drawn, RESAMPLES)

    def of(self, axis: str) -> dict[str, HeldOutRuns]:
        """{optimiser, block or method: its runs}."""
        of, groups = AXES[axis], dict[str, list[StudyRow]]()
        for row in self.rows:
            groups.setdefault(of(row), []).append(row)
        return {value: HeldOutRuns(tuple(rows), self.by, self.highest) for value, rows in groups.items()}

    def skill(self, group: ForecastScores) -> float:
        """Brier skill of a group; where fewer than FAILED of its runs end either way, which its own base rate all but
        knows, against that of all; NaN where all of them end alike."""
        share = self.whole.base_rate
        if min(group.trained, group.n - group.trained) >= FAILED:
            return group.skill
        return 1 - group.brier / (share * (1 - share)) if 0 < share < 1 else math.nan

    def trusted(self, axis: str) -> list[str]:
        """The optimisers, blocks or methods that it may be given for."""
        near, least = self.within, FAILED if axis == "optimizer" else 0
        return [
            value
            for value, group in near.of(axis).items()
            if near.skill(group.whole) >= TRUSTED and group.whole.n - group.whole.trained >= least
        ]


def held_out(rows: Sequence[StudyRow], by: Logistic, highest: float) -> HeldOutRuns:
    """The labelled ones of these rows."""
    return HeldOutRuns(tuple(sorted((row for row in rows if row.labelled), key=lambda row: row.run_id)), by, highest)
