"""The table of 2026 from its rows: a cell a block, depth and method, each number with its interval.

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
from stabkit.results import ladder, student
from stabkit.results.chain import SATURATED
from stabkit.results.exponent import exponent
from stabkit.results.forecast.rows import Row
from stabkit.results.ladder import Best, Limit

BESIDE = "pre-ln"
"""What losses are compared with."""


@dataclass(frozen=True, slots=True)
class Number:
    """A number of several seeds, or of one."""

    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Cell:
    """One method at one depth in one block."""

    block: str
    depth: int
    method: str
    outcomes: Mapping[str, int]
    """{word: how many seeds ended so}, at the table's rate."""
    loss: Number | None
    """Validation loss after equal updates."""
    beside: Number | None
    """The same less Pre-LN's, seed by seed."""
    gradient: Number | None
    """First over last layer's gradient norm then."""
    lowest: Number | None
    """The lowest of these until then."""
    cosine: Number | None
    """Between neighbouring states, mean over the layers."""
    limit: Limit | None
    """The highest rate that trains, where it was searched."""
    tried: Mapping[float, tuple[str, float]]
    """{rate: (outcome, loss after equal updates)} of the search."""
    best: Best | None
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
class Today:
    """The rows of both kinds of runs and what follows from them."""

    table: tuple[Row, ...]
    """Every method at one rate."""
    ladder: tuple[Row, ...]
    """Every method at the rates that the search tried."""
    rungs: tuple[float, ...]
    """All rates of the search, ascending."""
    blocks: tuple[str, ...]
    keys: tuple[str, ...]
    """The methods, in their order."""
    rate: float
    """That of the table."""

    @cached_property
    def halved(self) -> tuple[Row, ...]:
        """Of the ladder what the search for the highest rate tried: half of the runs or more lie near it, on both
        sides, and no loss has chosen them."""
        found = []
        for own in _by_place(self.ladder).values():
            kept = ladder.halved(self.rungs, {row.rate: row.trains for row in own})
            found += [row for row in own if row.rate in kept]
        return tuple(found)

    @cached_property
    def cells(self) -> tuple[Cell, ...]:
        """Every cell of which there is a row, by block, depth and method."""
        table, tried = self._plain, _by_place(self.ladder)
        return tuple(
            self._cell(place, table.get(place, []), tried.get(place, []))
            for place in sorted({*table, *tried}, key=self._order)
        )

    def _order(self, place: tuple[str, int, str]) -> tuple[int, int, int]:
        block, depth, method = place
        return self.blocks.index(block), depth, self.keys.index(method)

    def _cell(self, place: tuple[str, int, str], mine: Sequence[Row], tried: Sequence[Row]) -> Cell:
        block, depth, method = place
        profiles = [row.profile for row in mine if row.profile]
        return Cell(
            block=block,
            depth=depth,
            method=method,
            outcomes=dict(Counter(row.outcome for row in mine)),
            loss=mean([one.loss for one in profiles]),
            beside=self._beside(place, mine),
            gradient=geometric([one.gradient for one in profiles]),
            lowest=geometric([one.gradient_lowest for one in profiles]),
            cosine=mean([one.cosine for one in profiles]),
            limit=ladder.limit(self.rungs, {row.rate: row.trains for row in tried}) if tried else None,
            tried={row.rate: (row.outcome, row.equal_loss) for row in tried},
            best=ladder.best(self.rungs, {row.rate: row.equal_loss for row in tried}),
        )

    def _beside(self, place: tuple[str, int, str], mine: Sequence[Row]) -> Number | None:
        block, depth, _ = place
        theirs = {row.seed: row.profile.loss for row in self._plain.get((block, depth, BESIDE), []) if row.profile}
        own = [row.profile.loss - theirs[row.seed] for row in mine if row.profile and row.seed in theirs]
        return mean(own)

    @cached_property
    def _plain(self) -> dict[tuple[str, int, str], list[Row]]:
        return _by_place(self.table)

    def of(self, block: str, method: str) -> dict[int, Cell]:
        """{depth: cell} of a method in a block."""
        return {one.depth: one for one in self.cells if (one.block, one.method) == (block, method)}

    @property
    def unigram(self) -> float:
        """What the best constant predictor loses; NaN without a row."""
        return statistics.median([row.measured.unigram for row in self.table if row.measured] or [math.nan])

    def deepest(self, block: str, has: Callable[[Cell], Any]) -> list[Cell]:
        """The cells of the greatest depth at which every method has it; none where there is no such depth."""
        own = [one for one in self.cells if one.block == block and has(one)]
        whole = [n for n, count in Counter(one.depth for one in own).items() if count == len(self.keys)]
        return [one for one in own if one.depth == max(whole)] if whole else []

    @cached_property
    def exponents(self) -> Mapping[tuple[str, str], Number]:
        """{(block, method): the exponent in the depth of ‖ΔF‖ after update 1}, where there are depths enough."""
        held: dict[tuple[str, str], list[tuple[float, float]]] = {}
        for row in self.table:
            if row.measured:
                held.setdefault((row.block, row.method), []).append((row.decoder_layers, row.measured.update_first))
        fitted = {key: exponent(points) for key, points in held.items()}
        return {key: Number(*found) for key, found in fitted.items() if found}

    @cached_property
    def saturated(self) -> frozenset[tuple[str, str]]:
        """(block, method) whose ‖ΔF‖ after update 1 is beyond SATURATED·√(2d) at some depth, so that its
        exponent says nothing."""
        return frozenset(
            (row.block, row.method)
            for row in self.table
            if row.measured and row.measured.update_first > SATURATED * math.sqrt(2 * row.hidden)
        )


def _by_place(rows: Sequence[Row]) -> dict[tuple[str, int, str], list[Row]]:
    held: dict[tuple[str, int, str], list[Row]] = {}
    for row in rows:
        held.setdefault((row.block, row.decoder_layers, row.method), []).append(row)
    return held


def mean(values: Sequence[float]) -> Number | None:
    """With Student's interval from two values on; None of none."""
    if not values:
        return None
    middle = statistics.fmean(values)
    if len(values) < 2:
        return Number(middle)
    half = student.half(values)
    return Number(middle, middle - half, middle + half)


def geometric(values: Sequence[float]) -> Number | None:
    """The same in logarithms."""
    found = mean([math.log(value) for value in values])
    if found is None:
        return None
    low, high = (None if end is None else math.exp(end) for end in (found.low, found.high))
    return Number(math.exp(found.value), low, high)
