"""The highest rate that a method tolerates: what to try next, and what the runs tried so far say. Pure.

A rate passes when the forecast of a run at it, without warm-up, is `likely trains`. First a coarse grid of half-decades
on one seed, then, seed by seed, the interval between the highest rate that passes and the lowest above it that does not
is halved (in log) until its ends are a factor FACTOR apart.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypedDict

from stabkit.results.forecast.logistic import LIKELY
from stabkit.results.line import log_slope
from stabkit.results.words import scientific

COARSE = (2e-4, 6.3e-4, 2e-3, 6.3e-3, 2e-2, 3e-2)
"""Half-decades, the last cut at what the forecast's corpus reaches."""
FACTOR = 1.25

Tried = Mapping[float, float | None]
"""{rate: the probability that it trains}, 0 where it diverged at once; None where it is out of the forecast's range."""
Axis = Literal["depth", "width"]
Limit = Literal["rate", "none", "all", "unknown"]
"""A highest rate; no rate passes; every one does; what lies above the highest that passes has no forecast."""
OUT_OF_RANGE = "out of range"
"""How an unknown limit reads."""


def passes(p: float | None) -> bool:
    """Whether a run is likely to train."""
    return p is not None and p >= LIKELY


def bracket(tried: Tried) -> tuple[float | None, float | None]:
    """(the highest rate that passes, the lowest above it that was tried); None where there is none."""
    top = max((rate for rate, p in tried.items() if passes(p)), default=None)
    return top, min((rate for rate in tried if top is None or rate > top), default=None)


def next_rates(tried: Tried, guess: float | None) -> tuple[float, ...]:
    """What to try next of one cell and seed; nothing where it is found.

    `guess`: what the first seed found; None for the first seed itself, which begins with the coarse grid.
    """
    if not tried:
        return COARSE if guess is None else (guess,)
    top, above = bracket(tried)
    if top is None:
        return tuple(rate for rate in COARSE if rate < min(tried))[-1:]
    if above is None:
        return tuple(rate for rate in COARSE if rate > top)[:1]
    return (float(f"{math.sqrt(top * above):.3g}"),) if above / top > FACTOR * 1.001 else ()


@dataclass(frozen=True, kw_only=True, slots=True)
class OfSeed:
    """What one seed says."""

    seed: int
    passes: float | None
    """None: no rate did, down to the lowest."""
    fails: float | None
    """None: every rate passed, up to the highest."""
    known: bool
    """Whether the lowest rate that did not pass has a forecast at all: if not, the limit is the forecast's range."""
    monotone: bool
    """Whether every rate below one that passes passes too."""

    @property
    def height(self) -> float:
        """The highest rate that passes, to order and to draw: 0 where none does, infinite where every one does."""
        if self.passes is None:
            return 0.0
        return math.inf if self.fails is None else self.passes


class SeedBracketJson(TypedDict):
    """What one seed says."""

    seed: int
    bracket: tuple[float | None, float | None]


class ToleranceJson(TypedDict):
    """The highest rate of a cell, over seeds."""

    model: str
    label: str
    depth: int
    encoder_layers: int
    decoder_layers: int
    hidden: int
    seeds: list[int]
    rate: float | None
    """The median over seeds; null where no or every rate passes, or what lies above has no forecast."""
    bracket: tuple[float | None, float | None]
    """The highest rate that passes and the lowest that does not, of the seed in the middle; null for none."""
    monotone: bool
    known: bool
    """Whether the lowest rate that did not pass has a forecast at all."""
    words: str
    by_seed: list[SeedBracketJson]


@dataclass(frozen=True, kw_only=True, slots=True)
class Tolerance:
    """The highest rate of a cell, over seeds."""

    method: str
    label: str
    encoder_layers: int
    decoder_layers: int
    hidden: int
    seeds: tuple[OfSeed, ...]

    @property
    def depth(self) -> int:
        return max(self.encoder_layers, self.decoder_layers)

    @property
    def middle(self) -> OfSeed:
        """The seed in the middle, the lower of two."""
        return sorted(self.seeds, key=lambda one: one.height)[(len(self.seeds) - 1) // 2]

    @property
    def rate(self) -> float | None:
        """The median over seeds of the highest rate that passes; None where no or every rate does, and where what lies
        above it has no forecast."""
        return self.middle.passes if self.middle.fails is not None and self.known else None

    @property
    def known(self) -> bool:
        return all(one.known for one in self.seeds)

    @property
    def monotone(self) -> bool:
        return all(one.monotone for one in self.seeds)

    @property
    def limit(self) -> Limit:
        """What `rate` says where it is None."""
        if not self.known:
            return "unknown"
        if self.middle.passes is None:
            return "none"
        return "all" if self.middle.fails is None else "rate"

    @property
    def text(self) -> str:
        """`4e-3`, `below 2e-4`, `above 3e-2`; `out of range` where a limit would be the forecast's own."""
        return height_text(self.middle.height) if self.known else OUT_OF_RANGE

    def to_json(self) -> ToleranceJson:
        """Plain JSON values."""
        return {
            "model": self.method,
            "label": self.label,
            "depth": self.depth,
            "encoder_layers": self.encoder_layers,
            "decoder_layers": self.decoder_layers,
            "hidden": self.hidden,
            "seeds": [one.seed for one in self.seeds],
            "rate": self.rate,
            "bracket": (self.middle.passes, self.middle.fails),
            "monotone": self.monotone,
            "known": self.known,
            "words": self.text,
            "by_seed": [{"seed": one.seed, "bracket": (one.passes, one.fails)} for one in self.seeds],
        }


def height_text(height: float) -> str:
    """OfSeed.height as it reads: `4e-3`, `below 2e-4`, `above 3e-2`."""
    if height == 0:
        return f"below {scientific(COARSE[0])}"
    return f"above {scientific(COARSE[-1])}" if math.isinf(height) else scientific(height)


def of_seed(seed: int, tried: Tried) -> OfSeed:
    """What the rates tried with one seed say."""
    top, above = bracket(tried)
    below = [p for rate, p in tried.items() if top is not None and rate < top]
    known = above is None or tried[above] is not None
    return OfSeed(seed=seed, passes=top, fails=above, known=known, monotone=all(map(passes, below)))


ExponentJson = TypedDict(
    "ExponentJson",
    {
        "model": str,
        "label": str,
        "axis": Axis,
        "p": float,
        "low": float,
        "high": float,
        "seeds": int,
        "points": int,
        "left_out": int,
        "from": float,
        "to": float,
    },
)
"""A law of the rate; `from` is no name in Python."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Exponent:
    """η* ∝ N^−p, or d^−p against the width: least squares in logarithms, a fit a seed."""

    method: str
    label: str
    axis: Axis
    p: float
    """The median over seeds."""
    low: float
    high: float
    """The least and the greatest of them."""
    seeds: int
    of: int
    """Depths or widths."""
    left_out: int
    """Those without a rate in every seed."""
    ends: tuple[float, float]
    """The least and the greatest that are fitted."""

    def to_json(self) -> ExponentJson:
        """Plain JSON values."""
        return {
            "model": self.method,
            "label": self.label,
            "axis": self.axis,
            "p": self.p,
            "low": self.low,
            "high": self.high,
            "seeds": self.seeds,
            "points": self.of,
            "left_out": self.left_out,
            "from": self.ends[0],
            "to": self.ends[1],
        }


LEAST = 3
"""Depths or widths with a rate that a fit needs."""


def exponents(found: Sequence[Tolerance], axis: Axis) -> list[Exponent]:
    """One a method, where LEAST depths (widths) or more have a rate in every seed; others are left out of the fit, and
    `left_out` counts them. Of several widths (depths) the first."""
    fits = []
    for method, label in dict.fromkeys((tolerance.method, tolerance.label) for tolerance in found):
        tolerances = [tolerance for tolerance in found if (tolerance.method, tolerance.label) == (method, label)]
        other = min(_x(tolerance, "width" if axis == "depth" else "depth") for tolerance in tolerances)
        tolerances = [
            tolerance for tolerance in tolerances if _x(tolerance, "width" if axis == "depth" else "depth") == other
        ]
        whole = [tolerance for tolerance in tolerances if all(map(_bracketed, tolerance.seeds))]
        if len({_x(tolerance, axis) for tolerance in whole}) < LEAST:
            continue
        lines: dict[int, list[tuple[float, float]]] = {}
        for tolerance in whole:
            for seed in tolerance.seeds:
                lines.setdefault(seed.seed, []).append((_x(tolerance, axis), seed.passes or math.nan))
        slopes = [log_slope(*zip(*points, strict=True)) for points in lines.values()]
        fits.append(
            Exponent(
                method=method,
                label=label,
                axis=axis,
                p=-statistics.median(slopes),
                low=-max(slopes),
                high=-min(slopes),
                seeds=len(slopes),
                of=len(whole),
                left_out=len(tolerances) - len(whole),
                ends=(min(_x(tolerance, axis) for tolerance in whole), max(_x(tolerance, axis) for tolerance in whole)),
            )
        )
    return fits


def _bracketed(seed: OfSeed) -> bool:
    """Whether a rate passes, and a higher one is known not to."""
    return seed.passes is not None and seed.fails is not None and seed.known


def _x(tolerance: Tolerance, axis: Axis) -> float:
    return float(tolerance.depth if axis == "depth" else tolerance.hidden)
