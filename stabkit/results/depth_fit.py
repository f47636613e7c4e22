"""A number against depth: y ∝ N^p and y ∝ e^(rN), both by least squares of log y; the power is shown unless the
exponential fits clearly better.

The interval of p is Student's over the exponents that the seeds have each by itself (95 %); of one seed, that of its
regression.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from stabkit.results import intervals
from stabkit.results.line import line, too_few

CLEARLY = 4.0
"""Times the exponential's squared residual that the power's is before a number is said to go exponentially: what begins
level and then grows as √N bends upwards at first, too."""

WIDE = 0.5
"""Of an exponent's interval."""
LEVEL = 1.1
"""From the shallowest to the deepest, below which a number keeps its size, and by no law."""


@dataclass(frozen=True, kw_only=True, slots=True)
class DepthFit:
    """How a number goes with depth."""

    exponent: float
    """p, of the geometric means over seeds."""
    low: float
    high: float
    factor: float
    """e^r: what a layer multiplies by."""
    factor_low: float
    factor_high: float
    exponential: bool
    """Whether the exponential leaves less than a quarter of the power's squared residual, of a number that changes."""
    seeds: int

    @property
    def vague(self) -> bool:
        """Whether its interval is wider than WIDE and than the exponent itself: it says nothing."""
        return self.high - self.low > max(WIDE, abs(self.exponent))


def depth_fit(values: Mapping[int, Mapping[int, float]]) -> DepthFit | None:
    """Of {seed: {depth: y}}; seeds that lack a depth, or hold what is not positive, are left out. None without."""
    depths = sorted({depth for own in values.values() for depth in own})
    whole = [
        [own[depth] for depth in depths]
        for own in values.values()
        if set(own) == set(depths) and all(0 < y < math.inf for y in own.values())
    ]
    if not whole or too_few(depths):
        return None
    logs = np.log(np.array(whole))
    n = np.array(depths, dtype=float)
    middle = logs.mean(axis=0)
    power, exponential = line(np.log(n), middle), line(n, middle)
    half, half_rate = (
        intervals.half([line(x, of_seed).slope for of_seed in logs]) if len(logs) > 1 else fit.half
        for x, fit in ((np.log(n), power), (n, exponential))
    )
    p, rate = power.slope, exponential.slope
    return DepthFit(
        exponent=p,
        low=p - half,
        high=p + half,
        factor=math.exp(rate),
        factor_low=math.exp(rate - half_rate),
        factor_high=math.exp(rate + half_rate),
        exponential=power.residual > CLEARLY * exponential.residual
        and abs(rate) * (depths[-1] - depths[0]) > math.log(LEVEL),
        seeds=len(logs),
    )


def geometric(values: Sequence[float]) -> float:
    """The geometric mean; 0 where one is 0, NaN where one is none."""
    if any(not 0 <= value <= math.inf for value in values) or not values:
        return math.nan
    if 0 in values:
        return 0.0
    return math.inf if math.inf in values else math.exp(sum(map(math.log, values)) / len(values))
