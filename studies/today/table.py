"""The table of recent methods from its rows: a cell a block, depth and method, each number with its interval.

An interval is Student's over the seeds (95 %), of ratios in logarithms; one seed has none. An exponent's is that of one
least-squares line through all runs of a method and block.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from stabkit import methods
from stabkit.results import intervals
from stabkit.results.chain import SATURATED
from stabkit.results.line import exponent
from studies import ladder
from studies.ladder import BestRate, RateLimit
from studies.rows import StudyRow

REFERENCE = "pre-ln"
"""What losses are compared with."""


@dataclass(frozen=True, slots=True)
class Number:
    """A number of several seeds, or of one."""

    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class MethodCell:
    """One method at one depth in one block."""

    block: str
    depth: int
    method: str
    outcomes: Mapping[str, int]
    """{word: how many seeds ended so}, at the table's rate."""
    loss: Number | None
    """Validation loss after equal updates."""
    difference: Number | None
    """The same less Pre-LN's, seed by seed."""
    gradient: Number | None
    """First over last layer's gradient norm then."""
    lowest: Number | None
    """The lowest of these until then."""
    cosine: Number | None
    """Between neighbouring states, mean over the layers."""
    limit: RateLimit | None
    """The highest rate that trains, where it was searched."""
    tried: Mapping[float, tuple[str, float]]
    """{rate: (outcome, loss after equal updates)} of the search."""
    best: BestRate | None
    """The rate of the lowest loss after equal updates, likewise."""

    @property
    def label(self) -> str:
        return methods.label(self.method, {})

    @property
    def trains(self) -> bool | None:
        """Whether most of its seeds train; None without runs."""
        count = sum(self.outcomes.values())
        return 2 * self.outcomes.get("trains", 0) > count if count else None

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        tried = [
            {"rate": rate, "outcome": word, "loss": loss if math.isfinite(loss) else None}
            for rate, (word, loss) in sorted(self.tried.items())
        ]
        return {**asdict(self), "outcomes": dict(self.outcomes), "tried": tried, "label": self.label}


@dataclass(frozen=True, kw_only=True)
class MethodTable:
    """The rows of both kinds of runs and what follows from them."""

    tabled: tuple[StudyRow, ...]
    """Every method at one rate."""
    searched: tuple[StudyRow, ...]
    """Every method at the rates that the search tried."""
    rungs: tuple[float, ...]
    """All rates of the search, ascending."""
    blocks: tuple[str, ...]
    keys: tuple[str, ...]
    """The methods, in their order."""
    rate: float
    """That of the table."""

    @cached_property
    def halved(self) -> tuple[StudyRow, ...]:
        """Of the search what was tried for the highest rate: half of the runs or more lie near it, on both
        sides, and no loss has chosen them."""
        halved = []
        for rows in _by_cell(self.searched).values():
            rates = ladder.halved(self.rungs, {row.rate: row.trains for row in rows})
            halved += [row for row in rows if row.rate in rates]
        return tuple(halved)

    @cached_property
    def cells(self) -> tuple[MethodCell, ...]:
        """Every cell of which there is a row, by block, depth and method."""
        tabled, searched = self._tabled, _by_cell(self.searched)
        return tuple(
            self._cell(key, tabled.get(key, []), searched.get(key, []))
            for key in sorted({*tabled, *searched}, key=self._order)
        )

    def _order(self, key: tuple[str, int, str]) -> tuple[int, int, int]:
        block, depth, method = key
        return self.blocks.index(block), depth, self.keys.index(method)

    def _cell(self, key: tuple[str, int, str], tabled: Sequence[StudyRow], tried: Sequence[StudyRow]) -> MethodCell:
        block, depth, method = key
        profiles = [row.profile for row in tabled if row.profile]
        return MethodCell(
            block=block,
            depth=depth,
            method=method,
            outcomes=dict(Counter(row.outcome for row in tabled)),
            loss=mean([profile.loss for profile in profiles]),
            difference=self._difference(key, tabled),
            gradient=geometric([profile.gradient for profile in profiles]),
            lowest=geometric([profile.gradient_lowest for profile in profiles]),
            cosine=mean([profile.cosine for profile in profiles]),
            limit=ladder.limit(self.rungs, {row.rate: row.trains for row in tried}) if tried else None,
            tried={row.rate: (row.outcome, row.equal_loss) for row in tried},
            best=ladder.best(self.rungs, {row.rate: row.equal_loss for row in tried}),
        )

    def _difference(self, key: tuple[str, int, str], rows: Sequence[StudyRow]) -> Number | None:
        block, depth, _ = key
        pairs = self._tabled.get((block, depth, REFERENCE), [])
        reference = {row.seed: row.profile.loss for row in pairs if row.profile}
        return mean([row.profile.loss - reference[row.seed] for row in rows if row.profile and row.seed in reference])

    @cached_property
    def _tabled(self) -> dict[tuple[str, int, str], list[StudyRow]]:
        return _by_cell(self.tabled)

    def of(self, block: str, method: str) -> dict[int, MethodCell]:
        """{depth: cell} of a method in a block."""
        return {cell.depth: cell for cell in self.cells if (cell.block, cell.method) == (block, method)}

    @property
    def unigram(self) -> float:
        """What the best constant predictor loses; NaN without a row."""
        return statistics.median([row.measured.unigram for row in self.tabled if row.measured] or [math.nan])

    def deepest(self, block: str, has: Callable[[MethodCell], Any]) -> list[MethodCell]:
        """The cells of the greatest depth at which every method has it; none where there is no such depth."""
        cells = [cell for cell in self.cells if cell.block == block and has(cell)]
        whole = [n for n, count in Counter(cell.depth for cell in cells).items() if count == len(self.keys)]
        return [cell for cell in cells if cell.depth == max(whole)] if whole else []

    @cached_property
    def exponents(self) -> Mapping[tuple[str, str], Number]:
        """{(block, method): the exponent in the depth of ‖ΔF‖ after update 1}, where there are depths enough."""
        points: dict[tuple[str, str], list[tuple[float, float]]] = {}
        for row in self.tabled:
            if row.measured:
                points.setdefault((row.block, row.method), []).append((row.decoder_layers, row.measured.update_first))
        lines = {key: exponent(some) for key, some in points.items()}
        return {key: Number(*line) for key, line in lines.items() if line}

    @cached_property
    def saturated(self) -> frozenset[tuple[str, str]]:
        """(block, method) whose ‖ΔF‖ after update 1 is beyond SATURATED·√(2d) at some depth, so that its
        exponent says nothing."""
        return frozenset(
            (row.block, row.method)
            for row in self.tabled
            if row.measured and row.measured.update_first > SATURATED * math.sqrt(2 * row.hidden)
        )


def _by_cell(rows: Sequence[StudyRow]) -> dict[tuple[str, int, str], list[StudyRow]]:
    cells: dict[tuple[str, int, str], list[StudyRow]] = {}
    for row in rows:
        cells.setdefault((row.block, row.decoder_layers, row.method), []).append(row)
    return cells


def mean(values: Sequence[float]) -> Number | None:
    """With Student's interval from two values on; None of none."""
    if not values:
        return None
    middle = statistics.fmean(values)
    if len(values) < 2:
        return Number(middle)
    half = intervals.half(values)
    return Number(middle, middle - half, middle + half)


def geometric(values: Sequence[float]) -> Number | None:
    """The same in logarithms."""
    log = mean([math.log(value) for value in values])
    if log is None:
        return None
    low, high = (None if end is None else math.exp(end) for end in (log.low, log.high))
    return Number(math.exp(log.value), low, high)
