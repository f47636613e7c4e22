"""A power of the depth through the points of each method, and what keeps points out of it."""

from __future__ import annotations

import math

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
        shared = set.intersection(*(set(own) for _, own in group.groupby("layers")["seed"]))
        group = group[group["seed"].isin(shared)] if shared else group
        line = _line(group, ceiling) if shape in JOINED else None
        if line is not None:
            used = line[2]
            singles = [_line(of_seed, ceiling) for _, of_seed in group.groupby("seed")]
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
                    "seeds": group["seed"].nunique(),
                    "predicted": _slope(group[group["layers"].isin(used)], "predicted")
                    if "predicted" in group
                    else math.nan,
                }
            )
    return pd.DataFrame(rows, columns=list(FIT_COLUMNS))


def reached(frame: pd.DataFrame) -> pd.Series[bool]:
    """The rows that hold ‖ΔF‖ at the reference step itself: what means and fits are made of."""
    return (frame["step"] == frame["reference_step"]) & drawable(frame)


def drawable(frame: pd.DataFrame) -> pd.Series[bool]:
    return (frame["update"] >= style.LOWEST) & (frame["update"] <= style.HIGHEST)


def _line(group: pd.DataFrame, ceiling: bool) -> tuple[float, float, list[float]] | None:
    """(exponent, factor, the depths fitted)."""
    means = group.groupby("layers")["update"].agg(geometric_mean)
    if ceiling and group["bounded"].all():
        means = means[means <= SATURATED * math.sqrt(2 * int(group["width"].iloc[0]))]
    if len(means) < FIT_DEPTHS:
        return None
    slope, level = np.polyfit(np.log(means.index.to_numpy(dtype=float)), np.log(means.to_numpy()), 1)
    return float(slope), float(np.exp(level)), [float(layers) for layers in means.index]


def _slope(group: pd.DataFrame, column: str) -> float:
    """Least-squares slope of log `column` over log depth; NaN for fewer than three depths."""
    means = group[group[column] > 0].groupby("layers")[column].agg(geometric_mean)
    if len(means) < FIT_DEPTHS:
        return math.nan
    return float(np.polyfit(np.log(means.index.to_numpy(dtype=float)), np.log(means.to_numpy()), 1)[0])
