"""What a probe of hundreds of updates saw of the training itself: whether the deepest model has learnt.

    way = (level − loss)/(level − reference)

`level` is the loss of who knows frequencies alone; `loss` and `reference` are means of the last LAST updates, each on a
batch of its own, of the deepest model and of the shallowest probed beside it. The words' limits are those of the
trainings that the forecast was fitted on (`studies/own/training.py`, whose reference is a model of two blocks).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from stabkit.results.own.cell import ModelCell

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
    reference_depth: int
    reference: float
    """The loss of the shallowest, nats."""
    way: float | None
    """Of the way from `level` to `reference`; None where the reference has not learnt either."""


def trained(cells: Sequence[ModelCell]) -> Trained | None:
    """Of all cells at one rate; None after fewer than LEAST updates, of batches seen before, and where the level is not
    known, a number was lost, or no shallower model is there to compare with."""
    facts = [cell.facts for cell in cells]
    depths = sorted({own.depth for own in facts if own.depth is not None})
    updates = min(int(cell.records["loss"].steps[-1]) for cell in cells)
    known = all(own.fresh and own.frequencies is not None and own.broke is None for own in facts)
    if len(depths) < 2 or updates < LEAST or not known:
        return None
    level, loss, reference = float(facts[0].frequencies or 0.0), _loss(cells, depths[-1]), _loss(cells, depths[0])
    learnt = level - reference >= SHALLOW * level
    way = (level - loss) / (level - reference) if learnt else None
    gone = way if way is not None else (level - loss) / level
    word: Outcome = "stuck" if gone <= NOTHING else "trains" if way is not None and way >= LEARNT else "open"
    return Trained(
        word=word, updates=updates, depth=depths[-1], loss=loss, level=level,
        reference_depth=depths[0], reference=reference, way=way,
    )  # fmt: skip


def _loss(cells: Sequence[ModelCell], depth: int) -> float:
    """Mean of the last updates' over seeds, at this depth."""
    own = [cell.records["loss"].at("train")[-LAST:] for cell in cells if cell.facts.depth == depth]
    return float(np.mean([loss.mean() for loss in own]))
