"""Learning rates, without torch: the training loop and the theory's predictions share them."""

from __future__ import annotations

import math

from stabkit.spec import TrainConfig


def rate(update: int, lr: float, warmup: int, hold: int = 0) -> float:
    """The learning rate of the `update`-th update (from 1).

    Linear to `lr` over `warmup` updates, then lr·√(warmup/update) (Vaswani et al. 2017, as fairseq parametrises it;
    fairseq starts at 1e-7, we at lr/warmup, so that the first update is an update). warmup = 0 is a constant rate:
    with the decay and no warm-up nothing learns in reasonable time, and it is what "no warm-up" means in DeepNet Fig.
    3. With `hold` the decay begins after so many updates, lr·√(hold/update) (T-Fixup).
    """
    if warmup == 0:
        return lr * math.sqrt(hold / update) if hold and update > hold else lr
    return lr * min(update / warmup, math.sqrt(warmup / update))


def total(train: TrainConfig, updates: int) -> float:
    """Σ of the rates of the first updates: η of the theorems about SGD, as long as the gradient stays what it is."""
    return sum(rate(t, train.lr, train.warmup, train.hold) for t in range(1, updates + 1))
