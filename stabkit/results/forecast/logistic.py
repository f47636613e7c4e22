"""What every forecast is made of: a logistic fit, where its corpus lies, and the word for a probability.

    p = σ(bias + Σ weight_j·(x_j − mean_j)/scale_j)

A forecast of a run (`model.py`) and one of a user's model (`results/own/forecast.py`) are two fits of this form, each
of its own links.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray

from stabkit.errors import StoreError
from stabkit.spec import canonical

Word = Literal["trains", "probably trains", "undecided", "probably fails", "fails"]
"""From the best to the worst; `fails` stands for stuck and diverged together."""
WORDS: tuple[Word, ...] = get_args(Word)
LIKELY, UNLIKELY = 0.9, 0.1
"""Probabilities from which on a word is firm."""
PROBABLY = 0.65
"""… and from which on it is probable; below and down to its complement nothing is decided."""
DIGITS = 3
ROUNDED = 10.0**-DIGITS
"""A setting of the corpus itself lies beyond its own rounded place by no more."""

TINY = 1e-12
NARROW, LEAST, SHARE = 0.05, 0.5, 0.99
"""The spread of a link that hardly varies in a corpus, at least; that of an axis, half a doubling; the share of its
runs that lie as near to their nearest neighbour as a run must to be in range."""

Array = NDArray[np.float64]
Seen = TypeVar("Seen")
"""What was measured."""
At = TypeVar("At")
"""What of a setting a link reads besides."""


class ForeignCoefficients(StoreError):
    """A file of coefficients that is damaged, or was fitted for other links."""


@dataclass(frozen=True)  # no slots: an alias of a generic class marks what it makes
class Link(Generic[Seen, At]):
    """One number of the chain."""

    key: str
    label: str
    reason: str
    of: Callable[[Seen, At], float]
    """The number, more is better."""


def log(value: float, least: float = TINY) -> float:
    """log₁₀, of at least `least`; NaN stays NaN."""
    return math.log10(max(value, least)) if not math.isnan(value) else math.nan


def numbers(seen: Sequence[tuple[Seen, At]], links: Sequence[Link[Seen, At]]) -> Array:
    """(runs × links) of what was measured of runs and their settings."""
    return np.array([[link.of(*run) for link in links] for run in seen], dtype=np.float64).reshape(-1, len(links))


def word(p: float | None) -> Word:
    """What is said of a probability that it trains; None, where no number can be given, decides nothing."""
    if p is None or 1 - PROBABLY < p < PROBABLY:
        return "undecided"
    if p > 0.5:
        return "trains" if p >= LIKELY else "probably trains"
    return "fails" if p <= UNLIKELY else "probably fails"


@dataclass(frozen=True, slots=True)
class Logistic:
    """p = σ(bias + Σ weight_j·(x_j − mean_j)/scale_j)."""

    mean: Array
    scale: Array
    weight: Array
    bias: float

    def probability(self, x: Array) -> Array:
        """(n,) of the (n × features) given; 1/(1 + e^−z) without overflow."""
        z = ((x - self.mean) / self.scale) @ self.weight + self.bias
        p: Array = 0.5 * (1 + np.tanh(0.5 * z))
        return p

    def turned(self, slope: float, shift: float) -> Logistic:
        """σ(shift + slope·z), z this one's score: a fit of the same form."""
        return Logistic(self.mean, self.scale, self.weight * slope, self.bias * slope + shift)

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Logistic:
        """A fit of a document of coefficients."""
        mean, scale, weight = (np.array(body[name], dtype=np.float64) for name in ("mean", "scale", "weight"))
        return cls(mean, scale, weight, float(body["bias"]))

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        arrays = {name: getattr(self, name).tolist() for name in ("mean", "scale", "weight")}
        return {**arrays, "bias": self.bias}


@dataclass(frozen=True, slots=True)
class Region:
    """Where a corpus lies: its runs as places, along named coordinates."""

    names: tuple[str, ...]
    places: Array
    """(runs × coordinates), in units of `spread`."""
    spread: Array
    reach: float
    """The distance to the nearest of them beyond which a run is out of range."""

    @classmethod
    def of(cls, names: Sequence[str], x: Array, axes: Array) -> Region:
        """That of a corpus, by its (runs × links) x and (runs × axes) axes."""
        least = np.r_[np.full(x.shape[1], NARROW), np.full(axes.shape[1], LEAST)]
        whole = np.column_stack([x, axes])
        spread = np.maximum(whole.std(axis=0), least)
        places = np.round(whole / spread, DIGITS)
        return cls(tuple(names), places, spread, _reach(places))

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Region:
        """That of a document of coefficients."""
        places, spread = (np.array(body[name], dtype=np.float64) for name in ("places", "spread"))
        return cls((*body["links"], *body["axes"]), places, spread, float(body["reach"]))

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values, without the names."""
        return {"spread": self.spread.tolist(), "reach": self.reach, "places": self.places.tolist()}

    def beyond(self, place: Array) -> tuple[str, ...]:
        """Along which coordinates a place lies out of the corpus' reach; none where one of its runs is near."""
        scaled = place / self.spread
        apart = self.places - scaled
        nearest = apart[np.argmin((apart**2).sum(axis=1))]
        if np.sqrt((nearest**2).sum()) <= self.reach:
            return ()
        low, high = self.places.min(axis=0) - ROUNDED, self.places.max(axis=0) + ROUNDED
        outside = [name for name, at, a, b in zip(self.names, scaled, low, high, strict=True) if not a <= at <= b]
        return tuple(outside) or (self.names[int(np.argmax(np.abs(nearest)))],)


def unsealed(data: bytes) -> dict[str, Any]:
    """The document of these bytes; raises ValueError or KeyError where its sha256 is not its content's."""
    body: dict[str, Any] = json.loads(data)
    recorded = body.pop("sha256")
    computed = hashlib.sha256(canonical(body).encode()).hexdigest()
    if recorded != computed:
        raise ValueError(f"its content has sha256 {computed[:12]}…, but it states {str(recorded)[:12]}…")
    return body


def contents(path: Path) -> bytes:
    """A file's bytes; raises ForeignCoefficients."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise ForeignCoefficients(f"the forecast's coefficients: {path}: {error.strerror or error}") from error


def foreign(path: str, data: bytes, error: Exception) -> ForeignCoefficients:
    """What is raised for a file that is damaged or of other links."""
    sha = hashlib.sha256(data).hexdigest()
    return ForeignCoefficients(
        f"the forecast's coefficients {path} (sha256 {sha}) are damaged or foreign: {error}; reinstall stabkit"
    )


def _reach(places: Array) -> float:
    """The distance within which SHARE of a corpus' own runs have their nearest neighbour."""
    apart = np.sqrt(((places[:, None] - places[None]) ** 2).sum(axis=-1))
    np.fill_diagonal(apart, np.inf)
    return float(np.quantile(apart.min(axis=1), SHARE))
