"""Many places along a stack as few: what hundreds of sub-layers say, without the smear that drawing each makes."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd

MOST_PLACES = 50
"""That a panel draws one by one."""
WHOLE = 6
"""Sub-layers that are whole layers in an encoder (2 each) and in a decoder (3 each): kinds alternate, and a group that
holds each equally often has no beat."""


def size(places: int) -> int:
    """Neighbours that are drawn as one where a stack has so many places."""
    return 1 if places <= MOST_PLACES else WHOLE * math.ceil(places / MOST_PLACES / WHOLE)


def medians(frame: pd.DataFrame, x: str, values: Sequence[str], one: Sequence[str]) -> tuple[pd.DataFrame, str]:
    """The frame with the median of `values` over each group of neighbouring places at the middle of the group, for each
    combination of `one`, and how that is told; the first and the last place stand alone. Of few places the frame."""
    many = size(frame[x].nunique())
    if many == 1:
        return frame, ""
    first, last = frame[x].min(), frame[x].max()
    group = np.where(frame[x].isin((first, last)), frame[x] - first, (frame[x] - first) // many + 0.5)
    rest = {name: "first" for name in frame.columns if name not in (x, *values, *one)}
    how = {x: "mean", **dict.fromkeys(values, "median"), **rest}
    found = frame.assign(_group=group).groupby([*one, "_group"], sort=False, dropna=False).agg(how).reset_index()
    return found, f", medians of {many}"
