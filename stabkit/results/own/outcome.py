"""What a probe of hundreds of updates saw of the training itself: whether the deepest model has learnt.

    way = (level − loss)/(level − reference)

`level` is the loss of who knows frequencies alone. Of a loss of the user's own it is estimated from the shallowest: a
model whose predictions come true as often as they say loses H(mean p) − I, I the information that its scores hold on
the input, and its mean prediction is the frequencies; so level ≈ loss + I. `loss` and `reference` are means of the last
LAST updates, each on a batch of its own, of the deepest model and of the shallowest probed beside it. The words' limits
are those of the trainings that the forecast was fitted on (`studies/own/training.py`, whose reference is a model of two
blocks).
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
SHALLOW = 0.1
"""Of the level: a reference that has fallen less below it has not learnt itself, and is none."""

Outcome = Literal["trains", "open", "stuck"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Trained:
    """How far the deepest model came; JSON."""

    word: Outcome
    updates: int
    depth: int
    loss: float
    """Nats, the mean over seeds."""
    level: float
    """The loss of who knows frequencies alone, nats."""
    estimated: bool
    """Whether `level` is an estimate."""
    reference_depth: int
    reference: float
    """The loss of the shallowest, nats."""
    way: float | None
    """Of the way from `level` to `reference`; None where the reference has not learnt either."""


def trained(cells: Sequence[ModelCell]) -> Trained | None:
    """Of all cells at one rate; None after fewer than LEAST updates, of batches seen before, and where the level is not
    known, a number was lost, or no shallower model is there to compare with."""
    depths = sorted({cell.facts.depth for cell in cells if cell.facts.depth is not None})
    updates = min(int(cell.records["loss"].steps[-1]) for cell in cells)
    if len(depths) < 2 or updates < LEAST or any(not cell.facts.fresh or cell.facts.broke for cell in cells):
        return None
    shallowest = [cell for cell in cells if cell.facts.depth == depths[0]]
    loss, reference = _loss(cells, depths[-1]), _loss(cells, depths[0])
    known = cells[0].facts.frequencies
    level = known if known is not None else reference + _information(shallowest)
    if math.isnan(level):
        return None
    learnt = level - reference >= SHALLOW * level
    way = (level - loss) / (level - reference) if learnt else None
    gone = way if way is not None else (level - loss) / level
    word: Outcome = "stuck" if gone <= NOTHING else "trains" if way is not None and way >= LEARNT else "open"
    return Trained(
        word=word, updates=updates, depth=depths[-1], loss=loss, level=level, estimated=known is None,
        reference_depth=depths[0], reference=reference, way=way,
    )  # fmt: skip


def _loss(cells: Sequence[ModelCell], depth: int) -> float:
    """Mean of the last updates' over seeds, at this depth."""
    own = [cell.records["loss"].at("train")[-LAST:] for cell in cells if cell.facts.depth == depth]
    return float(np.mean([loss.mean() for loss in own]))


def _information(cells: Sequence[ModelCell]) -> float:
    """What the scores tell of the input in the end, nats, the mean over seeds; NaN where the loss is not theirs."""
    told = [cell.records["scores"].at("information")[-1] for cell in cells if scored(cell)]
    return float(np.mean(told)) if len(told) == len(cells) else math.nan
