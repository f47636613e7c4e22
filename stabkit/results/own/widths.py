"""A user's model at several widths: the word of each, the highest rate that trains there, its law, what is expected.

    highest ∝ d^p    a line through the logarithms of brackets [trains, fails] of a factor RESOLVED, of FEWEST widths

A rate is that of the factory at the width times a multiple, so that a law of its own over width is kept. That what lies
below a rate that trains trains too is taken for granted; a rate that is undecided ends no bracket. Range of the line:
least squares through any place in each bracket.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypedDict

from stabkit.errors import UsageError
from stabkit.results.forecast.logistic import Word
from stabkit.results.intervals import Interval, IntervalJson
from stabkit.results.line import boxed
from stabkit.results.own.cell import ModelCell
from stabkit.results.own.decided import decided
from stabkit.results.own.looks import Decision

STRIDE, RESOLVED = 4.0, 2.0
"""Between multiples on the way to a bracket, and of the bracket where it ends."""
FEWEST = 3
"""Widths that a law needs."""
FAILS = ("fails", "probably fails")
FARTHEST = 256.0
"""The largest multiple that is tried, and one over the smallest."""


class AtWidthJson(TypedDict):
    """One width."""

    width: int
    rate: float
    word: Word
    basis: str
    probability: float | None
    updates: int
    highest_that_trains: float | None
    lowest_that_fails: float | None


class ExpectedJson(TypedDict):
    """A width that was not probed."""

    width: int
    rate: float
    word: Word
    highest: IntervalJson
    """The highest rate that trains there, by the law."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AtWidth:
    """One width, by the first seed."""

    width: int
    rate: float
    """The factory's there, or that which was asked for."""
    tried: Mapping[float, Decision]
    """{multiple of it: the word}; 1 is among them."""

    @property
    def decision(self) -> Decision:
        return self.tried[1.0]

    @property
    def trains(self) -> float | None:
        """The highest multiple that trains, or probably does."""
        return max((k for k, one in self.tried.items() if one.word in ("trains", "probably trains")), default=None)

    @property
    def fails(self) -> float | None:
        """The lowest one above that which fails, or probably does."""
        low = self.trains or 0.0
        return min((k for k, one in self.tried.items() if k > low and one.word in FAILS), default=None)

    @property
    def bracket(self) -> tuple[float, float] | None:
        """The rates between which the highest that trains lies; None where it was not found."""
        low, high = self.trains, self.fails
        return (low * self.rate, high * self.rate) if low and high and 0 < self.rate < math.inf else None

    @property
    def next_multiple(self) -> float | None:
        """What to try next; None where the bracket is narrow, its end out of reach, or there is no rate to multiply."""
        if not 0 < self.rate < math.inf:
            return None
        low, high = self.trains, self.fails
        if low is not None and high is not None:
            middle = float(f"{math.sqrt(low * high):.4g}")
            return middle if high / low > 1.01 * RESOLVED and middle not in self.tried else None
        wanted = STRIDE * max(self.tried) if low is not None else min(self.tried) / STRIDE
        return wanted if 1 / FARTHEST <= wanted <= FARTHEST else None

    def to_json(self) -> AtWidthJson:
        """Plain JSON values."""
        said, rates = self.decision, [None if k is None else k * self.rate for k in (self.trains, self.fails)]
        return {
            "width": self.width,
            "rate": self.rate,
            "word": said.word,
            "basis": said.basis,
            "probability": said.probability,
            "updates": said.updates,
            "highest_that_trains": rates[0],
            "lowest_that_fails": rates[1],
        }


@dataclass(frozen=True, kw_only=True, slots=True)
class Expected:
    """A width that was not probed."""

    width: int
    rate: float
    """The factory's there, by the law of its rates."""
    highest: Interval
    """The highest rate that trains there."""

    @property
    def word(self) -> Word:
        """`trains` below all that the highest rate may be, `fails` above."""
        return "trains" if self.rate < self.highest.low else "fails" if self.rate > self.highest.high else "undecided"

    def to_json(self) -> ExpectedJson:
        """Plain JSON values."""
        return {"width": self.width, "rate": self.rate, "word": self.word, "highest": self.highest.to_json()}


@dataclass(frozen=True, slots=True)
class Widths:
    """All of them, the narrowest first."""

    rows: Sequence[AtWidth]

    @property
    def widest(self) -> AtWidth:
        return self.rows[-1]

    @property
    def law(self) -> Interval | None:
        """p of the highest rate that trains ∝ d^p; None where a width has no bracket."""
        return self._highest(None)

    def expected(self, width: int) -> Expected | None:
        """At another width; None where there is no law."""
        highest = self._highest(math.log(width))
        if highest is None:
            return None
        rates = [math.log(row.rate) for row in self.rows]
        own = math.exp(boxed(self._across, rates, rates, math.log(width)).value)
        return Expected(width=width, rate=own, highest=highest.turned(math.exp))

    @property
    def _across(self) -> list[float]:
        return [math.log(row.width) for row in self.rows]

    def _highest(self, at: float | None) -> Interval | None:
        brackets = [row.bracket for row in self.rows if row.bracket is not None]
        if len(brackets) < max(FEWEST, len(self.rows)):
            return None
        low, high = ([math.log(bracket[i]) for bracket in brackets] for i in (0, 1))
        return boxed(self._across, low, high, at)


def over_widths(cells: Sequence[ModelCell], seed: int, asked: int = 1) -> Widths:
    """Of cells of one depth at so many widths, by this seed; a width without a result with it is left out. Raises
    UsageError where the models have all one width."""
    if len(widths := {cell.facts.width for cell in cells}) < min(asked, 2):
        raise UsageError(
            f"{cells[0].facts.factory}: the model's state is {min(widths)} wide at every width asked for; "
            "the factory must build a model as wide as its second argument says"
        )
    mine = [cell for cell in cells if cell.seed == seed]
    rows = []
    for at in sorted((cell for cell in mine if cell.facts.times == 1), key=lambda cell: cell.facts.width):
        own = [cell for cell in mine if cell.facts.width == at.facts.width]
        tried = {cell.facts.times: decided(cell) for cell in own}
        rows.append(AtWidth(width=at.facts.width, rate=at.facts.rate, tried=dict(sorted(tried.items()))))
    return Widths(rows)
