"""What the pictures of a watch are made of: its rows as lines against the updates."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stabkit.figures.shared.words import short

T = TypeVar("T")
COLUMNS = ("run", "panel", "x", "value")
MOST_LINES, MOST_POINTS = 6, 240

Line = tuple[str, str, NDArray[np.int64], NDArray[np.float64]]
"""(name, panel, updates, values)."""


def frame(lines: Iterable[Line]) -> pd.DataFrame:
    """One row a point; of a long line points that are a little more apart with every update."""
    rows: list[dict[str, object]] = []
    for name, panel, steps, values in lines:
        for i in thinned(steps):
            rows.append({"run": name, "panel": panel, "x": int(steps[i]), "value": float(values[i])})
    return pd.DataFrame(rows, columns=list(COLUMNS))


def thinned(steps: NDArray[np.int64]) -> list[int]:
    """Places of at most MOST_POINTS of them, evenly in the update's logarithm, the first and the last among them."""
    if len(steps) <= MOST_POINTS:
        return list(range(len(steps)))
    wanted = np.geomspace(1, steps[-1] + 1, MOST_POINTS) - 1
    return sorted({0, len(steps) - 1, *np.searchsorted(steps, wanted).clip(max=len(steps) - 1).tolist()})


def some(these: Sequence[T]) -> list[T]:
    """At most MOST_LINES of them, evenly, the first and the last among them."""
    if len(these) <= MOST_LINES:
        return list(these)
    return [these[round(i * (len(these) - 1) / (MOST_LINES - 1))] for i in range(MOST_LINES)]


def said(found: pd.DataFrame, what: str) -> str:
    """The picture in words: where each line begins and ends."""
    if found.empty:
        return "Nothing was recorded."
    parts = [
        f"{name}: {short(float(own['value'].iloc[0]))} to {short(float(own['value'].iloc[-1]))}"
        for name, own in found.groupby("run", sort=False)
    ]
    return f"{what}, from the first reading to the last: {'; '.join(parts)}."
