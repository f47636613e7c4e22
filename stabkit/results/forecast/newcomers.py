"""Does the forecast hold for methods and blocks that its corpus lacks? A hold-out that nobody chose for it.

Runs of another study are scored by a fit that has seen none of them, as it stood. Only then are they joined to the
corpus; for a method or block whose skill was below TRUSTED the forecast goes on to abstain. What decides are runs at
rates that the corpus has: beyond them it never spoke.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from stabkit.results.forecast.fit import Array, Logistic
from stabkit.results.forecast.holdouts import labels, seen
from stabkit.results.forecast.links import numbers
from stabkit.results.forecast.rows import Row
from stabkit.results.forecast.scores import Scores, score, skill

TRUSTED = 0.25
"""Brier skill from which on a forecast is worth giving."""
RESAMPLES = 1000
NEARLY = 1.1
"""A rate this many times the corpus' highest still is its own: 0.032 beside 0.03."""
AXES: Mapping[str, Callable[[Row], str]] = {"block": lambda row: row.block, "method": lambda row: row.method}
"""What they are told apart by."""


@dataclass(frozen=True)
class Newcomers:
    """Labelled runs, and what a fit without them gives each."""

    rows: tuple[Row, ...]
    by: Logistic
    highest: float
    """The highest rate of the corpus."""

    def part(self, wanted: Callable[[Row], bool]) -> Newcomers:
        """Some of them."""
        return Newcomers(tuple(row for row in self.rows if wanted(row)), self.by, self.highest)

    @cached_property
    def within(self) -> Newcomers:
        """Those at rates of the corpus."""
        return self.part(lambda row: row.rate <= self.highest * NEARLY)

    @cached_property
    def p(self) -> Array:
        return self.by.probability(numbers(seen(self.rows))) if self.rows else np.empty(0)

    @cached_property
    def whole(self) -> Scores:
        """Of all of them."""
        return score(self.p, labels(self.rows))

    @cached_property
    def skill_interval(self) -> tuple[float, float]:
        """95 % of the Brier skill over runs drawn again, those of one outcome left out; NaN where all end alike."""
        label, draw = labels(self.rows), np.random.default_rng(0)
        if label.all() or not label.any():
            return math.nan, math.nan
        picks = (draw.integers(0, len(label), len(label)) for _ in range(RESAMPLES))
        skills = [skill(self.p[pick], label[pick]) for pick in picks if 0 < label[pick].sum() < len(pick)]
        low, high = np.quantile(skills, (0.025, 0.975))
        return float(low), float(high)

    def of(self, axis: str) -> dict[str, Newcomers]:
        """{block or method: its runs}."""
        value, found = AXES[axis], dict[str, list[Row]]()
        for row in self.rows:
            found.setdefault(value(row), []).append(row)
        return {one: Newcomers(tuple(rows), self.by, self.highest) for one, rows in found.items()}

    def skill(self, own: Scores) -> float:
        """Brier skill of a group; where its runs all end alike, which its own base rate knows, against that of all; NaN
        where all of them do."""
        share = self.whole.base_rate
        if 0 < own.trained < own.n:
            return own.skill
        return 1 - own.brier / (share * (1 - share)) if 0 < share < 1 else math.nan

    def trusted(self, axis: str) -> list[str]:
        """The blocks or methods that it may be given for."""
        near = self.within
        return [value for value, own in near.of(axis).items() if near.skill(own.whole) >= TRUSTED]


def newcomers(rows: Sequence[Row], by: Logistic, highest: float) -> Newcomers:
    """The labelled ones of these rows."""
    return Newcomers(tuple(sorted((row for row in rows if row.labelled), key=lambda row: row.run_id)), by, highest)


def to_json(own: Newcomers) -> dict[str, Any]:
    """What `--json` says of one set."""
    names = ("n", "trained", "auc", "brier", "skill", "decided", "right")
    return {**{name: getattr(own.whole, name) for name in names}, "skill_interval": own.skill_interval}
