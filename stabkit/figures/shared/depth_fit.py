"""A power of the depth through the points of each method, and what keeps points out of it."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd

from stabkit.figures.quick.points import parted
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


def fit(frame: pd.DataFrame, *, ceiling: bool = True, by: Sequence[str] = ()) -> pd.DataFrame:
    """The fitted lines: exponent, factor (‖ΔF‖ at one layer), the depths used, the least and the greatest exponent of a
    single seed, and the exponent that the theorem predicts for the same runs; of each value of the columns `by` apart.

    Seeds that every depth has are fitted alone, where there are any: with other seeds at other depths their luck would
    be taken for growth.
    """
    rows = []
    usable = frame[reached(frame) & frame["layers"].between(*FIT_RANGE)]
    names = ["method", "seed", "layers", "update", "width", "bounded", *(["predicted"] if "predicted" in frame else [])]
    for own in parted(usable, [*by, "label", "condition", "shape"], names):
        seeds_at: dict[float, set[int]] = {}
        for seed, layers in zip(own["seed"], own["layers"], strict=True):
            seeds_at.setdefault(layers, set()).add(seed)
        shared = set.intersection(*seeds_at.values())
        kept = [i for i, seed in enumerate(own["seed"]) if not shared or seed in shared]
        seeds = sorted({own["seed"][i] for i in kept})
        bent = ceiling and all(own["bounded"][i] for i in kept)
        most = SATURATED * math.sqrt(2 * int(own["width"][kept[0]])) if bent else math.inf
        points = [(own["seed"][i], own["layers"][i], own["update"][i]) for i in kept]
        line = _line([(n, value) for _, n, value in points], most) if own["shape"][0] in JOINED else None
        if line is not None:
            used = line[2]
            singles = [_line([(n, value) for own_seed, n, value in points if own_seed == seed], most) for seed in seeds]
            slopes = [single[0] for single in singles if single is not None]
            told = [(own["layers"][i], own["predicted"][i]) for i in kept] if "predicted" in own else []
            predicted = _through(_means([(n, value) for n, value in told if n in used and value > 0]))
            rows.append(
                {
                    **{name: own[name][0] for name in by},
                    "method": own["method"][kept[0]],
                    "label": own["label"][0],
                    "condition": own["condition"][0],
                    "shape": own["shape"][0],
                    "exponent": line[0],
                    "factor": line[1],
                    "shallowest": min(used),
                    "deepest": max(used),
                    "least": min(slopes, default=math.nan),
                    "greatest": max(slopes, default=math.nan),
                    "seeds": len(seeds),
                    "predicted": math.nan if predicted is None else predicted[0],
                }
            )
    return pd.DataFrame(rows, columns=[*by, *FIT_COLUMNS])


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
