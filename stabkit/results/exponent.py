"""A number's exponent in the depth, y ∝ N^p: least squares of log y over log N, and the depths that it takes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from stabkit.results import student

FEWEST, SPAN = 3, 4.0
"""Depths, and deepest over shallowest, that a fit needs."""


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
    return student.slope([math.log(depth) for depth, _ in held], [math.log(y) for _, y in held])
