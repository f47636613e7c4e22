"""What every forecast is made of: a logistic fit, where its corpus lies, and the word for a probability.

    p = σ(bias + Σ weight_j·(x_j − mean_j)/scale_j)

A forecast of a run (`model.py`) and one of a user's model (`results/own/forecast.py`) are two fits of this form.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from stabkit.errors import StoreError
from stabkit.spec import canonical

Word = Literal["likely trains", "likely stuck", "open", "out of range"]
"""`likely stuck` stands for stuck and diverged together."""
LIKELY, UNLIKELY = 0.9, 0.1
"""Probabilities from which on a forecast is firm; between them it is open."""
DIGITS = 3
ROUNDED = 10.0**-DIGITS
"""A setting of the corpus itself lies beyond its own rounded place by no more."""

Array = NDArray[np.float64]


class ForeignCoefficients(StoreError):
    """A file of coefficients that is damaged, or was fitted for other links."""


def word(p: float | None) -> Word:
    """What is said of a probability that it trains; None: no number can be given."""
    if p is None:
        return "out of range"
    return "likely trains" if p >= LIKELY else "likely stuck" if p <= UNLIKELY else "open"


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


def sealed(body: Mapping[str, Any]) -> dict[str, Any]:
    """A document with its own sha256."""
    return {**body, "sha256": hashlib.sha256(canonical(body).encode()).hexdigest()}


def unsealed(data: bytes) -> dict[str, Any]:
    """The document of these bytes; raises ValueError or KeyError where its sha256 is not its content's."""
    body: dict[str, Any] = json.loads(data)
    recorded = body.pop("sha256")
    computed = hashlib.sha256(canonical(body).encode()).hexdigest()
    if recorded != computed:
        raise ValueError(f"its content has sha256 {computed[:12]}…, and it says {str(recorded)[:12]}…")
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


def reach(places: Array, share: float) -> float:
    """The distance within which this share of a corpus' own runs has its nearest neighbour."""
    apart = np.sqrt(((places[:, None] - places[None]) ** 2).sum(axis=-1))
    np.fill_diagonal(apart, np.inf)
    return float(np.quantile(apart.min(axis=1), share))


def names(links: Sequence[Any]) -> tuple[str, ...]:
    """Their keys."""
    return tuple(link.key for link in links)
