"""The rows of the study as cells: one a method, optimiser and depth, with its best rate and what other seeds lose.

An interval is Student's over the seeds that followed the search (95 %); that of a difference is wider by what another
draw of the validation text would say.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from scipy.stats import spearmanr

from stabkit import methods
from stabkit.results.intervals import Interval, drawn
from stabkit.results.outcome import Word
from studies.recent.design import FIRST, OPTIMIZERS, RUNGS, SEARCHING, models
from studies.rows import StudyRow
from studies.rungs import BestRate, next_outward
from studies.rungs import best as lowest

REFERENCE = "pre-ln"
"""What losses are compared with."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RecentCell:
    """One method under one optimiser at one depth."""

    optimizer: str
    depth: int
    variant: str
    """`mhc:start=identity`."""
    best: BestRate | None
    """Of the search; None where no rate has a loss that is a number."""
    searched: bool
    """Whether its search is over, with a best rate or with none that has a loss."""
    tried: int
    """How many rates."""
    first: Word | None
    """What became of it at the rate that every search begins at; None before it was tried."""
    loss: Interval | None
    """Over the other seeds, at that rate; None where there are none."""
    less: Interval | None
    """The same less Pre-LN's, seed by seed, each at its own best rate."""
    mixing: float
    """The largest gain of its mixings over all runs at that rate; 1 where nothing mixes."""

    @property
    def label(self) -> str:
        return methods.label(*methods.parse(self.variant))

    @property
    def known(self) -> bool:
        """Whether it has a best rate."""
        return self.searched and self.best is not None


class RecentTable:
    """All cells of which there is a row."""

    def __init__(self, rows: Sequence[StudyRow], variants: Sequence[str]) -> None:
        self.variants = tuple(variants)
        self._rows: dict[tuple[str, int, str], list[StudyRow]] = {}
        for row in rows:
            self._rows.setdefault((row.optimizer, row.depth, variant(row)), []).append(row)

    @cached_property
    def cells(self) -> tuple[RecentCell, ...]:
        """By optimiser, depth, and in the order of the methods."""
        order = {name: i for i, name in enumerate(self.variants)}
        keys = sorted(self._rows, key=lambda key: (OPTIMIZERS.index(key[0]), key[1], order[key[2]]))
        return tuple(self._cell(*key) for key in keys)

    def of(self, optimizer: str, depth: int, *, whole: bool = True) -> list[RecentCell]:
        """The cells that have a best rate; none while a search there goes on or has not begun, if they are to be
        `whole`."""
        cells = [cell for cell in self.cells if (cell.optimizer, cell.depth) == (optimizer, depth)]
        through = {cell.variant for cell in cells if cell.searched} >= set(models(optimizer))
        return [cell for cell in cells if cell.known] if through or not whole else []

    def lost(self, optimizer: str, depth: int) -> list[RecentCell]:
        """The cells whose search found no rate that has a loss."""
        here = [cell for cell in self.cells if (cell.optimizer, cell.depth) == (optimizer, depth)]
        return [cell for cell in here if cell.searched and cell.best is None]

    @property
    def depths(self) -> list[int]:
        return sorted({cell.depth for cell in self.cells})

    def correlation(self, depth: int) -> tuple[float, int] | None:
        """(Spearman's ρ of the two optimisers' losses at the best rates, methods); None before both are whole."""
        first, second = ({cell.variant: cell.best.loss for cell in self.of(o, depth) if cell.best} for o in OPTIMIZERS)
        both = [name for name in first if name in second]
        if len(both) < 3:
            return None
        return float(spearmanr([first[n] for n in both], [second[n] for n in both]).statistic), len(both)

    def _cell(self, optimizer: str, depth: int, name: str) -> RecentCell:
        rows = self._rows[optimizer, depth, name]
        best, others = self._found(rows)
        losses = {row.seed: row.equal_loss for row in others}
        reference = self._rows.get((optimizer, depth, REFERENCE), [])
        theirs = {row.seed: row.equal_loss for row in self._found(reference)[1]}
        apart = [losses[seed] - theirs[seed] for seed in losses if seed in theirs]
        at = [row for row in rows if best and row.rate == best.rate and row.profile]
        return RecentCell(
            optimizer=optimizer,
            depth=depth,
            variant=name,
            best=best,
            tried=sum(row.seed == SEARCHING for row in rows),
            first=next((row.outcome for row in rows if (row.seed, row.rate) == (SEARCHING, FIRST)), None),
            searched=next_outward(RUNGS, _searched(rows), _trains(rows), FIRST) is None,
            loss=_mean(losses.values()),
            less=None if name == REFERENCE else _mean(apart, drawn(TOKENS)),
            mixing=max((row.profile.mixing for row in at if row.profile), default=1.0),
        )

    @staticmethod
    def _found(rows: Sequence[StudyRow]) -> tuple[BestRate | None, list[StudyRow]]:
        """The best rate of the search, and the rows of the other seeds there."""
        best = lowest(RUNGS, _searched(rows))
        return best, [row for row in rows if best and row.rate == best.rate and row.seed != SEARCHING]


def _searched(rows: Iterable[StudyRow]) -> dict[float, float]:
    """{rate: loss} of the search."""
    return {row.rate: row.equal_loss for row in rows if row.seed == SEARCHING}


def _trains(rows: Iterable[StudyRow]) -> dict[float, bool]:
    """{rate: whether it trains} of the search."""
    return {row.rate: row.trains for row in rows if row.seed == SEARCHING}


def variant(row: StudyRow) -> str:
    """Its method with the options away from their defaults."""
    return ":".join(filter(None, (row.method, row.options)))


TOKENS = 435
"""Of the validation sentences that a run of 256 tokens a batch is judged on, the same for all."""


def _mean(values: Iterable[float], more: float = 0.0) -> Interval | None:
    """None where one is infinite: a seed that diverged has no loss to average. `more`: what another draw of the text
    would say, half an interval."""
    held = list(values)
    return Interval.of(held, more) if held and all(map(math.isfinite, held)) else None
