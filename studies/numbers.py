"""How a number of several seeds is written, with its interval."""

from __future__ import annotations

import math

from stabkit.results.intervals import Interval
from stabkit.words import short


def with_interval(number: Interval | None, digits: int = 2, *, signed: bool = False) -> str:
    """`0.94 (0.92 to 0.96)`; one seed's number alone; – for none."""
    if number is None:
        return "–"

    def write(value: float) -> str:
        return with_sign(value) if signed else short(value, digits)

    if math.isnan(number.low):
        return write(number.value)
    return f"{write(number.value)} ({write(number.low)} to {write(number.high)})"


def with_sign(value: float) -> str:
    """`−0.04`, `+0.10`."""
    return f"{value:+.2f}".replace("-", "−")
