"""What an option takes: a text in its little language or values of Python → values, or one UsageError that names the
option and the token.

    whole numbers   "6,18,50"  "0..4" = 0,1,2,3,4  "7"                    7, (6, 18), range(5)
    depths          "6,18" = 6L-6L, 18L-18L   "60x12" = 60L-12L   "2..4"   6, [(60, 12), 6]
    real numbers    "5e-4,1e-3"                                           5e-4, numpy.array([5e-4, 1e-3])
    scales          "0.25..4" = 0.25, 0.5, 1, 2, 4   "0.25..4:9" nine values evenly in log   "0.5,1,1.5"

Digits are ASCII, without underscores; equal values count once; bounds are checked here. `text` is the way back.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Iterable, Sequence
from os import PathLike
from typing import Any, Literal, NoReturn, TypeVar

from stabkit.errors import UsageError, nearest

MAX_LIST = 10_000
"""Values in one option: more is a slip of the keyboard."""
MAX_DEPTH = 10_000

_WHOLE = re.compile(r"[0-9]{1,18}", re.ASCII)
_SPAN = re.compile(r"([0-9]{1,18})\.\.([0-9]{1,18})", re.ASCII)
_DEPTH = re.compile(r"([0-9]{1,18})[xX]([0-9]{1,18})", re.ASCII)
_REAL = re.compile(r"([0-9]{1,40}\.?[0-9]{0,40}|\.[0-9]{1,40})([eE][+-]?[0-9]{1,4})?", re.ASCII)

T = TypeVar("T")


def whole(option: str, given: Any, low: int, high: int) -> int:
    """One whole number within bounds."""
    values = wholes(option, given, low, high)
    if len(values) != 1:
        raise UsageError(f"{option} takes one whole number, not {text(given)!r}")
    return values[0]


def wholes(option: str, given: Any, low: int, high: int) -> tuple[int, ...]:
    """Whole numbers, lists and spans."""

    def token(token: str) -> list[int]:
        if span := _SPAN.fullmatch(token):
            first, last = int(span[1]), int(span[2])
            if first > last:
                raise UsageError(f"{option}: {token!r} runs backwards; write {last}..{first}")
            _short(option, token, last - first + 1)
            return [_bounded(option, token, v, low, high) for v in range(first, last + 1)]
        if re.fullmatch(r"-[0-9]+", token, re.ASCII):
            raise UsageError(f"{option}: {token!r} is below {low}, the lowest value allowed")
        return one(token, int(token) if _WHOLE.fullmatch(token) else None)

    def value(value: Any) -> list[int]:
        return one(text(value), value if _is_whole(value) else None)

    def one(token: str, number: int | None) -> list[int]:
        if number is None:
            raise UsageError(f"{option}: {token!r} is not a whole number, a list like 6,18 or a span like 0..4")
        return [_bounded(option, token, number, low, high)]

    return _items(option, given, token, value)


Arch = Literal["encoder-decoder", "encoder-only", "decoder-only"]
ARCHITECTURES: dict[str, tuple[int, int]] = {"encoder-decoder": (1, 1), "encoder-only": (1, 0), "decoder-only": (0, 1)}
"""Which stacks there are."""


def stacks(option: str, given: Any) -> tuple[int, int]:
    """Which stacks an architecture has; raises UsageError naming the nearest."""
    return ARCHITECTURES[choice(option, given, tuple(ARCHITECTURES))]


def depths(option: str, given: Any, stacks: tuple[int, int] = (1, 1)) -> tuple[tuple[int, int], ...]:
    """(N, M) pairs: `6` is 6L-6L, `60x12` or (60, 12) in a list is 60L-12L; of one stack `6` is (6, 0) or (0, 6)."""

    def pair(token: str, n: int, m: int) -> list[tuple[int, int]]:
        if stacks != (1, 1):
            raise UsageError(f"{option}: {token!r} means an encoder and a decoder; one stack has one depth, like 18")
        return [(_bounded(option, token, n, 1, MAX_DEPTH), _bounded(option, token, m, 1, MAX_DEPTH))]

    def alone(given: Any) -> list[tuple[int, int]]:
        return [(n * stacks[0], n * stacks[1]) for n in wholes(option, given, 1, MAX_DEPTH)]

    def token(token: str) -> list[tuple[int, int]]:
        if both := _DEPTH.fullmatch(token):
            return pair(token, int(both[1]), int(both[2]))
        return alone(token) if _WHOLE.fullmatch(token) or _SPAN.fullmatch(token) else refused(token)

    def value(value: Any) -> list[tuple[int, int]]:
        match value:
            case (int(n), int(m)):
                return pair(text((tuple(value),)), n, m)
        return alone(value) if _is_whole(value) else refused(text(value))

    def refused(token: str) -> NoReturn:
        raise UsageError(
            f"{option}: {token!r} is not a depth; write 18 (18L-18L), 60x12 (60L-12L) or a list like 6,18,50"
        )

    return _items(option, given, token, value)


def real(option: str, given: Any, low: float, high: float, *, above: bool = False) -> float:
    """One number in [low, high], or in (low, high] with `above`."""
    values = reals(option, given, low, high, above=above)
    if len(values) != 1:
        raise UsageError(f"{option} takes one number, not {text(given)!r}")
    return values[0]


def reals(
    option: str,
    given: Any,
    low: float,
    high: float,
    *,
    above: bool = False,
    like: str = "5e-4 or a list like 5e-4,1e-3",
) -> tuple[float, ...]:
    """A list of numbers within bounds; `like`: how it is written."""

    def bounded(token: str, value: float) -> list[float]:
        if math.isnan(value):
            raise UsageError(f"{option}: {token!r} is not a number; write {like}")
        if value < low or (above and value == low):
            raise UsageError(f"{option}: {token!r} is not {'above' if above else 'at least'} {low:g}")
        if value > high:
            raise UsageError(f"{option}: {token!r} is above {high:g}")
        return [value]

    def token(token: str) -> list[float]:
        size = token.removeprefix("-")
        known = _REAL.fullmatch(size) and any(map(str.isdigit, size))
        return bounded(token, float(token) if known else math.nan)

    def value(value: Any) -> list[float]:
        known = isinstance(value, int | float) and not isinstance(value, bool)
        return bounded(text(value), float(value) if known else math.nan)

    return _items(option, given, token, value)


def scales(option: str, given: Any) -> tuple[float, ...]:
    """Positive factors: a list, doublings between ends a power of two apart, or n values evenly in log.

    The ends of a span are as written; what lies between is rounded to six digits, so that 2 is 2 and a run has one id.
    """

    def number(token: str) -> float:
        if token[:1] == "-":
            raise UsageError(f"{option}: {token!r} is not above 0; give factors above 0, like 0.25..4")
        (value,) = reals(option, token, 0.0, 1e6, above=True, like="2, a list like 0.5,1,2 or a span like 0.25..4")
        return value

    def value(value: Any) -> list[float]:
        return list(reals(option, value, 0.0, 1e6, above=True))

    def token(token: str) -> list[float]:
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
                    f"{option}: {token!r} means doublings, but {ends[1]} is not {ends[0]} times a power of two; "
                    f"use {span}:5 or a list"
                )
        if steps == 1:
            return [low]
        between = [float(f"{low * (high / low) ** (i / (steps - 1)):.6g}") for i in range(1, steps - 1)]
        return [low, *between, high]

    return _items(option, given, token, value)


def duration(option: str, given: str) -> float | None:
    """`45m`, `2h`, `90s` as seconds; None of nothing, which is no limit."""
    if not given:
        return None
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)(s|m|min|h)", given.strip(), re.ASCII)
    if not match or float(match[1]) <= 0:
        raise UsageError(f"{option} takes a time such as 90s, 45m or 2h; got {given!r}")
    return float(match[1]) * {"s": 1, "m": 60, "min": 60, "h": 3600}[match[2]]


def flag(name: str) -> str:
    """How an option is typed: `--max-tokens` of `max_tokens`."""
    return f"--{name.replace('_', '-')}"


def names(option: str, given: str | Sequence[str]) -> list[str]:
    """Names as they are written: one, several with commas between, or a list."""
    if isinstance(given, str):
        parts = [part.strip() for part in given.split(",")]
        return [name for part in parts for name in ([part] if "/" in part or not part else part.split())]
    names = list(given) if isinstance(given, Iterable) else [given]
    if not all(isinstance(name, str) for name in names):
        raise UsageError(f"{option} takes a name or a list of names, not {given!r}")
    return names


def name(option: str, given: Any) -> str:
    """One name."""
    if not isinstance(given, str):
        raise UsageError(f"{option} takes one name, not {given!r}")
    return given


def folder(option: str, given: Any) -> str:
    """A directory or file as a text; "" of None."""
    if given is not None and not isinstance(given, str | PathLike):
        raise UsageError(f"{option} takes a string or a path, not {given!r}")
    return os.fspath(given or "")


def choice(option: str, given: Any, valid: Sequence[Any]) -> Any:
    """One of a few words."""
    if not isinstance(given, str) or given not in valid:
        close = nearest(given, valid) if isinstance(given, str) else ""
        raise UsageError(f"{option}: {given!r} is not one of {', '.join(valid)}{close}")
    return given


def text(value: Any) -> str:
    """A value as people type it: "" of None, `6,18` of (6, 18), `60x12` of [(60, 12)], `0..2` of range(3), `5e-4`."""
    match value:
        case None:
            return ""
        case range() if value.step == 1 and len(value) > 1:
            return f"{value.start}..{value.stop - 1}"
        case float() if 0 < abs(value) < 0.01:
            digits, _, power = f"{value:e}".partition("e")
            short = digits.rstrip("0").rstrip(".")
            return f"{short}e{int(power)}" if float(f"{short}e{power}") == value else repr(value)
        case float():
            return repr(value).removesuffix(".0")
        case str() | bytes():
            return str(value)
        case Iterable():
            return ",".join("x".join(map(str, item)) if isinstance(item, tuple) else text(item) for item in value)
    return str(value)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def plain(value: Any) -> Any:
    """Python's own number or list of numpy's and torch's; anything else as it is."""
    return value.tolist() if hasattr(value, "tolist") else value


def _items(option: str, given: Any, token: Callable[[str], list[T]], value: Callable[[Any], list[T]]) -> tuple[T, ...]:
    """What the tokens of a text, or the values given, come to: each once, in their order."""
    given = plain(given)
    if isinstance(given, bytes | bool):
        raise UsageError(f"{option} takes a string or numbers, not {given!r}")
    if isinstance(given, str):
        items: list[Any] = [item.strip() for item in given.split(",")]
    else:
        items = [plain(item) for item in given] if isinstance(given, Iterable) else [given]
    _short(option, given, len(items))
    if not items:
        raise UsageError(f"{option} is empty; give at least one value")
    if "" in items:
        raise UsageError(f"{option}: {text(given)!r} has an empty item; separate values with commas, like 6,18")
    read = (token(item) if isinstance(item, str) else value(item) for item in items)
    values = dict.fromkeys(v for some in read for v in some)
    _short(option, given, len(values))
    return tuple(values)


def _short(option: str, given: Any, count: int) -> None:
    if count > MAX_LIST:
        raise UsageError(f"{option}: {text(given)[:40]!r} holds {count} values; at most {MAX_LIST} are allowed")


def _bounded(option: str, token: str, value: int, low: int, high: int) -> int:
    if not low <= value <= high:
        raise UsageError(f"{option}: {token!r} is outside {low} to {high}")
    return value
