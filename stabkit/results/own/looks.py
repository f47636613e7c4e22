"""Does a training learn? Its loss looked at after every ten updates, beside what the probe saw of the first sixteen.

    way = (level − loss)/(level − reference)
    p   = σ( Σ_d u^d · (w_d · x) ),   u = ln(t/80),  d = 0, 1, 2,   x = (1, forecast, now, rise, best)

`level` is the loss of who knows frequencies alone (of a regression: of the best constant), `reference` that of who
knows all that can be learnt, 0 where that is not known; `loss` a mean of ten updates. `now` is the mean of the last two
ways, `rise` by how much that lies above 0 more than the mean of the two that end thirty updates before, `best` the
highest so far; `forecast` the log-odds of the probe. One model over all looks, fitted for what is known of a training:
with a forecast or without, with a reference or without (`studies/own/looks.py`, on cases below 420).

A training is stopped at the first look that is firm, so that the errors that are stated are those of all looks
together, counted on trainings that nothing was chosen on. A training that was not stopped has the word of its last
look, at 300 updates; where the time ended it before, that is at most probable: such looks were not counted. What learns
and breaks after it was stopped is not seen: most of the wrong `trains` are of this kind.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from stabkit.results.forecast.logistic import Array, Word, word
from stabkit.results.own.measured import UPDATES

TEN = 10
"""Updates of one mean."""
FIRST, LAST = 20, 300
"""Updates at the first look and at the last: trainings of the corpus have 300, half of a warm-up more."""
BENDS = 3
"""1, u, u²."""
FIRM_AT_ONCE, FIRM = (0.08, 0.94), (0.04, 0.965)
"""Probabilities at or below and above which a training is stopped: by its probe alone, and at a look."""
PROBABLE: Mapping[Word, Word] = {"trains": "probably trains", "fails": "probably fails"}
"""Of a look before the last that stops nothing."""
ODDS, WAY, RISE = 6.0, (-1.0, 1.5), 1.0
"""What log-odds, a way and its rise are clipped to."""
LOST_ODDS = -8.0
"""The log-odds of a probe that lost a number."""
Basis = Literal["forecast", "seen"]
"""What a word rests on: the probe's sixteen updates and ramp, or a training that was looked at."""


class Known(NamedTuple):
    """What is known of a training beside its losses."""

    forecast: float | None
    """The probability that the probe gives; None where it gives none."""
    level: float
    """Nats, or whatever the loss is in."""
    reference: float | None
    guessed: bool = False
    """Whether the level is the first loss, or a uniform guess: what knows frequencies alone is some way on already."""

    @property
    def key(self) -> str:
        """Which fit is its, of KEYS."""
        has = (self.forecast is not None, self.reference is not None, self.guessed)
        return " ".join(itertools.compress(("forecast", "reference", "guessed"), has)) or "neither"

    def ways(self, tens: Sequence[float]) -> Array:
        """Of these means of ten updates; what is no number lies below all."""
        span = max(self.level - (self.reference or 0.0), 1e-9)
        ways = (self.level - np.array(tens, dtype=np.float64)) / span
        return np.where(np.isfinite(ways), ways, -np.inf)


KEYS = ("forecast reference", "forecast", "reference", "neither", "forecast guessed", "guessed")


@dataclass(frozen=True, slots=True)
class Decision:
    """What is said of one training."""

    word: Word
    basis: Basis
    probability: float | None
    """That it trains; None where nothing is known."""
    updates: int
    """That it rests on."""
    diverges: bool = False
    """Whether a number was lost."""
    key: str = ""
    """Of the fit that a training was looked at by."""

    @property
    def counted_as(self) -> str:
        """What it counts as: `trains, seen, forecast reference`."""
        return ", ".join(filter(None, (self.word, self.basis, self.key)))

    @property
    def firm(self) -> bool:
        return self.word in ("trains", "fails")


def odds(probability: float) -> float:
    """ln p/(1 − p), clipped; of 0, a probe that lost a number, LOST_ODDS."""
    if probability <= 0:
        return LOST_ODDS
    return min(max(math.log(probability / max(1 - probability, 1e-12)), -ODDS), ODDS)


def features(tens: Sequence[float], known: Known) -> Array:
    """(BENDS·n,) of the losses up to a look, for the fit of `known.key`."""
    ways = known.ways(tens)
    last = len(ways)
    now, before = ways[max(0, last - 2) :].mean(), ways[max(0, last - 5) : max(1, last - 3)].mean()
    rise = max(now, 0.0) - max(before, 0.0)
    given = [] if known.forecast is None else [odds(known.forecast)]
    x = np.array([1.0, *given, *np.clip([now, ways.max()], *WAY), min(max(rise, -RISE), RISE)])
    u = math.log(TEN * last / 80)
    return np.concatenate([u**bend * x for bend in range(BENDS)])


@dataclass(frozen=True, slots=True)
class Looks:
    """The fits, and how often the words came true."""

    weights: Mapping[str, Array]
    """{key: (BENDS·n,)}."""
    told: Mapping[str, tuple[int, int]]
    """{`trains, seen, reference`: (right, of so many of the judging part that were told it)}."""

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Looks:
        """Those of a document of coefficients; raises KeyError or ValueError."""
        weights = {key: np.array(body["weights"][key], dtype=np.float64) for key in KEYS}
        return cls(weights, {name: (int(right), int(n)) for name, (right, n) in body["told"].items()})

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {"weights": {key: own.tolist() for key, own in self.weights.items()}, "told": dict(self.told)}

    def probability(self, tens: Sequence[float], known: Known) -> float:
        """That a training trains whose losses so far are these."""
        z = float(self.weights[known.key] @ features(tens, known))
        return 0.5 * (1 + math.tanh(0.5 * z))

    def at(self, tens: Sequence[float], known: Known, length: int = LAST) -> Decision:
        """The word of one look at a training that was to have this length."""
        p, updates = self.probability(tens, known), TEN * len(tens)
        found = word(p) if updates >= length or _stops(p, FIRM) else PROBABLE.get(word(p), word(p))
        return Decision(found, "seen", p, updates, key=known.key)

    def decide(self, tens: Sequence[float], known: Known, *, lost: int | None = None) -> Decision:
        """The word of a training by its means of ten updates, the last of which may be of fewer where a number was
        `lost` in it, at that update."""
        found = at_once(known.forecast)
        if stops(found):
            return found
        for count in range(FIRST // TEN, min(len(tens), LAST // TEN) + 1):
            if lost is not None and TEN * count >= lost:
                break
            found = self.at(tens[:count], known)
            if stops(found):
                return found
        return found if lost is None else Decision("fails", "seen", 0.0, lost, diverges=True)


def at_once(forecast: float | None, updates: int = UPDATES) -> Decision:
    """The word of a probe alone."""
    return Decision(word(forecast), "forecast", forecast, updates)


def _stops(p: float | None, firm: tuple[float, float]) -> bool:
    return p is not None and not firm[0] < p < firm[1]


def stops(decision: Decision) -> bool:
    """Whether nothing more is to be looked at."""
    firm = FIRM if decision.basis == "seen" else FIRM_AT_ONCE
    return decision.diverges or _stops(decision.probability, firm) or decision.updates >= LAST


def tens(losses: Sequence[float]) -> list[float]:
    """Means of ten updates each; what is left over is not looked at yet."""
    return [float(np.mean(losses[i : i + TEN])) for i in range(0, len(losses) - TEN + 1, TEN)]
