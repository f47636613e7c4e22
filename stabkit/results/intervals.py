"""95 % intervals: of a mean of a few values (Student's t), of a share (Wilson); a number with its own."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypedDict

T_975 = {1: 12.71, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306, 9: 2.262}
T_975 |= {14: 2.145, 19: 2.093, 29: 2.045}
"""97.5 % quantiles of Student's t by degrees of freedom."""
Z_975 = 1.960
"""And of the normal distribution."""


DRAWN = 0.56
"""The standard error that a difference of two losses has for one token because the text is a draw of sentences; that of
n tokens is 1/√n of it. Multi30k, the median of 50 pairs of methods at 18 layers, 0.07 to 1.3: the farther apart two
models are the larger (`benchmarks/validation_text.py` at commit `686db662`)."""


def drawn(tokens: float) -> float:
    """Half the 95 % interval that a difference of losses on so many tokens has for the draw of the text."""
    return Z_975 * DRAWN / math.sqrt(tokens)


def quantile(degrees: int) -> float:
    """Of so many degrees of freedom; between two of the table that of the fewer."""
    return T_975[max(key for key in T_975 if key <= degrees)]


def half(values: Sequence[float]) -> float:
    """Half the 95 % interval of the mean of two values or more."""
    return quantile(len(values) - 1) * statistics.stdev(values) / math.sqrt(len(values))


def wilson(share: float, count: int) -> tuple[float, float]:
    """Of a share of so many (Wilson 1927)."""
    square = Z_975**2
    middle = (share + square / (2 * count)) / (1 + square / count)
    reach = Z_975 / (1 + square / count) * math.sqrt(share * (1 - share) / count + square / (4 * count**2))
    return max(0.0, middle - reach), min(1.0, middle + reach)


class IntervalJson(TypedDict):
    """A number with its 95 % interval; null where it is not finite."""

    value: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class Interval:
    """A number with its 95 % interval; of one seed NaN at both ends."""

    value: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float], more: float = 0.0) -> Interval:
        """The mean of one a seed; `more`: another uncertainty of it, half an interval."""
        middle = statistics.fmean(values)
        reach = math.hypot(half(values), more) if len(values) > 1 else math.nan
        return cls(middle, middle - reach, middle + reach)

    def widened(self, reach: float) -> Interval:
        """At least so wide on either side."""
        return Interval(self.value, min(self.low, self.value - reach), max(self.high, self.value + reach))

    def turned(self, of: Callable[[float], float]) -> Interval:
        """Through an increasing function."""
        return Interval(of(self.value), of(self.low), of(self.high))

    def to_json(self) -> IntervalJson:
        """Plain JSON values."""
        value, low, high = (end if math.isfinite(end) else None for end in (self.value, self.low, self.high))
        return {"value": value, "low": low, "high": high}
