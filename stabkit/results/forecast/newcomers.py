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
from stabkit.results.forecast.scores import Scores, score

TRUSTED = 0.25
"""Brier skill from which on a forecast is worth giving."""
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

    @cached_property
    def within(self) -> Newcomers:
        """Those at rates of the corpus."""
        kept = tuple(row for row in self.rows if row.rate <= self.highest * NEARLY)
        return Newcomers(kept, self.by, self.highest)

    @cached_property
    def p(self) -> Array:
        return self.by.probability(numbers(seen(self.rows))) if self.rows else np.empty(0)

    @cached_property
    def whole(self) -> Scores:
        """Of all of them."""
        return score(self.p, labels(self.rows))

    def of(self, axis: str) -> dict[str, Scores]:
        """{block or method: its scores}."""
        label = labels(self.rows)
        values = [AXES[axis](row) for row in self.rows]
        own = {value: np.array([one == value for one in values], dtype=bool) for value in dict.fromkeys(values)}
        return {value: score(self.p[mine], label[mine]) for value, mine in own.items()}

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
        return [value for value, own in near.of(axis).items() if near.skill(own) >= TRUSTED]


def newcomers(rows: Sequence[Row], by: Logistic, highest: float) -> Newcomers:
    """The labelled ones of these rows."""
    return Newcomers(tuple(sorted((row for row in rows if row.labelled), key=lambda row: row.run_id)), by, highest)


def to_json(own: Scores) -> dict[str, Any]:
    """What a page and `--json` say of one set."""
    names = ("n", "trained", "auc", "brier", "skill", "decided", "right")
    return {name: getattr(own, name) for name in names}
