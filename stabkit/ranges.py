"""The little languages of the command line: text → values, or one UsageError that names the option and the token.

    whole numbers   "6,18,50"  "0..4" = 0,1,2,3,4  "7"
    depths          "6,18" = 6L-6L, 18L-18L   "60x12" = 60L-12L   "2..4"
    real numbers    "5e-4,1e-3"

Digits are ASCII, without underscores; equal values count once; bounds are checked here.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import TypeVar

from stabkit.errors import UsageError

MAX_LIST = 10_000
"""Values in one option: more is a slip of the keyboard."""
MAX_DEPTH = 10_000

_WHOLE = re.compile(r"[0-9]{1,18}", re.ASCII)
_SPAN = re.compile(r"([0-9]{1,18})\.\.([0-9]{1,18})", re.ASCII)
_DEPTH = re.compile(r"([0-9]{1,18})[xX]([0-9]{1,18})", re.ASCII)
_REAL = re.compile(r"[0-9]{0,40}\.?[0-9]{0,40}([eE][+-]?[0-9]{1,4})?", re.ASCII)

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
        if not _WHOLE.fullmatch(token):
            raise UsageError(f"{option}: {token!r} is not a whole number, a list like 6,18 or a span like 0..4")
        return [_bounded(option, token, int(token), low, high)]

    return _items(option, text, item)


def depths(option: str, text: str) -> tuple[tuple[int, int], ...]:
    """(N, M) pairs: `6` is 6L-6L, `60x12` is 60L-12L."""

    def item(token: str) -> list[tuple[int, int]]:
        if pair := _DEPTH.fullmatch(token):
            n, m = (_bounded(option, token, int(v), 1, MAX_DEPTH) for v in pair.groups())
            return [(n, m)]
        if not (_WHOLE.fullmatch(token) or _SPAN.fullmatch(token)):
            raise UsageError(
                f"{option}: {token!r} is not a depth; write 18 (18L-18L), 60x12 (60L-12L) or a list like 6,18,50"
            )
        return [(n, n) for n in wholes(option, token, 1, MAX_DEPTH)]

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
        value = float(token) if _REAL.fullmatch(token) and any(map(str.isdigit, token)) else math.nan
        if math.isnan(value):
            raise UsageError(f"{option}: {token!r} is not a number; write 5e-4 or a list like 5e-4,1e-3")
        if not low <= value <= high or (above and value == low):
            raise UsageError(f"{option}: {token!r} is outside {'above ' if above else ''}{low:g} to {high:g}")
        return [value]

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
