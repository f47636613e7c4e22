"""Optimisers over one vector, and learning rates.

torch's own optimisers import its compiler when the first is made, a second in every worker; what they compute is one
call on one vector here.
"""

from __future__ import annotations

import math

import torch


class Adam:
    """θ ← θ − lr·m̂/(√v̂ + ε), m and v the running means of the gradient and its square (Kingma & Ba 2015, Alg. 1).

    Equal to `torch.optim.Adam(fused=True)` to the bit: the same kernel on the same numbers.
    """

    def __init__(self, theta: torch.Tensor, grad: torch.Tensor, beta1: float, beta2: float, eps: float) -> None:
        self.theta, self.grad, self.beta1, self.beta2, self.eps = theta, grad, beta1, beta2, eps
        self.mean, self.square = torch.zeros_like(theta), torch.zeros_like(theta)
        self.updates = torch.zeros((), dtype=torch.float32, device=theta.device)

    @torch.no_grad()
    def step(self, lr: float) -> None:
        """One update in place, with the gradient as it stands."""
        self.updates += 1
        torch._fused_adam_(
            [self.theta],
            [self.grad],
            [self.mean],
            [self.square],
            [],
            [self.updates],
            lr=lr,
            beta1=self.beta1,
            beta2=self.beta2,
            weight_decay=0.0,
            eps=self.eps,
            amsgrad=False,
            maximize=False,
        )


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
