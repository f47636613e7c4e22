"""What a probe over widths says: the word of each, the law of the highest rate that trains, what is expected."""

from __future__ import annotations

import math
from collections.abc import Sequence

from stabkit.results.intervals import Interval
from stabkit.results.own.widths import FEWEST, AtWidth, Expected, Widths
from stabkit.wording.links import along, rests_on, worth
from stabkit.words import fitting, scientific

HEADS = ("word", "rests on", "rate", "trains up to", "fails at")
EXPECTED = {
    "trains": "it is expected to train at {}",
    "fails": "it is expected not to train at {}",
    "undecided": "these runs cannot say whether it trains at {}",
}


def answer(name: str, found: Widths, predict: Sequence[int], time: float, *, searched: bool = True) -> str:
    """`gpt trains to 128 wide, fails at 256 (256 wide: seen, after 140 updates). The highest rate that trains …`;
    nothing of other rates where none was `searched`."""
    widest = found.widest
    basis = rests_on(widest.decision) or "no forecast"
    said = f"{name} {by_width(found)} at {_rates(found)} ({widest.width} wide: {basis}){worth(widest.decision)}"
    sentences = (said, highest(found, time), *expected(found, predict)) if searched else (said,)
    return " ".join(f"{one}." for one in sentences if one)


def in_short(name: str, found: Widths) -> str:
    """The same as far as a headline holds it."""
    law = f"; the highest rate that trains goes as d^{exponent(found.law)}" if found.law else ""
    said = f"{name} {by_width(found)}"
    return fitting(f"{said}{law}.", f"{said}.", f"It {by_width(found)}.")


def by_width(found: Widths) -> str:
    """`trains to 128 wide, fails at 256`."""
    return along([(row.width, row.decision.word) for row in found.rows], "wide")


def highest(found: Widths, time: float) -> str:
    """`The highest rate that trains goes as d^−0.5 (−1.0 to 0.0)`, or why that is not known."""
    if found.law is not None:
        return f"The highest rate that trains goes as d^{exponent(found.law)}"
    without = [row for row in found.rows if row.bracket is None or row.next_multiple]
    more = f"--time {2 * time:g}" if time > 0 else "--time 120"
    over = [row for row in without if row.next_multiple is None]
    kinds = (
        ("every rate tried trains at {} wide", [row for row in over if row.trains and len(row.tried) > 1]),
        ("none of the rates tried trains at {} wide", [row for row in over if not row.trains]),
        (f"it is not known yet at {{}} wide, where {more} may go on", [row for row in without if row.next_multiple]),
    )
    parts = [said.format(_enumerated([row.width for row in some])) for said, some in kinds if some]
    if not without:
        parts.append(f"a law needs {FEWEST} widths")
    return f"The highest rate that trains has no law here: {'; '.join(parts)}"


def expected(found: Widths, predict: Sequence[int]) -> list[str]:
    """`At 1024 wide it is expected to train at 1e-3: the highest rate that trains lies there from 4e-3 to 2e-2`."""
    if predict and found.law is None:
        return [f"Without that law nothing is expected of {_enumerated(predict)} wide"]
    return [_expected(one) for width in predict if (one := found.expected(width)) is not None]


def _expected(one: Expected) -> str:
    said = EXPECTED[one.word].format(scientific(one.rate))
    span = f"from {scientific(one.highest.low)} to {scientific(one.highest.high)}"
    return (
        f"At {one.width} wide {said}, as far as one seed's law reaches: the highest rate that trains lies there {span}"
    )


def rows(found: Widths) -> list[tuple[str, ...]]:
    """Of a table: the width, and what HEADS name."""
    return [(str(row.width), row.decision.word, rests_on(row.decision) or "–", *_limits(row)) for row in found.rows]


def exponent(law: Interval | None) -> str:
    """`−0.50 (−1.00 to 0.00)`; of one seed the number alone, of none a dash."""
    if law is None:
        return "–"
    low, value, high = (f"{number:z.2f}".replace("-", "−") for number in (law.low, law.value, law.high))
    return value if low == "nan" else f"{value} ({low} to {high})"


def _limits(row: AtWidth) -> tuple[str, str, str]:
    low, high = ("–" if k is None else _rate(k * row.rate) for k in (row.trains, row.fails))
    return _rate(row.rate), low, high


def _enumerated(sizes: Sequence[int]) -> str:
    """`64, 128 and 256`."""
    *some, last = map(str, sizes)
    return f"{', '.join(some)} and {last}" if some else last


def _rates(found: Widths) -> str:
    rates = list(dict.fromkeys(_rate(row.rate) for row in found.rows))
    return rates[0] if len(rates) == 1 else f"rates from {rates[0]} to {rates[-1]}"


def _rate(rate: float) -> str:
    """`1e-3`; of an optimiser without one a dash."""
    return scientific(rate) if 0 < rate < math.inf else "–"
