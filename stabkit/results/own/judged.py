"""All cells of a probe of a user's model, with a verdict a rate: what terminal, page and Python show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stabkit.results.own.cell import ModelCell
from stabkit.results.own.link import ORDER
from stabkit.results.own.verdict import Verdict, verdict


@dataclass(frozen=True, slots=True)
class Judged:
    """All cells of a probe, and what was found at each rate."""

    cells: Sequence[ModelCell]
    verdicts: Sequence[Verdict]
    """The lowest rate first."""

    @property
    def worst(self) -> Verdict:
        """That of the rate at which the chain holds least: by its worst link, then the next; of equals the lowest's."""

        def held(candidate: Verdict) -> tuple[list[int], float]:
            return sorted((ORDER.index(link.verdict) for link in candidate.links.values()), reverse=True), -candidate.lr

        return max(self.verdicts, key=held)


def judged(cells: Sequence[ModelCell]) -> Judged:
    """The verdicts of these cells."""
    rates = sorted({cell.facts.lr for cell in cells})
    return Judged(cells, [verdict([cell for cell in cells if cell.facts.lr == rate]) for rate in rates])
