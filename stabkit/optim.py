"""Learning rates, and the optimisers that torch lacks."""

from __future__ import annotations

import math


def rate(update: int, lr: float, warmup: int) -> float:
    """The learning rate of the `update`-th update (from 1).

    Linear to `lr` over `warmup` updates, then lr·√(warmup/update) (Vaswani et al. 2017, as fairseq parametrises it;
    fairseq starts at 1e-7, we at lr/warmup, so that the first update is an update). warmup = 0 is a constant rate:
    with the decay and no warm-up nothing learns in reasonable time, and it is what "no warm-up" means in DeepNet Fig.
    3.
    """
    if warmup == 0:
        return lr
    return lr * min(update / warmup, math.sqrt(warmup / update))
