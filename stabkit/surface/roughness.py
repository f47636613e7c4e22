"""How rough a surface is, as numbers. Never the maximum less the minimum, which says how high and not how rough.

    negative curvature  the share of the second differences that are below zero: 0 for a bowl of any number of points,
                        so this is what judges
    roughness           Σ|Δ²L|/Σ|ΔL| over all lines along each axis: how much of the slope turns from point to point.
                        Stretching the loss changes nothing, but it has a floor, which falls as points are added: a
                        parabola has 0.27 of 15 points, 0.08 of 51, and as smooth a⁴ has twice that
    curvature           mean |L(i−1) − 2·L(i) + L(i+1)|, nats: large for a steep bowl, so no roughness

All are of the points as they are, so two surfaces compare when their points are equally many and equally far apart.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray


def differences(losses: NDArray[np.float64], order: int) -> NDArray[np.float64]:
    """All first or second differences of a line (n,) or of every row and column of a surface (m, n)."""
    with np.errstate(invalid="ignore"):
        changes = [np.diff(losses, order, axis=axis).ravel() for axis in range(losses.ndim) if losses.shape[axis] > 2]
    every: NDArray[np.float64] = np.concatenate(changes) if changes else np.empty(0)
    return every


def roughness(losses: NDArray[np.float64]) -> float:
    """Σ|Δ²L|/Σ|ΔL|; 0 of a level surface; NaN for fewer than three points, and where a loss is not finite: a part of a
    surface is not comparable."""
    turns, slopes = (float(np.abs(differences(losses, order)).sum()) for order in (2, 1))
    if not len(differences(losses, 2)) or not math.isfinite(turns):
        return math.nan
    return turns / slopes if slopes > 0 else 0.0


def curvature(losses: NDArray[np.float64]) -> float:
    """Nats; NaN as above."""
    second = differences(losses, 2)
    return float(np.abs(second).mean()) if len(second) else math.nan


def negative_curvature(losses: NDArray[np.float64]) -> float:
    """Share of the second differences that are negative beyond float32's rounding (10⁻⁶ of the loss); NaN as above."""
    second = differences(losses, 2)
    if not len(second) or not np.isfinite(second).all():
        return math.nan
    level = 1e-6 * float(np.abs(losses).max())
    return float((second < -level).mean())
