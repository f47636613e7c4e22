"""How good probabilities are: AUC, Brier score and skill, reliability by bins, what is left after abstaining.

All against labels: True where the run trains. The AUC is of SciPy's ranks. Ours stay where a library computes something
else: the reliability table weighs a run's several forecasts as one (scikit-learn's calibration_curve counts each),
resampling leaves out draws of one outcome alone (SciPy's bootstrap has no interval there), none has Hanley and McNeil's
interval; and the AUC and the Brier score (scikit-learn's checks of its input take longer than the rest of a page).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from stabkit.results.forecast.logistic import LIKELY, UNLIKELY, Array
from stabkit.results.intervals import wilson
from studies.forecast.regression import Labels

BINS = (0.0, 0.1, 0.35, 0.65, 0.9, 1.0)
"""Of the reliability table: the two firm forecasts and three parts of what is open."""


def auc(p: Array, label: Labels) -> float:
    """P(one that trains has more than one that does not), ties half (Mann, Whitney); NaN where a class is empty."""
    good, bad = int(label.sum()), int((~label).sum())
    above = float(rankdata(p)[label].sum()) - good * (good + 1) / 2
    return above / (good * bad) if good and bad else math.nan


def auc_within(p: Array, label: Labels, group: Sequence[object]) -> float:
    """The AUC over pairs of one group alone: of two runs of one method, or at one rate. NaN without such pairs."""
    right = pairs = 0.0
    for value in dict.fromkeys(group):
        inside = np.array([other == value for other in group], dtype=bool)
        n = float(label[inside].sum() * (~label[inside]).sum())
        if n:
            right, pairs = right + n * auc(p[inside], label[inside]), pairs + n
    return right / pairs if pairs else math.nan


def auc_interval(p: Array, label: Labels, z: float = 1.96) -> tuple[float, float]:
    """95 % of Hanley and McNeil (1982), within 0 and 1."""
    area, good, bad = auc(p, label), int(label.sum()), int((~label).sum())
    if math.isnan(area):
        return math.nan, math.nan
    q1, q2 = area / (2 - area), 2 * area**2 / (1 + area)
    spread = area * (1 - area) + (good - 1) * (q1 - area**2) + (bad - 1) * (q2 - area**2)
    error = z * math.sqrt(max(spread, 0.0) / (good * bad))
    return max(0.0, area - error), min(1.0, area + error)


def resampled(n: int, score: Callable[[NDArray[np.intp]], float], draws: int) -> tuple[float, float]:
    """95 % of a score over draws of n things with replacement, those left out of which it is no number; NaN where all
    are. `score` takes their numbers."""
    draw = np.random.default_rng(0)
    scores = [value for _ in range(draws) if n and not math.isnan(value := score(draw.integers(0, n, n)))]
    low, high = np.quantile(scores, [0.025, 0.975]) if scores else (math.nan, math.nan)
    return float(low), float(high)


def brier(p: Array, label: Labels) -> float:
    """Mean (p − label)²."""
    return float(((p - label) ** 2).mean())


def skill(p: Array, label: Labels) -> float:
    """1 − Brier/Brier of the base rate; NaN where one class is empty."""
    share = label.mean()
    return 1 - brier(p, label) / float(share * (1 - share)) if 0 < share < 1 else math.nan


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
    probability: float
    """Mean of the forecasts; NaN likewise."""

    @property
    def interval(self) -> tuple[float, float]:
        """95 % of the true share, by how many runs there are."""
        return wilson(self.share, self.runs) if self.n else (0.0, 1.0)

    @property
    def calibrated(self) -> bool:
        """Whether the mean probability lies in the interval of the true share."""
        return self.n > 0 and self.interval[0] <= self.probability <= self.interval[1]


def reliability(p: Array, label: Labels, run: NDArray[np.intp]) -> tuple[Bin, ...]:
    """The five bins of forecasts of runs."""
    bin_of = np.digitize(p, BINS[1:-1]) - (p == UNLIKELY)  # at most UNLIKELY and at least LIKELY are firm
    bins = []
    for i, (low, high) in enumerate(zip(BINS[:-1], BINS[1:], strict=True)):
        inside = bin_of == i
        _, which, count = np.unique(run[inside], return_inverse=True, return_counts=True)
        weight = 1 / count[which]
        share, probability = (
            float((weight * values[inside]).sum() / len(count)) if len(count) else math.nan for values in (label, p)
        )
        bins.append(Bin(low=low, high=high, n=int(inside.sum()), runs=len(count), share=share, probability=probability))
    return tuple(bins)


@dataclass(frozen=True, kw_only=True, slots=True)
class ForecastScores:
    """All that is reported of one set of forecasts."""

    n: int
    trained: int
    auc: float
    brier: float
    skill: float
    decided: int
    """Firm forecasts: at least LIKELY or at most UNLIKELY."""
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


def score(p: Array, label: Labels) -> ForecastScores:
    """Every number of forecasts p of labelled runs."""
    likely, unlikely = p >= LIKELY, p <= UNLIKELY
    return ForecastScores(
        n=len(p),
        trained=int(label.sum()),
        auc=auc(p, label),
        brier=brier(p, label) if len(p) else math.nan,
        skill=skill(p, label) if len(p) else math.nan,
        decided=int((likely | unlikely).sum()),
        right=int((likely & label).sum() + (unlikely & ~label).sum()),
    )
