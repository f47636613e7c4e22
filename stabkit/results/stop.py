"""Stop a training that is dead, with a bound: of those that train at most a share α is stopped, over all looks.

    way(t)  = 1 − loss/level, the loss a mean over the updates t − 19 to t
    rank(t) = of n trainings that train the share whose way at look t is lower, interpolated; below all of them
              e^((way − lowest)/scale)/(n + 1), scale the median's distance from the 5th percentile
    score   = the lowest rank of all looks, t = 50, 100, … 300

The limit is the k-th lowest score of these trainings, each ranked among the others, k the largest number with
P(Binomial(n, α) < k) ≤ 0.1: then the share of trainings drawn like them that lies below is at most α with a confidence
of 0.9 (conformal prediction; Vovk 2012, arXiv 1209.2673, Proposition 2b, there of a split). A training is stopped at
the first look with a lower rank: there its loss lies above the band that is drawn. Of the key `level` the level is the
loss of who knows frequencies alone, of `uniform` ln V. `stop.json` is made by `python -m studies.own log` from cases
below 420, and judged on the others by `judge` itself (docs/evidence/log.md).

The trainings counted had means of ten updates, a warm-up of at most WARMUP and weights drawn anew. Of a log that is not
like them nothing is said: `Stop.why`.

    level     neither a level nor classes       unit      steps are no updates
    losses    no look has two losses            rises     the rate rises until `about`, beyond WARMUP
    late      the first loss stands after FIRST
    low       the first losses, `about`, lie below TRAINED of a uniform guess · high: beyond HIGH of it
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Literal

import numpy as np

from stabkit.errors import UsageError
from stabkit.results.forecast.logistic import Array
from stabkit.results.own.guess import TRAINED

LOOKS = tuple(range(50, 350, 50))
SHARES = (0.02, 0.05, 0.1, 0.2)
"""The α that were judged."""
UNSURE, WARMUP, FIRST, HIGH, GONE = 0.1, 200, 10, 1.5, 3
"""One less the confidence; updates that a rate rose at most; the update by which the first loss is to be logged; times
a uniform guess that it may be; losses one after another that are no number: the training is over."""


Reason = Literal["level", "unit", "losses", "rises", "late", "low", "high"]


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
    level: float
    step: float | None = None
    """The look at which it is stopped, or where it diverged; None where it goes on."""
    looks: int = 0
    """Looks that there were losses for."""
    why: Reason | None = None
    """Why nothing is said of it; None where something is."""
    about: float = math.nan
    """The number of that reason."""
    diverged: bool = False
    """Whether it is stopped because it diverged, in the band or out of it."""
    counted: tuple[int, int] = (0, 0)
    """(held-out trainings that train and are stopped, of so many)."""
    edge: Array = field(default_factory=lambda: np.full(len(LOOKS), math.nan))
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
    """α; raises UsageError for one that was not judged."""
    if alpha not in SHARES:
        shares = ", ".join(f"{share:g}" for share in SHARES)
        raise UsageError(f"{name} is the share of good trainings that may be stopped, one of {shares}, not {alpha:g}")
    return alpha


def at_looks(steps: Array, losses: Array) -> Array:
    """(looks,): the mean loss of the twenty updates before each, ∞ of one that is none; NaN where fewer than two
    entries stand there: a mean over more updates lies higher."""
    found = np.full(len(LOOKS), math.nan)
    for i, look in enumerate(LOOKS):
        own = losses[(steps > look - 20) & (steps <= look)]
        if len(own) > 1:
            found[i] = own.mean() if np.isfinite(own).all() else math.inf
    return found


def judge(
    steps: Array,
    losses: Array,
    alpha: float,
    *,
    level: float | None = None,
    uniform: float | None = None,
    rises: float = 0.0,
    band: Band | None = None,
) -> Stop:
    """Whether a training is to be stopped, by its losses at updates from 1 on. Its `level` is known, or a `uniform`
    guess costs that; its rate rises until the update `rises`. `band`: another than the package's."""
    key, own = ("level", level) if level is not None else ("uniform", uniform)
    found = at_looks(steps, losses)
    if own is None:
        return Stop(alpha, math.nan, why="level")
    looks = int((~np.isnan(found)).sum())
    why, about = _unlike(steps, losses, uniform if level is None else None, rises)
    if why or not looks:
        return Stop(alpha, own, why=why or "losses", about=about)
    by = band or bands()[key]
    limit = by.limit(alpha)
    with np.errstate(all="ignore"):
        out = (look for i, look in enumerate(LOOKS) if found[i] == found[i] and by.rank(i, 1 - found[i] / own) < limit)
        step, edge = next(out, None), own * (1 - by.ways(alpha))
    counted = by.judged.get(f"{alpha:g}", (0, 0))
    return Stop(alpha, own, step, looks, counted=(counted[0], counted[1]), edge=edge)


def _unlike(steps: Array, losses: Array, uniform: float | None, rises: float) -> tuple[Reason | None, float]:
    """(what sets a training apart from those counted, the number of it); `uniform`: None where the level is known."""
    early = losses[(steps <= FIRST) & np.isfinite(losses)]
    begin = float(early.mean()) if len(early) else math.nan
    if rises > WARMUP:
        return "rises", rises
    if uniform is None or TRAINED * uniform <= begin <= HIGH * uniform:
        return None, math.nan
    return "late" if math.isnan(begin) else "low" if begin < uniform else "high", begin


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
        if len(self._losses) >= GONE and not np.isfinite(self._losses[-GONE:]).any():
            return Stop(self.alpha, math.nan, step, diverged=True)
        if not any(before < look <= step for look in LOOKS):
            return None
        found = judge(np.array(self._steps, float), np.array(self._losses), self.alpha, uniform=uniform)
        return found if found.step is not None else None
