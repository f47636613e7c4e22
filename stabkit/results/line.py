"""Straight lines by least squares, mostly in logarithms: y ∝ N^p, and the depths that such a fit takes."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from stabkit.results import intervals
from stabkit.results.intervals import Interval

FEWEST, SPAN = 3, 4.0
"""Depths, and deepest over shallowest, that a fit over depth needs."""


class Line(NamedTuple):
    """y = slope·x + level."""

    slope: float
    level: float
    residual: float
    """Sum of the squared residuals."""
    half: float
    """Half the 95 % interval of the slope; NaN of two points."""


def line(x: ArrayLike, y: ArrayLike) -> Line:
    """Through two points or more, of which two x differ."""
    across, up = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    slope, level = map(float, np.polyfit(across, up, 1))
    residual = float(((up - slope * across - level) ** 2).sum())
    degrees, square = len(across) - 2, float(((across - across.mean()) ** 2).sum())
    half = intervals.quantile(degrees) * math.sqrt(residual / degrees / square) if degrees else math.nan
    return Line(slope, level, residual, half)


def log_slope(x: ArrayLike, y: ArrayLike) -> float:
    """The exponent p of y ∝ x^p, both positive."""
    return line(np.log(np.asarray(x, dtype=float)), np.log(np.asarray(y, dtype=float))).slope


def too_few(depths: Sequence[float]) -> str:
    """Why no fit is made of these depths; "" where one is."""
    different = sorted(set(depths))
    if len(different) < FEWEST:
        return f"{len(different)} depth{'s' * (len(different) != 1)}, a fit needs {FEWEST}"
    if different[-1] < SPAN * different[0]:
        return f"depths from {different[0]:g} to {different[-1]:g}, a fit needs a factor of {SPAN:g} between them"
    return ""


Points = Mapping[int, Sequence[tuple[float, float]]]
"""{seed: its (x, y)}."""


def boxed(x: Sequence[float], low: Sequence[float], high: Sequence[float], at: float | None = None) -> Interval:
    """The slope of the line through points of which each y is known to lie from `low` to `high`, or that line's y `at`
    an x: in the middle of all, and the least and the most that it may be."""
    across = np.asarray(x, dtype=float) - float(np.mean(x))
    weights = across / float((across**2).sum())
    if at is not None:
        weights = 1 / len(across) + weights * (at - float(np.mean(x)))
    ends = np.asarray(low, dtype=float), np.asarray(high, dtype=float)
    middle, half = float(weights @ (ends[0] + ends[1]) / 2), float(abs(weights) @ (ends[1] - ends[0]) / 2)
    return Interval(middle, middle - half, middle + half)


LACK = 5.0
"""Of the mean square around the line over what seeds explain: beyond it no line holds (F of 1 and 6 degrees: 6.0)."""


def slope(points: Points) -> Interval:
    """Of a line a seed, over the same x: their mean with Student's interval over seeds; where no line holds, which
    seeds that agree do not show, no narrower than the interval of the line through the means."""
    own = Interval.of([line(*zip(*some, strict=True)).slope for some in points.values()])
    means, apart = _means(points)
    return own.widened(line(*zip(*means, strict=True)).half) if apart else own


def beyond(points: Points, x: float) -> float:
    """Half the interval of a new point around the line at x, beside what seeds say of the line: where no line holds,
    by how far the means lie off it; 0 elsewhere."""
    means, apart = _means(points)
    if not apart:
        return 0.0
    across, degrees = np.array([at for at, _ in means]), len(means) - 2
    square = float(((across - across.mean()) ** 2).sum())
    leverage = 1 + 1 / len(means) + (x - float(across.mean())) ** 2 / square
    return intervals.quantile(degrees) * math.sqrt(line(*zip(*means, strict=True)).residual / degrees * leverage)


def _means(points: Points) -> tuple[list[tuple[float, float]], bool]:
    """((x, mean over seeds) of every x, whether they lie farther off a line than seeds explain)."""
    by: dict[float, list[float]] = {}
    for x, y in (point for some in points.values() for point in some):
        by.setdefault(x, []).append(y)
    means = [(x, statistics.fmean(some)) for x, some in sorted(by.items())]
    if len(means) < 3:
        return means, False
    seeds = [statistics.variance(some) / len(some) for some in by.values() if len(some) > 1]
    square = line(*zip(*means, strict=True)).residual / (len(means) - 2)
    return means, square > LACK * (statistics.fmean(seeds) if seeds else 0.0)
