"""What a probe of hundreds of updates saw of the training itself: whether the deepest model has learnt, seed by seed.

    way = (level − loss)/(level − reference)

`level` is the loss of who knows frequencies alone, `reference` that of who knows all that can be learnt, `loss` the
mean of the deepest model's last LAST updates, each on a batch of its own. Of stabkit's own chain of words both are
known, and a training ends at ENDS of the way. Of a loss of the user's own they are taken from the shallowest model
probed beside it, at the same rate: `reference` is what it has come to; and a model whose predictions come true as often
as they say loses H(mean p) − I, I the information that its scores hold on the input, and its mean prediction is the
frequencies, so level ≈ its loss + I: too low where I is of few tokens, or of other places than the loss.

A deep model may know nothing but frequencies for hundreds of updates and learn then: what has learnt nothing is `stuck`
from ENOUGH updates on, and even then some begin later (SLOW). LEARNT and NOTHING are the limits of the trainings that
the forecast was fitted on (`studies/own/training.py` has them from here).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stabkit.results.own.cell import ModelCell
from stabkit.results.own.forecast import scored

LEAST = 150
"""Updates: of a probe of fewer nothing is said."""
ENOUGH = 900
"""Updates after which nothing learnt is `stuck`; before, it is `open`."""
LAST = 16
LEARNT, NOTHING, ENDS = 0.5, 0.15, 0.6
"""Of the way: at least so much is `trains`, at most so much nothing, what lies between `open`; where so much is seen a
training ends."""
FALLEN = 0.1
"""Of the level: what has fallen less below it has not learnt itself, and is no reference."""

Outcome = Literal["trains", "open", "stuck"]


class Slow(NamedTuple):
    """Of `n` trainings that had learnt nothing after so many updates, how many had LEARNT after twice ENOUGH."""

    updates: int
    late: int
    n: int


SLOW = (Slow(150, 16, 29), Slow(300, 9, 20), Slow(900, 1, 11))
"""`studies/own/slow.py`, docs/slow.csv."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SeedTraining:
    """How far the deepest model of one seed came; JSON."""

    seed: int
    updates: int
    loss: float
    """Nats, the mean of the last."""
    way: float | None
    """Of the way from `level` to `reference`; None where the reference has not learnt either."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ShortTraining:
    """How far the deepest model came; JSON."""

    word: Outcome
    updates: int
    """Of the seed that was trained longest."""
    depth: int | None
    seeds: tuple[SeedTraining, ...]
    level: float
    """The loss of who knows frequencies alone, nats."""
    estimated: bool
    """Whether `level` is an estimate."""
    reference_depth: int | None
    """None: the reference is who knows all that can be learnt."""
    reference: float
    """Its loss, or the shallowest's, nats."""

    @property
    def learnt(self) -> int:
        """Seeds that have."""
        return sum(own.way is not None and own.way >= LEARNT for own in self.seeds)

    @property
    def least(self) -> SeedTraining:
        """The seed that came least far."""
        return max(self.seeds, key=lambda own: own.loss)


def ends_at(level: float | None, reference: float | None) -> float | None:
    """The loss at which a training ends; None where the two are not known, or too near for a difference."""
    if level is None or reference is None or level - reference < FALLEN * level:
        return None
    return level - ENDS * (level - reference)


def recent(losses: Sequence[float] | NDArray[np.float64]) -> float:
    """What a model has come to: the mean of the last LAST losses."""
    return float(np.mean(losses[-LAST:]))


def trained(cells: Sequence[ModelCell]) -> ShortTraining | None:
    """Of all cells at one rate; None of a probe of fewer than LEAST updates, of batches seen before, and where a number
    was lost, or level or reference are not known."""
    depths = sorted({cell.depth for cell in cells})
    if any(cell.facts.steps < LEAST or not cell.facts.fresh or cell.facts.broke for cell in cells):
        return None
    facts = cells[0].facts
    known = facts.frequencies is not None and facts.entropy is not None
    if not known and len(depths) < 2:
        return None
    shallowest, deepest = ([cell for cell in cells if cell.depth == depths[end]] for end in (0, -1))
    reference = float(facts.entropy or 0.0) if known else float(np.mean([_loss(cell) for cell in shallowest]))
    level = facts.frequencies if facts.frequencies is not None else reference + _information(shallowest)
    if math.isnan(level) or (known and ends_at(level, reference) is None):  # so few words, or nothing to learn
        return None
    learnt = ends_at(level, reference) is not None
    seeds = tuple(
        SeedTraining(
            seed=cell.facts.seed, updates=int(cell.records["loss"].steps[-1]), loss=_loss(cell),
            way=(level - _loss(cell)) / (level - reference) if learnt else None,
        )
        for cell in deepest
    )  # fmt: skip
    updates = max(own.updates for own in seeds)
    nothing = all((own.way if own.way is not None else (level - own.loss) / level) <= NOTHING for own in seeds)
    all_ = all(own.way is not None and own.way >= LEARNT for own in seeds)
    word: Outcome = "trains" if all_ else "stuck" if nothing and updates >= ENOUGH else "open"
    return ShortTraining(
        word=word, updates=updates, depth=depths[-1] or None, seeds=seeds, level=level,
        estimated=facts.frequencies is None, reference_depth=None if known else depths[0], reference=reference,
    )  # fmt: skip


def _loss(cell: ModelCell) -> float:
    return recent(cell.records["loss"].at("train"))


def _information(cells: Sequence[ModelCell]) -> float:
    """What the scores tell of the input in the end, nats, the mean over seeds; NaN where the loss is not theirs."""
    told = [cell.records["scores"].at("information")[-1] for cell in cells if scored(cell)]
    return float(np.mean(told)) if len(told) == len(cells) else math.nan
