"""Straight lines by least squares, mostly in logarithms: y ∝ N^p, and the depths that such a fit takes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
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


def exponent(points: Iterable[tuple[float, float]]) -> tuple[float, float, float] | None:
    """(p, 95 % interval) of (depth, y) of all runs, of those whose y is a positive number; None of too few depths."""
    held = [(depth, y) for depth, y in points if 0 < y < math.inf]
    if too_few([depth for depth, _ in held]):
        return None
    fit = line(*np.log(np.array(held)).T)
    return fit.slope, fit.slope - fit.half, fit.slope + fit.half


Points = Mapping[int, Sequence[tuple[float, float]]]
"""{seed: its (x, y)}."""


def slope(points: Points) -> Interval:
    """Of a line a seed: their mean with Student's interval, no narrower than the points scatter around one line of all,
    for where no line holds the seeds may agree and the points do not."""
    own = Interval.of([line(*zip(*some, strict=True)).slope for some in points.values()])
    return own.widened(scatter(points)[0])


def scatter(points: Points) -> tuple[float, float]:
    """(half the interval of the slope, half that of a new point) of one line through the points of all seeds."""
    every = [point for some in points.values() for point in some]
    if len(every) < 3:
        return 0.0, 0.0
    fit, degrees = line(*zip(*every, strict=True)), len(every) - 2
    return fit.half, intervals.quantile(degrees) * math.sqrt(fit.residual / degrees)
