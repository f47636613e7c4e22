"""All cells of a probe of a user's model, with a verdict a rate: what terminal, page and Python show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stabkit.errors import UsageError
from stabkit.results.own.cell import ModelCell, sublayer_counts
from stabkit.results.own.cure import Cure
from stabkit.results.own.forecast import DRAWN, RATE
from stabkit.results.own.rules import FIRM, Word
from stabkit.results.own.verdict import Verdict, verdict

TRIED: tuple[Word, ...] = ("likely stuck", "open")
"""Words at which changes are tried."""
GAIN = 0.05
"""Of a probability: what a change adds below it is not worth a line of code."""


@dataclass(frozen=True, slots=True)
class Judged:
    """All cells of a probe, what was found at each rate, and what may mend the worst."""

    cells: Sequence[ModelCell]
    verdicts: Sequence[Verdict]
    """The lowest rate first."""
    cures: tuple[Cure, ...] = ()
    """In the order in which they were tried."""
    tried_on: int | None = None
    """The seed that they were tried on: the one least likely to train; None where it is the only one."""
    untried: int = 0
    """Changes for which there was no time."""
    wanted: int = 0
    """Seconds in which there would be time for all of them, by those that were tried; 0 where that is not known."""

    @property
    def mendable(self) -> bool:
        """Whether changes are worth a try: none after a training, nor where no gradient arrives at all."""
        cut = self.worst.gradient.verdict == "fail" and not self.worst.gradient.level
        if self.worst.trained is not None or cut:
            return False
        return self.worst.word in TRIED or not {DRAWN, RATE}.isdisjoint(self.worst.forecast.axes)

    @property
    def cure(self) -> Cure | None:
        """The smallest change after which it is likely to train."""
        return next((own for own in self.cures if own.word == "likely trains"), None)

    @property
    def nearest(self) -> Cure | None:
        """Where none does: the change that leaves it likeliest, if that is open and GAIN likelier than the unchanged
        model of the same seed."""
        if self.cure is not None:
            return None
        whole = self.worst.forecast.probability or 0.0

        def gains(own: Cure) -> bool:
            before = whole if own.seeds > 1 else self.unchanged or 0.0
            return (own.probability or 0.0) >= before + GAIN

        better = [own for own in self.cures if own.word == "open" and gains(own)]
        return max(better, key=lambda own: own.probability or 0.0, default=None)

    @property
    def unchanged(self) -> float | None:
        """With what probability the model trains without a change, of the seed that changes were tried on."""
        return self.as_it_is.forecast.probability

    @property
    def as_it_is(self) -> Verdict:
        """What is found without a change, of the seed that changes were tried on."""
        return self.worst if self.tried_on is None else _of_seed(self.cells, self.worst.lr, self.tried_on)

    def of_seeds(self, lr: float) -> list[float | None]:
        """With what probability the model trains at a rate, seed by seed."""
        seeds = dict.fromkeys(cell.facts.seed for cell in self.cells if cell.facts.lr == lr)
        return [_of_seed(self.cells, lr, seed).forecast.probability for seed in seeds]

    @property
    def worst(self) -> Verdict:
        """That of the rate at which it is least likely to train; of equals the lowest's."""

        def rank(candidate: Verdict) -> tuple[int, int, float, float]:
            p = candidate.forecast.probability
            return FIRM.index(candidate.word), len(candidate.failing), -(p if p is not None else 0.5), -candidate.lr

        return max(self.verdicts, key=rank)


def least_likely(found: Judged) -> int:
    """The seed whose model is least likely to train at the worst rate, of equals the first; by its cells alone."""
    seeds = list(dict.fromkeys(cell.facts.seed for cell in found.cells))
    said = {seed: _of_seed(found.cells, found.worst.lr, seed) for seed in seeds}

    def rank(seed: int) -> tuple[int, float]:
        p = said[seed].forecast.probability
        return FIRM.index(said[seed].word), -(p if p is not None else 0.5)

    return max(seeds, key=rank)


def _of_seed(cells: Sequence[ModelCell], lr: float, seed: int) -> Verdict:
    return verdict([cell for cell in cells if (cell.facts.lr, cell.facts.seed) == (lr, seed)])


def judged(cells: Sequence[ModelCell]) -> Judged:
    """The verdicts of these cells."""
    rates = sorted({cell.facts.lr for cell in cells})
    return Judged(cells, [verdict([cell for cell in cells if cell.facts.lr == rate]) for rate in rates])


def refuse(cells: Sequence[ModelCell]) -> None:
    """Raises UsageError where nothing is finite before any update, or where depth changes nothing."""
    broken = [cell.facts for cell in cells if cell.facts.broke and not cell.facts.broke.step]
    if cells and len(broken) == len(cells):
        first = broken[0]
        raise UsageError(f"{first.factory}: a number is not finite before any update: {first.broke}")
    pairs = sublayer_counts(cells)
    for (shallow, few), (deep, many) in zip(pairs, pairs[1:], strict=False):
        if many <= few:
            raise UsageError(
                f"{cells[0].facts.factory}: at depth {deep} the model has {many} sub-layers, at depth {shallow} {few}; "
                "the factory must build as many layers as it is asked for"
            )
