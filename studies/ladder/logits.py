"""Does the largest attention logit warn of a rate that is too high, and from which size on?

A group is seven rates of one model. A training is *hurt* where its rate is above the group's best and its loss at the
end (at most what it began with) lies HURT nats or more above the best's. The alarm's limit is chosen on the trainings
of 250 updates: the lowest of LIMITS that none of theirs passes which is not hurt. It is judged on those of 2,000.

Within a group the rate alone ranks as well. Whether the logit tells more than the rate is asked over all groups: the
area under the curve for *hurt*, by the logit after so many updates and by the rate.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from stabkit.results.own.alarm import GROWN
from studies.forecast.scores import auc
from studies.ladder.curves import CurveRow

HURT = 0.1
LIMITS = (30.0, 100.0, 300.0, 1_000.0, 3_000.0, 10_000.0)


@dataclass(frozen=True)
class RateGroup:
    """Seven rates of one model, the lowest first."""

    rows: Sequence[CurveRow]

    @property
    def best(self) -> CurveRow:
        return min(self.rows, key=lambda row: row.loss)

    @property
    def above(self) -> float:
        """What the rates above the best lose, over all rates: the part of the sensitivity that is no slowness."""
        mine = [row.loss for row in self.rows if row.training.rate > self.best.training.rate]
        return sum(loss - self.best.loss for loss in mine) / len(self.rows)

    def hurt(self, row: CurveRow) -> bool:
        """Whether a rate above the best ends worse."""
        return row.training.rate > self.best.training.rate and row.loss - self.best.loss >= HURT


def groups(rows: Iterable[CurveRow], study: str, *, heads: bool | None = None) -> list[RateGroup]:
    """Those of a study with all seven rates; `heads`: with QK-norm, or without."""

    def key(row: CurveRow) -> tuple[int, int, bool, int]:
        own = row.training
        return own.width, own.depth, own.heads, own.seed

    mine = [row for row in rows if row.training.study == study and heads in (None, row.training.heads)]
    whole = [RateGroup(list(some)) for _, some in itertools.groupby(sorted(mine, key=key), key)]
    return [group for group in whole if len(group.rows) == 7]


def warned(row: CurveRow, limit: float, until: int) -> bool:
    """Whether the alarm of a watch fires by this update."""
    first = row.largest.get(0, float("nan"))
    return any(value > max(limit, GROWN * first) for t, value in row.largest.items() if 0 < t <= until)


@dataclass(frozen=True)
class Alarmed:
    """What the alarm finds by an update."""

    update: int
    found: int
    hurt: int
    false: int
    well: int


def alarmed(some: Sequence[RateGroup], limit: float, update: int) -> Alarmed:
    """Of these groups."""
    every = [(group.hurt(row), warned(row, limit, update)) for group in some for row in group.rows]
    return Alarmed(
        update,
        found=sum(hurt and told for hurt, told in every),
        hurt=sum(hurt for hurt, _ in every),
        false=sum(told and not hurt for hurt, told in every),
        well=sum(not hurt for hurt, _ in every),
    )


def chosen(rows: Iterable[CurveRow]) -> float:
    """The lowest limit without a false alarm on the trainings of 250 updates; inf where each has one."""
    some = groups(rows, "sensitivity")
    return next((limit for limit in LIMITS if not alarmed(some, limit, 250).false), float("inf"))


def areas(some: Sequence[RateGroup], update: int) -> tuple[float, float]:
    """(by the logit after so many updates, by the rate) under the curve for what is hurt, over all groups."""
    every = [(row, group.hurt(row)) for group in some for row in group.rows if update in row.largest]
    well = np.array([not hurt for _, hurt in every], dtype=bool)
    by = ([-row.largest[update] for row, _ in every], [-row.training.rate for row, _ in every])
    first, second = (auc(np.array(values), well) for values in by)
    return first, second
