"""How good probabilities are: AUC, Brier score and skill, reliability by bins, what is left after abstaining.

All against labels: True where the run trains.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

LIKELY, UNLIKELY = 0.9, 0.1
"""Probabilities from which on a forecast has a word; between them it is open."""
BINS = (0.0, 0.1, 0.35, 0.65, 0.9, 1.0)
"""Of the reliability table: the two words and three parts of what is open."""

Array = NDArray[np.float64]
Labels = NDArray[np.bool_]


def auc(p: Array, label: Labels) -> float:
    """The chance that a run that trains is given more than one that does not, ties counted half (Mann and Whitney);
    NaN where one class is empty."""
    good, bad = p[label], p[~label]
    if not len(good) or not len(bad):
        return math.nan
    above = (good[:, None] > bad[None, :]).sum() + 0.5 * (good[:, None] == bad[None, :]).sum()
    return float(above / (len(good) * len(bad)))


def auc_within(p: Array, label: Labels, group: Sequence[object]) -> float:
    """The AUC over pairs of one group alone: of two runs of one method, or at one rate. NaN without such pairs."""
    right = pairs = 0.0
    for one in dict.fromkeys(group):
        own = np.array([each == one for each in group], dtype=bool)
        n = float(label[own].sum() * (~label[own]).sum())
        if n:
            right, pairs = right + n * auc(p[own], label[own]), pairs + n
    return right / pairs if pairs else math.nan


def auc_interval(p: Array, label: Labels, z: float = 1.96) -> tuple[float, float]:
    """95 % of Hanley and McNeil (1982), within 0 and 1."""
    area, good, bad = auc(p, label), int(label.sum()), int((~label).sum())
    if math.isnan(area):
        return math.nan, math.nan
    one, two = area / (2 - area), 2 * area**2 / (1 + area)
    spread = area * (1 - area) + (good - 1) * (one - area**2) + (bad - 1) * (two - area**2)
    error = z * math.sqrt(max(spread, 0.0) / (good * bad))
    return max(0.0, area - error), min(1.0, area + error)


def brier(p: Array, label: Labels) -> float:
    """Mean (p − label)²."""
    return float(((p - label) ** 2).mean())


def skill(p: Array, label: Labels) -> float:
    """1 − Brier/Brier of the base rate; NaN where one class is empty."""
    share = label.mean()
    return 1 - brier(p, label) / float(share * (1 - share)) if 0 < share < 1 else math.nan


def wilson(hits: float, n: int, z: float = 1.96) -> tuple[float, float]:
    """The 95 % binomial interval of a share (Wilson 1927)."""
    if not n:
        return 0.0, 1.0
    share, more = hits / n, z * z / n
    middle = (share + more / 2) / (1 + more)
    half = z / (1 + more) * math.sqrt(share * (1 - share) / n + more / (4 * n))
    return max(0.0, middle - half), min(1.0, middle + half)


@dataclass(frozen=True, kw_only=True, slots=True)
class Bin:
    """Runs that were given nearly the same probability."""

    low: float
    high: float
    n: int
    """Forecasts."""
    runs: int
    """Runs that they are of; each counts once, its forecasts in the bin share its weight."""
    share: float
    """Of the runs that train; NaN where the bin is empty."""
    said: float
    """Mean probability; NaN likewise."""

    @property
    def interval(self) -> tuple[float, float]:
        """95 % of the true share, by how many runs there are."""
        return wilson(self.share * self.runs, self.runs) if self.n else (0.0, 1.0)

    @property
    def calibrated(self) -> bool:
        """Whether what was said lies in the interval of what was."""
        return self.n > 0 and self.interval[0] <= self.said <= self.interval[1]


def reliability(p: Array, label: Labels, run: NDArray[np.intp]) -> tuple[Bin, ...]:
    """The five bins of forecasts of runs."""
    place = np.digitize(p, BINS[1:-1]) - (p == UNLIKELY)  # at most UNLIKELY and at least LIKELY have a word
    bins = []
    for i, (low, high) in enumerate(zip(BINS[:-1], BINS[1:], strict=True)):
        own = place == i
        _, whose, count = np.unique(run[own], return_inverse=True, return_counts=True)
        weight = 1 / count[whose]
        share, said = (
            float((weight * values[own]).sum() / len(count)) if len(count) else math.nan for values in (label, p)
        )
        bins.append(Bin(low=low, high=high, n=int(own.sum()), runs=len(count), share=share, said=said))
    return tuple(bins)


@dataclass(frozen=True, kw_only=True, slots=True)
class Scores:
    """All that is reported of one set of forecasts."""

    n: int
    trained: int
    auc: float
    auc_interval: tuple[float, float]
    brier: float
    skill: float
    decided: int
    """Given a word: at least LIKELY or at most UNLIKELY."""
    right: int
    """Of these."""

    @property
    def base_rate(self) -> float:
        return self.trained / self.n if self.n else math.nan

    @property
    def coverage(self) -> float:
        return self.decided / self.n if self.n else math.nan

    @property
    def accuracy(self) -> float:
        """Share of right ones among the decided."""
        return self.right / self.decided if self.decided else math.nan


def score(p: Array, label: Labels) -> Scores:
    """Every number of forecasts p of labelled runs."""
    likely, unlikely = p >= LIKELY, p <= UNLIKELY
    return Scores(
        n=len(p),
        trained=int(label.sum()),
        auc=auc(p, label),
        auc_interval=auc_interval(p, label),
        brier=brier(p, label) if len(p) else math.nan,
        skill=skill(p, label) if len(p) else math.nan,
        decided=int((likely | unlikely).sum()),
        right=int((likely & label).sum() + (unlikely & ~label).sum()),
    )
