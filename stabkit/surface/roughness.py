"""How rough a surface is, as two numbers. Never the maximum less the minimum, which says how high and not how rough.

    second difference   |L(i−1) − 2·L(i) + L(i+1)| between neighbours, mean over all lines along each axis
    negative curvature  the share of these that are below zero: 0 for a bowl

Both are of the points as they are, so two surfaces compare when their points are equally many and equally far apart.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray


def second_differences(losses: NDArray[np.float64]) -> NDArray[np.float64]:
    """All second differences of a line (n,) or of every row and column of a surface (m, n)."""
    with np.errstate(invalid="ignore"):
        found = [np.diff(losses, 2, axis=axis).ravel() for axis in range(losses.ndim) if losses.shape[axis] > 2]
    every: NDArray[np.float64] = np.concatenate(found) if found else np.empty(0)
    return every


def mean_second_difference(losses: NDArray[np.float64]) -> float:
    """Nats; NaN for fewer than three points, and where a loss is not finite: a part of a surface is not comparable."""
    found = second_differences(losses)
    return float(np.abs(found).mean()) if len(found) else math.nan


def negative_curvature(losses: NDArray[np.float64]) -> float:
    """Share of the second differences that are negative beyond float32's rounding (10⁻⁶ of the loss); NaN likewise."""
    found = second_differences(losses)
    if not len(found) or not np.isfinite(found).all():
        return math.nan
    level = 1e-6 * float(np.abs(losses).max())
    return float((found < -level).mean())
