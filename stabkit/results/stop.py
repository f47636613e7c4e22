"""Stop a training that is dead, with a bound: of those that train at most a share α is stopped, over all looks.

    way(t)  = 1 − loss/level, the loss a mean over the updates t − 19 to t
    rank(t) = of n trainings that train the share whose way at look t is lower, interpolated; below all of them
              e^((way − lowest)/scale)/(n + 1), scale the median's distance from the 5th percentile
    score   = the lowest rank of all looks, t = 50, 100, … 300

The limit is the k-th lowest score of these trainings, each ranked among the others, k the largest number with
P(Binomial(n, α) < k) ≤ 0.1: then the share of trainings drawn like them that lies below is at most α with a confidence
of 0.9 (conformal prediction; Vovk 2012, arXiv 1209.2673, Proposition 2b, there of a split). A training is stopped at
the first look with a lower rank: there its loss lies above the band that is drawn. `level` is the loss of who knows
frequencies alone, or, of the key `guessed`, ln V or the first loss where that is lower. `stop.json` is made by
`python -m studies.own log` from cases below 420, and judged on the others (docs/log.md).
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from stabkit.errors import UsageError
from stabkit.results.forecast.logistic import Array
from stabkit.results.own.guess import TRAINED

LOOKS = tuple(range(50, 350, 50))
KEYS = ("level", "guessed")
SMALLEST, LARGEST = 0.02, 0.2
UNSURE = 0.1
WARMUP = 50
"""Updates at most that a rate rose in the trainings counted, but for a few of 200."""


@dataclass(frozen=True, slots=True)
class Band:
    """What is counted of trainings that train."""

    lowest: Array
    """(looks, m): the m lowest ways at each look, rising."""
    scale: Array
    """(looks,)."""
    count: int
    """Trainings."""
    scores: Array
    """The lowest scores, rising."""
    judged: dict[str, tuple[int, int, int, int]]
    """{α: (stopped, of so many that train, found, of so many that fail)} on held-out cases."""

    def rank(self, look: int, way: float) -> float:
        """Of a way at the look of this place; 1 beyond what is kept."""
        ways = self.lowest[look]
        if way < ways[0]:
            return math.exp((way - ways[0]) / self.scale[look]) / (self.count + 1)
        return float(np.interp(way, ways, self._places, right=1.0))

    @property
    def _places(self) -> Array:
        return (np.arange(self.lowest.shape[1]) + 1) / (self.count + 1)

    def limit(self, alpha: float) -> float:
        """Of the score."""
        below, place = 0.0, 0
        while True:
            below += math.comb(self.count, place) * alpha**place * (1 - alpha) ** (self.count - place)
            if below > UNSURE:
                return float(self.scores[place - 1]) if place else 0.0
            place += 1

    def ways(self, alpha: float) -> Array:
        """(looks,): the way of the band's edge."""
        limit, first = self.limit(alpha), 1 / (self.count + 1)
        if 0 < limit < first:
            return self.lowest[:, 0] + self.scale * math.log(limit / first)
        return np.array([np.interp(limit, self._places, own) for own in self.lowest])


@dataclass(frozen=True, slots=True)
class Stop:
    """What the bound says of one training."""

    alpha: float
    step: int | None
    """The look at which it is stopped; None where it goes on."""
    looks: int
    """Looks that there were losses for; 0 where none is like those counted."""
    why: str
    counted: tuple[int, int]
    """(held-out trainings that train and are stopped, of so many)."""
    level: float
    edge: Array
    """(looks,): the loss above which it is stopped at each of LOOKS."""


@cache
def bands() -> dict[str, Band]:
    """{key: what was counted}."""
    body = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
    return {key: _band(own) for key, own in body.items()}


def _band(own: dict[str, object]) -> Band:
    return Band(
        np.array(own["lowest"]), np.array(own["scale"]), int(own["count"]), np.array(own["scores"]),  # type: ignore[call-overload]
        {alpha: tuple(four) for alpha, four in own["judged"].items()},  # type: ignore[attr-defined]
    )  # fmt: skip


def check(name: str, alpha: float) -> float:
    """α; raises UsageError for one that so few trainings cannot hold."""
    if not SMALLEST <= alpha <= LARGEST:
        raise UsageError(
            f"{name} is the share of good trainings that may be stopped, {SMALLEST} to {LARGEST}, not {alpha:g}"
        )
    return alpha


def at_looks(steps: Array, losses: Array) -> Array:
    """(looks,): the mean loss of the twenty updates before each; NaN where none was logged, ∞ of one that is none."""
    found = np.full(len(LOOKS), math.nan)
    for i, look in enumerate(LOOKS):
        own = losses[(steps > look - 20) & (steps <= look)]
        if len(own):
            found[i] = own.mean() if np.isfinite(own).all() else math.inf
    return found


def stopped(steps: Array, losses: Array, level: float, key: str, alpha: float) -> Stop:
    """The first look at which a training is to be stopped; its losses by update."""
    band, found = bands()[key], at_looks(steps, losses)
    limit, at = band.limit(alpha), None
    for i, loss in enumerate(found):
        if not math.isnan(loss) and band.rank(i, 1 - loss / level) < limit:
            at = LOOKS[i]
            break
    counted = band.judged.get(f"{alpha:g}", band.judged["0.05"])
    looks = int((~np.isnan(found)).sum())
    why = "" if looks else "no loss was logged between updates 1 and 300, where the bound looks"
    return Stop(alpha, at, looks, why, counted[:2], level, level * (1 - band.ways(alpha)))


def guessed(steps: Array, losses: Array, first: float, uniform: float | None, alpha: float) -> Stop:
    """The same of a training whose level is not known, by its first loss and what a uniform guess costs. Nothing is
    said without the latter, nor of weights that were trained before: no such training was counted."""
    why = "" if uniform is not None else "it needs --classes, --level or --tokens"
    if uniform is not None and first < TRAINED * uniform:
        why = f"weights that were trained before begin far below a uniform guess ({first:.3g} of {uniform:.3g})"
    if why or uniform is None:
        return Stop(alpha, None, 0, why, (0, 0), first, np.full(len(LOOKS), math.nan))
    return stopped(steps, losses, min(first, uniform), "guessed", alpha)


class StopLosses:
    """Of a training that goes on: told at each look whether it is to be stopped."""

    def __init__(self, alpha: float) -> None:
        self.alpha = alpha
        self._steps: list[float] = []
        self._losses: list[float] = []

    def stop(self, step: int, loss: float, uniform: float | None) -> Stop | None:
        """After the loss of update `step`, from 1; `uniform`: what a uniform guess costs. None where it goes on."""
        before = self._steps[-1] if self._steps else 0.0
        self._steps.append(step)
        self._losses.append(loss)
        if not any(before < look <= step for look in LOOKS):
            return None
        found = guessed(np.array(self._steps, float), np.array(self._losses), self._losses[0], uniform, self.alpha)
        return found if found.step is not None else None
