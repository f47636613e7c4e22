"""Does the forecast hold for methods and blocks that its corpus lacks? A hold-out that nobody chose for it.

Runs of another study are scored by a fit that has seen none of them, as it stood. Only then are they joined to the
corpus; for a method or block whose skill was below TRUSTED the forecast goes on to abstain.
"""

from __future__ import annotations

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
AXES: Mapping[str, Callable[[Row], str]] = {"block": lambda row: row.block, "method": lambda row: row.method}
"""What they are told apart by."""


@dataclass(frozen=True)
class Newcomers:
    """Labelled runs, and what a fit without them gives each."""

    rows: tuple[Row, ...]
    by: Logistic

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

    def trusted(self, axis: str) -> list[str]:
        """The blocks or methods that it may be given for; one with runs of one outcome alone has shown nothing."""
        return [value for value, own in self.of(axis).items() if own.skill >= TRUSTED]


def newcomers(rows: Sequence[Row], by: Logistic) -> Newcomers:
    """The labelled ones of these rows."""
    return Newcomers(tuple(sorted((row for row in rows if row.labelled), key=lambda row: row.run_id)), by)


def to_json(own: Scores) -> dict[str, Any]:
    """What a page and `--json` say of one set."""
    names = ("n", "trained", "auc", "brier", "skill", "decided", "right")
    return {name: getattr(own, name) for name in names}
