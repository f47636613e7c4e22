"""What a run's quality is told by: BLEU where all that are compared were translated alike, else the validation loss.

Two BLEU scores compare only of the same sentences, looked for in the same way; and where they are not near nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from stabkit.results.translation import Search
from stabkit.storage.store import Run
from stabkit.storage.translations import Translation

BLEU, LOSS = "BLEU", "validation loss"
"""The two measures; more of the first is better, less of the second."""
TRANSLATES = 1.0
"""A BLEU below this is what chance and smoothing make of it, and no quality to compare by."""


@dataclass(frozen=True, slots=True)
class QualityMeasure:
    """One measure of several runs."""

    name: str
    values: dict[str, float]
    """By the runs' ids."""

    def gain(self, ours: float, theirs: float) -> float:
        """How much better the one value is than the other."""
        return ours - theirs if self.name == BLEU else theirs - ours


def alike(runs: Sequence[Run]) -> dict[str, Translation]:
    """{run id: its translation}, all of one text and one search: those that most of the runs have, of equally many the
    search with most beams."""
    by: dict[tuple[str, Search], dict[str, Translation]] = {}
    for run in runs:
        for translation in run.translations:
            by.setdefault((translation.spec.sentences, translation.spec.search), {})[run.run_id] = translation
    if not by:
        return {}
    size = Counter({key: len(found) for key, found in by.items()})
    best = max(by, key=lambda key: (size[key], key[1].beam, key[1].length_penalty, key[0]))
    return by[best]


def measured(runs: Sequence[Run]) -> QualityMeasure:
    """BLEU where every one of these runs was translated alike and translates, else validation losses."""
    scores = {key: one.score.bleu for key, one in alike(runs).items()}
    if runs and all(run.run_id in scores for run in runs) and min(scores.values()) >= TRANSLATES:
        return QualityMeasure(BLEU, scores)
    return QualityMeasure(LOSS, {run.run_id: run.outcome.validation_loss for run in runs})


def words(search: Search) -> str:
    """`beam 4, length penalty 1`."""
    return "greedy" if search.beam == 1 else f"beam {search.beam}, length penalty {search.length_penalty:g}"
