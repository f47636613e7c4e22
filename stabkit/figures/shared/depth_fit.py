"""A power of the depth through the points of each method, and what keeps points out of it."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd

from stabkit.figures.shared import style
from stabkit.figures.shared.comparison import geometric_mean
from stabkit.figures.shared.contrast import SATURATED

FIT_RANGE = (6, 50)
"""Layers: deeper, Post-LN's numbers vary several-fold with the seed."""

FIT_DEPTHS = 3
"""Points that a line needs: through two there is always one."""

FIT_COLUMNS = (
    *("method", "label", "condition", "shape", "exponent", "factor"),
    *("shallowest", "deepest", "least", "greatest", "seeds", "predicted"),
)

JOINED = ("N = M", "decoder only", "encoder only")
"""Shapes of model whose depths make one curve; unequal stacks are single points."""


def shape_of(encoder: int, decoder: int) -> tuple[str, float]:
    """(shape, layers a stack): `N = M` 18, `decoder only` 12, and the mean of both stacks where they differ."""
    if encoder and decoder:
        return ("N = M" if encoder == decoder else "N ≠ M"), (encoder + decoder) / 2
    return ("decoder only" if decoder else "encoder only"), float(encoder + decoder)


def fit(frame: pd.DataFrame, *, ceiling: bool = True) -> pd.DataFrame:
    """The fitted lines: exponent, factor (‖ΔF‖ at one layer), the depths used, the least and the greatest exponent of a
    single seed, and the exponent that the theorem predicts for the same runs.

    Seeds that every depth has are fitted alone, where there are any: with other seeds at other depths their luck would
    be taken for growth.
    """
    rows = []
    usable = frame[reached(frame) & frame["layers"].between(*FIT_RANGE)]
    for (label, condition, shape), group in usable.groupby(["label", "condition", "shape"], sort=False):
        seeds_at: dict[float, set[int]] = {}
        for seed, layers in zip(group["seed"].tolist(), group["layers"].tolist(), strict=True):
            seeds_at.setdefault(layers, set()).add(seed)
        shared = set.intersection(*seeds_at.values())
        group = group[group["seed"].isin(shared)] if shared else group
        most = (
            SATURATED * math.sqrt(2 * int(group["width"].iloc[0])) if ceiling and group["bounded"].all() else math.inf
        )
        points = list(zip(*(group[name].tolist() for name in ("seed", "layers", "update")), strict=True))
        line = _line([(n, value) for _, n, value in points], most) if shape in JOINED else None
        if line is not None:
            used = line[2]
            seeds = sorted({seed for seed, _, _ in points})
            singles = [_line([(n, value) for own, n, value in points if own == seed], most) for seed in seeds]
            slopes = [single[0] for single in singles if single is not None]
            rows.append(
                {
                    "method": group["method"].iloc[0],
                    "label": label,
                    "condition": condition,
                    "shape": shape,
                    "exponent": line[0],
                    "factor": line[1],
                    "shallowest": min(used),
                    "deepest": max(used),
                    "least": min(slopes, default=math.nan),
                    "greatest": max(slopes, default=math.nan),
                    "seeds": len(seeds),
                    "predicted": _predicted(group, used) if "predicted" in group else math.nan,
                }
            )
    return pd.DataFrame(rows, columns=list(FIT_COLUMNS))


def reached(frame: pd.DataFrame) -> pd.Series[bool]:
    """The rows that hold ‖ΔF‖ at the reference step itself: what means and fits are made of."""
    return (frame["step"] == frame["reference_step"]) & drawable(frame)


def drawable(frame: pd.DataFrame) -> pd.Series[bool]:
    return (frame["update"] >= style.LOWEST) & (frame["update"] <= style.HIGHEST)


Point = tuple[float, float]
"""Layers of a stack, and a value."""


def _means(points: Sequence[Point]) -> list[Point]:
    """The geometric mean at each depth, shallow before deep; without pandas, which takes longer than all the fits."""
    at: dict[float, list[float]] = {}
    for layers, value in points:
        at.setdefault(layers, []).append(value)
    return [(layers, geometric_mean(at[layers])) for layers in sorted(at)]


def _through(means: Sequence[Point]) -> tuple[float, float] | None:
    """(slope, level) of the least-squares line through the logarithms; None for fewer than three depths."""
    if len(means) < FIT_DEPTHS:
        return None
    x, y = np.log(np.array(means, dtype=float)).T
    slope, level = np.polyfit(x, y, 1)
    return float(slope), float(level)


def _line(points: Sequence[Point], most: float) -> tuple[float, float, list[float]] | None:
    """(exponent, factor, the depths fitted); means above `most` are left out."""
    means = [(layers, mean) for layers, mean in _means(points) if mean <= most]
    found = _through(means)
    return None if found is None else (found[0], float(np.exp(found[1])), [layers for layers, _ in means])


def _predicted(group: pd.DataFrame, used: Sequence[float]) -> float:
    """The exponent of what the theorem predicts at the depths fitted; NaN where it says too little."""
    told = zip(group["layers"].tolist(), group["predicted"].tolist(), strict=True)
    found = _through(_means([(layers, value) for layers, value in told if layers in used and value > 0]))
    return math.nan if found is None else found[0]
