"""The points of a curve: of several seeds the middle, the least and the greatest, without pandas, which takes a hundred
times as long for the few that one has; of hundreds of sub-layers the medians of neighbours; and which have
a place on an axis."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pandas as pd

Item = TypeVar("Item")

LOWEST, HIGHEST = 1e-45, 1e40
"""What a logarithmic axis shows: all that float32 can hold. Beyond it a value counts as not finite."""

MOST_PLACES = 50
"""That a panel draws one by one."""
WHOLE = 6
"""Sub-layers that are whole layers in an encoder (2 each) and in a decoder (3 each): kinds alternate, and a group that
holds each equally often has no beat."""


def parted(frame: pd.DataFrame, by: Sequence[str], names: Sequence[str]) -> list[dict[str, list[Any]]]:
    """The columns `by` and `names` of each group, as lists, the groups in the order of their first rows."""
    columns = {name: frame[name].tolist() for name in (*by, *names)}
    groups: dict[tuple[Any, ...], list[int]] = {}
    for row, key in enumerate(zip(*(columns[name] for name in by), strict=True)):
        groups.setdefault(key, []).append(row)
    return [{name: [columns[name][i] for i in rows] for name in columns} for rows in groups.values()]


def drawable(value: float, log: bool) -> bool:
    """Whether a value has a place on such an axis."""
    return bool((LOWEST if log else -HIGHEST) <= value <= HIGHEST)


def drawable_rows(values: pd.Series[float], log: bool) -> pd.Series[bool]:
    """Which values of a column are `drawable`."""
    return values.between(LOWEST if log else -HIGHEST, HIGHEST)


def evenly(items: Sequence[Item], most: int) -> list[Item]:
    """At most so many of them, evenly chosen, the first and the last among them."""
    if len(items) <= most:
        return list(items)
    return [items[round(i * (len(items) - 1) / max(most - 1, 1))] for i in range(most)]


def over_seeds(
    x: Sequence[float], y: Sequence[float], middle: Callable[[Sequence[float]], float]
) -> tuple[NDArray[Any], NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Every x once, in rising order, and the middle, the least and the greatest y of all runs there; NaN where there is
    none. Of one run its own values, three times."""
    by_x: dict[float, list[float]] = {}
    for at, value in zip(x, y, strict=True):
        by_x.setdefault(at, []).append(value)
    places = sorted(by_x)
    if len(places) == len(x):
        only = np.array([by_x[at][0] for at in places], dtype=float)
        return np.array(places), only, only, only
    finite = [[value for value in by_x[at] if not math.isnan(value)] for at in places]
    low, high = (np.array([pick(values, default=math.nan) for values in finite], dtype=float) for pick in (min, max))
    return np.array(places), np.array([middle(values) for values in finite], dtype=float), low, high


def median(values: Sequence[float]) -> float:
    """What half of the seeds are below; NaN of none."""
    return statistics.median(values) if len(values) else math.nan


def size(places: int) -> int:
    """Neighbours that are drawn as one where a stack has so many places."""
    return 1 if places <= MOST_PLACES else WHOLE * math.ceil(places / MOST_PLACES / WHOLE)


def medians(frame: pd.DataFrame, x: str, values: Sequence[str], line: Sequence[str]) -> tuple[pd.DataFrame, str]:
    """The frame with the median of `values` over each group of neighbouring places at the middle of the group, for each
    combination of `line`, and the note that says so; the first and the last place stand alone. Of few places the
    frame."""
    many = size(frame[x].nunique())
    if many == 1:
        return frame, ""
    first, last = frame[x].min(), frame[x].max()
    group = np.where(frame[x].isin((first, last)), frame[x] - first, (frame[x] - first) // many + 0.5)
    rest = {name: "first" for name in frame.columns if name not in (x, *values, *line)}
    how = {x: "mean", **dict.fromkeys(values, "median"), **rest}
    grouped = frame.assign(_group=group).groupby([*line, "_group"], sort=False, dropna=False).agg(how).reset_index()
    return grouped, f", medians of {many}"
