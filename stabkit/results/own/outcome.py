"""What a probe of hundreds of updates saw of the training itself: whether the deepest model has learnt.

    way = (level − loss)/(level − reference)

`level` is the loss of who knows frequencies alone, `reference` that of who knows all that can be learnt, `loss` the
mean of the deepest model's last LAST updates, each on a batch of its own. Of stabkit's own chain of words both are
known. Of a loss of the user's own they are taken from the shallowest model probed beside it, at the same rate:
`reference` is what it has come to; and a model whose predictions come true as often as they say loses H(mean p) − I, I
the information that its scores hold on the input, and its mean prediction is the frequencies, so level ≈ its loss + I:
too low where I is of few tokens, or of other places than the loss. The words' limits are those of the trainings that
the forecast was fitted on (`studies/own/training.py`, whose reference is a model of two blocks).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from stabkit.results.own.cell import ModelCell
from stabkit.results.own.forecast import scored

LEAST = 150
"""Updates: after fewer nothing is said."""
LAST = 16
LEARNT, NOTHING = 0.5, 0.15
"""Of the way: at least so much is `trains`, at most so much `stuck`, what lies between `open`."""
FALLEN = 0.1
"""Of the level: what has fallen less below it has not learnt itself, and is no reference."""

Outcome = Literal["trains", "open", "stuck"]


@dataclass(frozen=True, kw_only=True, slots=True)
class ShortTraining:
    """How far the deepest model came; JSON."""

    word: Outcome
    updates: int
    depth: int | None
    loss: float
    """Nats, the mean over seeds."""
    level: float
    """The loss of who knows frequencies alone, nats."""
    estimated: bool
    """Whether `level` is an estimate."""
    reference_depth: int | None
    """None: the reference is who knows all that can be learnt."""
    reference: float
    """Its loss, or the shallowest's, nats."""
    way: float | None
    """Of the way from `level` to `reference`; None where the reference has not learnt either."""


def trained(cells: Sequence[ModelCell]) -> ShortTraining | None:
    """Of all cells at one rate; None after fewer than LEAST updates, of batches seen before, and where a number was
    lost, or level or reference are not known."""
    depths = sorted({cell.facts.depth or 0 for cell in cells})
    updates = min(int(cell.records["loss"].steps[-1]) for cell in cells)
    if updates < LEAST or any(not cell.facts.fresh or cell.facts.broke for cell in cells):
        return None
    loss, facts = _loss(cells, depths[-1]), cells[0].facts
    known = facts.frequencies is not None and facts.entropy is not None
    if not known and len(depths) < 2:
        return None
    shallowest = [cell for cell in cells if (cell.facts.depth or 0) == depths[0]]
    reference = float(facts.entropy or 0.0) if known else _loss(cells, depths[0])
    level = facts.frequencies if facts.frequencies is not None else reference + _information(shallowest)
    if math.isnan(level) or (known and level - reference < FALLEN * level):  # so few words, or nothing to learn
        return None
    learnt = level - reference >= FALLEN * level
    way = (level - loss) / (level - reference) if learnt else None
    gone = way if way is not None else (level - loss) / level
    word: Outcome = "stuck" if gone <= NOTHING else "trains" if way is not None and way >= LEARNT else "open"
    return ShortTraining(
        word=word, updates=updates, depth=depths[-1] or None, loss=loss, level=level,
        estimated=facts.frequencies is None, reference_depth=None if known else depths[0], reference=reference, way=way,
    )  # fmt: skip


def _loss(cells: Sequence[ModelCell], depth: int) -> float:
    """Mean of the last updates' over seeds, at this depth."""
    own = [cell.records["loss"].at("train")[-LAST:] for cell in cells if (cell.facts.depth or 0) == depth]
    return float(np.mean([loss.mean() for loss in own]))


def _information(cells: Sequence[ModelCell]) -> float:
    """What the scores tell of the input in the end, nats, the mean over seeds; NaN where the loss is not theirs."""
    told = [cell.records["scores"].at("information")[-1] for cell in cells if scored(cell)]
    return float(np.mean(told)) if len(told) == len(cells) else math.nan
