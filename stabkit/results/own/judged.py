"""All cells of a probe of a user's model, with a verdict a rate: what terminal, page and Python show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stabkit.results.forecast.logistic import Word
from stabkit.results.own.cell import ModelCell
from stabkit.results.own.cure import Cure
from stabkit.results.own.verdict import FIRM, Verdict, verdict

TRIED: tuple[Word, ...] = ("likely stuck", "open")
"""Words at which changes are tried."""


@dataclass(frozen=True, slots=True)
class Judged:
    """All cells of a probe, what was found at each rate, and what may mend the worst."""

    cells: Sequence[ModelCell]
    verdicts: Sequence[Verdict]
    """The lowest rate first."""
    cures: tuple[Cure, ...] = ()
    """In the order in which they were tried."""

    @property
    def cure(self) -> Cure | None:
        """The smallest change after which it is likely to train."""
        return next((own for own in self.cures if own.word == "likely trains"), None)

    @property
    def nearest(self) -> Cure | None:
        """Where none does: the change that leaves it likeliest, if that is open and likelier than before."""
        if self.cure is not None:
            return None
        before = self.worst.forecast.probability or 0.0
        better = [own for own in self.cures if own.word == "open" and (own.probability or 0.0) > before]
        return max(better, key=lambda own: own.probability or 0.0, default=None)

    @property
    def worst(self) -> Verdict:
        """That of the rate at which it is least likely to train; of equals the lowest's."""

        def held(candidate: Verdict) -> tuple[int, int, float, float]:
            p = candidate.forecast.probability
            return FIRM.index(candidate.word), len(candidate.failing), -(p if p is not None else 0.5), -candidate.lr

        return max(self.verdicts, key=held)


def judged(cells: Sequence[ModelCell]) -> Judged:
    """The verdicts of these cells."""
    rates = sorted({cell.facts.lr for cell in cells})
    return Judged(cells, [verdict([cell for cell in cells if cell.facts.lr == rate]) for rate in rates])
