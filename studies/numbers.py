"""A number of several seeds with its interval, and how it is written."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from stabkit.figures.shared.words import short
from stabkit.results import intervals


@dataclass(frozen=True, slots=True)
class Number:
    """A number of several seeds, or of one."""

    value: float
    low: float | None = None
    high: float | None = None


def mean(values: Sequence[float]) -> Number | None:
    """With Student's interval (95 %) from two values on; None of none."""
    if not values:
        return None
    middle = statistics.fmean(values)
    if len(values) < 2:
        return Number(middle)
    half = intervals.half(values)
    return Number(middle, middle - half, middle + half)


def with_interval(number: Number | None, digits: int = 2, *, signed: bool = False) -> str:
    """`0.94 (0.92 to 0.96)`; one seed's number alone; – for none."""
    if number is None:
        return "–"

    def write(value: float) -> str:
        return with_sign(value) if signed else short(value, digits)

    if number.low is None or number.high is None:
        return write(number.value)
    return f"{write(number.value)} ({write(number.low)} to {write(number.high)})"


def with_sign(value: float) -> str:
    """`−0.04`, `+0.10`."""
    return f"{value:+.2f}".replace("-", "−")
