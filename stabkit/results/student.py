"""Student's t: what a few values leave open about their mean."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

T_975 = {1: 12.71, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306, 9: 2.262}
T_975 |= {14: 2.145, 19: 2.093, 29: 2.045}
"""97.5 % quantiles by degrees of freedom."""


def quantile(degrees: int) -> float:
    """Of so many degrees of freedom; between two of the table that of the fewer."""
    return T_975[max(key for key in T_975 if key <= degrees)]


def half(values: Sequence[float]) -> float:
    """Half the 95 % interval of the mean of two values or more."""
    return quantile(len(values) - 1) * statistics.stdev(values) / math.sqrt(len(values))
