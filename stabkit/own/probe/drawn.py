"""How large a model's matrices are drawn: the median of σ·√((rows + columns)/2), 1 for Xavier's.

Kaiming's, orthogonal ones, torch's own and N(0, 0.02²) at usual widths have at most 1.5.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable

import torch


def size(weight: torch.Tensor) -> float:
    """Of one matrix; NaN of what is none."""
    if weight.dim() != 2 or weight.numel() < 2:
        return math.nan
    return float(weight.detach().float().std()) * math.sqrt(sum(weight.shape) / 2)


def usual_size(weights: Iterable[torch.Tensor]) -> float:
    """The median over those that are matrices; 0 where none is, or where it is not finite."""
    known = [one for weight in weights if not math.isnan(one := size(weight))]
    middle = statistics.median(known) if known else 0.0
    return middle if math.isfinite(middle) else 0.0
