"""All cells of a probe of a user's model, with a verdict a rate: what terminal, page and Python show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stabkit.errors import UsageError
from stabkit.results.forecast.logistic import WORDS
from stabkit.results.own.cell import ModelCell, sublayer_counts
from stabkit.results.own.cure import Cure
from stabkit.results.own.decided import known
from stabkit.results.own.verdict import Verdict, verdict


@dataclass(frozen=True, slots=True)
class Judged:
    """All cells of a probe, what was found at each rate, and what may mend the worst."""

    cells: Sequence[ModelCell]
    verdicts: Sequence[Verdict]
    """The lowest rate first."""
    cures: tuple[Cure, ...] = ()
    """In the order in which they were tried."""
    untried: int = 0
    """Changes for which there was no time …"""
    time: float = 0.0
    """… in so many seconds."""
    beside: tuple[tuple[str, ModelCell], ...] = ()
    """(change, "" for none; what was recorded) of the trainings that were made side by side."""

    @property
    def trainable(self) -> bool:
        """Whether a training would decide what the worst's forecast does not: there is a level to look at it by."""
        return all(known(cell) is not None for cell in self.cells if cell.facts.lr == self.worst.lr)

    @property
    def mendable(self) -> bool:
        """Whether changes are worth a try: where it fails or probably does, but no gradient that never arrives, nor a
        number that was lost before any update."""
        worst = self.worst
        cut = worst.gradient.verdict == "fail" and not worst.gradient.level
        lost = any(cell.facts.broke is not None and not cell.facts.broke.step for cell in self.cells)
        return worst.word in ("fails", "probably fails") and not cut and not lost

    @property
    def cure(self) -> Cure | None:
        """That with which it trains, or probably does, and its loss is lowest; what was seen to comes before what a
        forecast says."""
        named = [own for own in self.cures if own.word in ("trains", "probably trains")]
        return min(named, key=lambda own: (own.basis != "seen", WORDS.index(own.word), own.loss or 0.0), default=None)

    @property
    def worst(self) -> Verdict:
        """That of the rate at which it is least likely to train; of equals the lowest's."""

        def rank(candidate: Verdict) -> tuple[int, int, float, float]:
            p = candidate.decision.probability
            return WORDS.index(candidate.word), len(candidate.failing), -(p if p is not None else 0.5), -candidate.lr

        return max(self.verdicts, key=rank)


def judged(cells: Sequence[ModelCell]) -> Judged:
    """The verdicts of these cells."""
    rates = sorted({cell.facts.lr for cell in cells})
    return Judged(cells, [verdict([cell for cell in cells if cell.facts.lr == rate]) for rate in rates])


def refuse(cells: Sequence[ModelCell]) -> None:
    """Raises UsageError where depth changes nothing."""
    pairs = sublayer_counts(cells)
    for (shallow, few), (deep, many) in zip(pairs, pairs[1:], strict=False):
        if many <= few:
            raise UsageError(
                f"{cells[0].facts.factory}: at depth {deep} the model has {many} sub-layers, at depth {shallow} {few}; "
                "the factory must build as many layers as it is asked for"
            )
