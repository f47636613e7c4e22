"""The little languages of the command line: text → values, or one UsageError that names the option and the token.

    whole numbers   "6,18,50"  "0..4" = 0,1,2,3,4  "7"
    depths          "6,18" = 6L-6L, 18L-18L   "60x12" = 60L-12L   "2..4"
    real numbers    "5e-4,1e-3"
    scales          "0.25..4" = 0.25, 0.5, 1, 2, 4   "0.25..4:9" nine values evenly in log   "0.5,1,1.5"

Digits are ASCII, without underscores; equal values count once; bounds are checked here.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any, TypeVar

from stabkit.errors import UsageError, nearest

MAX_LIST = 10_000
"""Values in one option: more is a slip of the keyboard."""
MAX_DEPTH = 10_000

_WHOLE = re.compile(r"[0-9]{1,18}", re.ASCII)
_SPAN = re.compile(r"([0-9]{1,18})\.\.([0-9]{1,18})", re.ASCII)
_DEPTH = re.compile(r"([0-9]{1,18})[xX]([0-9]{1,18})", re.ASCII)
_REAL = re.compile(r"([0-9]{1,40}\.?[0-9]{0,40}|\.[0-9]{1,40})([eE][+-]?[0-9]{1,4})?", re.ASCII)

T = TypeVar("T")


def whole(option: str, text: str, low: int, high: int) -> int:
    """One whole number within bounds."""
    values = wholes(option, text, low, high)
    if len(values) != 1:
        raise UsageError(f"{option} takes one whole number, not {text!r}")
    return values[0]


def wholes(option: str, text: str, low: int, high: int) -> tuple[int, ...]:
    """Whole numbers, lists and spans."""

    def item(token: str) -> list[int]:
        if span := _SPAN.fullmatch(token):
            first, last = int(span[1]), int(span[2])
            if first > last:
                raise UsageError(f"{option}: {token!r} runs backwards; write {last}..{first}")
            _short(option, token, last - first + 1)
            return [_bounded(option, token, v, low, high) for v in range(first, last + 1)]
        if re.fullmatch(r"-[0-9]+", token, re.ASCII):
            raise UsageError(f"{option}: {token!r} is below {low}, the least that it can be")
        if not _WHOLE.fullmatch(token):
            raise UsageError(f"{option}: {token!r} is not a whole number, a list like 6,18 or a span like 0..4")
        return [_bounded(option, token, int(token), low, high)]

    return _items(option, text, item)


ARCHITECTURES = {"encoder-decoder": (1, 1), "encoder-only": (1, 0), "decoder-only": (0, 1)}
"""Which stacks there are."""


def stacks(option: str, text: str) -> tuple[int, int]:
    """Which stacks an architecture has; raises UsageError naming the nearest."""
    if text not in ARCHITECTURES:
        raise UsageError(f"{option}: {text!r} is not one of {', '.join(ARCHITECTURES)}{nearest(text, ARCHITECTURES)}")
    return ARCHITECTURES[text]


def depths(option: str, text: str, stacks: tuple[int, int] = (1, 1)) -> tuple[tuple[int, int], ...]:
    """(N, M) pairs: `6` is 6L-6L, `60x12` is 60L-12L; of one stack alone `6` is (6, 0) or (0, 6)."""

    def item(token: str) -> list[tuple[int, int]]:
        if pair := _DEPTH.fullmatch(token):
            if stacks != (1, 1):
                raise UsageError(f"{option}: {token!r} is an encoder and a decoder; one stack has one depth, like 18")
            n, m = (_bounded(option, token, int(v), 1, MAX_DEPTH) for v in pair.groups())
            return [(n, m)]
        if not (_WHOLE.fullmatch(token) or _SPAN.fullmatch(token)):
            raise UsageError(
                f"{option}: {token!r} is not a depth; write 18 (18L-18L), 60x12 (60L-12L) or a list like 6,18,50"
            )
        return [(n * stacks[0], n * stacks[1]) for n in wholes(option, token, 1, MAX_DEPTH)]

    return _items(option, text, item)


def real(option: str, text: str, low: float, high: float, *, above: bool = False) -> float:
    """One number in [low, high], or in (low, high] with `above`."""
    values = reals(option, text, low, high, above=above)
    if len(values) != 1:
        raise UsageError(f"{option} takes one number, not {text!r}")
    return values[0]


def reals(option: str, text: str, low: float, high: float, *, above: bool = False) -> tuple[float, ...]:
    """A list of numbers within bounds."""

    def item(token: str) -> list[float]:
        size = token.removeprefix("-")
        value = float(token) if _REAL.fullmatch(size) and any(map(str.isdigit, size)) else math.nan
        if math.isnan(value):
            raise UsageError(f"{option}: {token!r} is not a number; write 5e-4 or a list like 5e-4,1e-3")
        if value < low or (above and value == low):
            raise UsageError(f"{option}: {token!r} is not {'above' if above else 'at least'} {low:g}")
        if value > high:
            raise UsageError(f"{option}: {token!r} is above {high:g}")
        return [value]

    return _items(option, text, item)


def scales(option: str, text: str) -> tuple[float, ...]:
    """Positive factors: a list, doublings between ends a power of two apart, or n values evenly in log.

    The ends of a span are as written; what lies between is rounded to six digits, so that 2 is 2 and a run has one id.
    """

    def number(token: str) -> float:
        if token[:1] == "-":
            raise UsageError(f"{option}: {token!r} is not above 0; a factor is, like those of 0.25..4")
        (value,) = reals(option, token, 0.0, 1e6, above=True)
        return value

    def item(token: str) -> list[float]:
        span, colon, count = token.partition(":")
        ends = span.split("..")
        if len(ends) == 1:
            if colon:
                raise UsageError(f"{option}: {token!r} has a count but no span; write 0.25..4:9")
            return [number(token)]
        if len(ends) > 2 or "" in ends or any(end[:1] == "." or end[-1:] == "." for end in ends):
            raise UsageError(f"{option}: {token!r} is not a span; write 0.25..4 for doublings or 0.25..4:9")
        low, high = number(ends[0]), number(ends[1])
        if low > high:
            raise UsageError(f"{option}: {token!r} runs backwards; write {ends[1]}..{ends[0]}")
        if colon:
            steps = whole(option, count, 1, 1000)
            if (low == high) != (steps == 1):
                raise UsageError(f"{option}: {token!r} asks for {steps} values from {ends[0]} to {ends[1]}")
        else:
            doublings = math.log2(high / low)
            steps = round(doublings) + 1
            if abs(doublings - round(doublings)) > 1e-9:
                raise UsageError(
                    f"{option}: {token!r} are doublings, and {ends[1]} is no power of two times {ends[0]}; "
                    f"use {span}:5 or a list"
                )
        if steps == 1:
            return [low]
        between = [float(f"{low * (high / low) ** (i / (steps - 1)):.6g}") for i in range(1, steps - 1)]
        return [low, *between, high]

    return _items(option, text, item)


def _items(option: str, text: str, item: Callable[[str], list[T]]) -> tuple[T, ...]:
    tokens = [token.strip() for token in text.split(",")]
    _short(option, text, len(tokens))
    if "" in tokens:
        raise UsageError(f"{option}: {text!r} has an empty place; write values with commas between, like 6,18")
    values = dict.fromkeys(value for token in tokens for value in item(token))
    _short(option, text, len(values))
    return tuple(values)


def _short(option: str, text: str, count: int) -> None:
    if count > MAX_LIST:
        raise UsageError(f"{option}: {text[:40]!r} holds {count} values; {MAX_LIST} is the most")


def _bounded(option: str, token: str, value: int, low: int, high: int) -> int:
    if not low <= value <= high:
        raise UsageError(f"{option}: {token!r} is outside {low} to {high}")
    return value


def choice(option: str, text: str, valid: tuple[Any, ...]) -> Any:
    """One of a few words."""
    if text not in valid:
        raise UsageError(f"{option}: {text!r} is not one of {', '.join(valid)}{nearest(text, valid)}")
    return text
