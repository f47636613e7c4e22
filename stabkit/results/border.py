"""Where training ends in the plane of factors: the level of a number that separates best the runs that fail from those
that train, for the sum of Theorems 2 and 3 (`scales.py`), for β/α alone and for the measured first update.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stabkit.results.chain import SATURATED
from stabkit.results.line import log_slope

FEWEST = 5
"""Pairs of factors, at least, before anything is said of all of them together."""


class Border(NamedTuple):
    """The level of a number that parts best the runs that fail, above it, from those that train; and how many runs are
    on the right side of the level that the runs at all other factors give, which has not seen them."""

    level: float
    failing: tuple[int, int]
    """(right, of how many)."""
    training: tuple[int, int]

    def __str__(self) -> str:
        """`9 of 12 failing and 138 of 150 training runs`."""
        counts = zip((self.failing, self.training), ("failing", "training"), strict=True)
        return " and ".join(f"{right} of {count} {word}" for (right, count), word in counts) + " runs"


def border(rows: pd.DataFrame, values: pd.Series[float] | None = None) -> Border | None:
    """Where training ends, by the relative prediction or by other `values`; None where no level tells more than half of
    the rarer kind apart."""
    number = np.asarray(rows["relative"] if values is None else values, dtype=np.float64)
    words = rows["outcome"].to_numpy()
    kept = np.isin(words, ("trains", "stuck", "diverged")) & (number > 0) & np.isfinite(number)
    number, fails = number[kept], words[kept] != "trains"
    level = _level(number, fails)
    if level is None or ((number > level) != fails).sum() > min(fails.sum(), (~fails).sum()) / 2:
        return None
    pairs = rows.loc[kept, ["alpha_scale", "beta_scale"]].to_numpy(dtype=float)
    right = np.zeros(len(number), dtype=bool)
    for pair in np.unique(pairs, axis=0):
        here = (pairs == pair).all(axis=1)
        unseen = _level(number[~here], fails[~here])
        right[here] = (number[here] > (math.inf if unseen is None else unseen)) == fails[here]
    sides = [(int(right[kind].sum()), int(kind.sum())) for kind in (fails, ~fails)]
    return Border(level, *sides)


def _level(number: NDArray[np.float64], fails: NDArray[np.bool_]) -> float | None:
    """The level between two values that puts most runs on the right side; None without runs of both kinds."""
    levels = np.unique(number)
    if len(levels) < 2 or fails.all() or not fails.any():
        return None
    between = np.sqrt(levels[:-1] * levels[1:])
    right = [((number > level) == fails).sum() for level in between]
    return float(between[int(np.argmax(right))])


def controls(rows: pd.DataFrame) -> dict[str, Border | None]:
    """What else parts the runs: β/α alone, without any theorem, and the measured first update."""
    return {
        "β/α": border(rows, rows["beta_scale"] / rows["alpha_scale"]),
        "‖ΔF‖": border(rows, rows["update_first"]),
    }


def slope(rows: pd.DataFrame) -> float:
    """Least-squares slope of log ‖ΔF‖ after update 1 over log of the sum; NaN for fewer than three runs."""
    kept = rows[(rows["relative"] > 0) & (rows["update_first"] > 0)]
    kept = kept[np.isfinite(kept["relative"]) & np.isfinite(kept["update_first"])]
    if kept["relative"].nunique() < 3:
        return math.nan
    return log_slope(kept["relative"], kept["update_first"])


def follows(group: pd.DataFrame) -> dict[int, float]:
    """By seed: Spearman's ρ of ‖ΔF‖ after update 1 with the sum, over the runs short of half of √(2d), where ‖ΔF‖ does
    not bend."""
    straight = group[group["update_first"] <= SATURATED * np.sqrt(2 * group["width"].astype(float))]
    borders = {
        int(str(seed)): rank_correlation(rows["relative"], rows["update_first"])
        for seed, rows in straight.groupby("seed")
        if rows["relative"].nunique() >= FEWEST
    }
    return {seed: rho for seed, rho in borders.items() if math.isfinite(rho)}


def rank_correlation(one: pd.Series[float], other: pd.Series[float]) -> float:
    """Spearman's ρ over the rows where both are finite; NaN for fewer than three."""
    kept = np.isfinite(one) & np.isfinite(other)
    if kept.sum() < 3:
        return math.nan
    return float(one[kept].rank().corr(other[kept].rank()))


def beside(rows: pd.DataFrame) -> str:
    """`, 9 of 12 failing and 148 of 150 training runs by β/α alone`."""
    return "".join(f", {found} by {name} alone" for name, found in controls(rows).items() if found)
