"""RAdam: Adam whose first updates wait until their variance is tractable (Liu et al. 2020)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from stabkit.spec import TrainConfig
from stabkit.training.optimizers.base import WHOLE, Group, Make, Row

RECTIFIED = 5.0
"""ρ_t from which on the variance counts as tractable, in the released code and in torch (the paper: above 4). With
β₂ = 0.98 that is the sixth update."""


class RAdam:
    """θ ← θ − lr·r_t·m̂/(√v̂ + ε) once ρ_t ≥ 5 (Liu et al. 2020, Alg. 2).

        ρ_∞ = 2/(1 − β₂) − 1,   ρ_t = ρ_∞ − 2t·β₂^t/(1 − β₂^t),
        r_t = √( (ρ_t − 4)(ρ_t − 2)ρ_∞ / ((ρ_∞ − 4)(ρ_∞ − 2)ρ_t) )

    While the variance is intractable the authors' released code makes no update at all (`early=False`); torch's makes
    one of momentum, θ ← θ − lr·m̂ (`early=True`).
    """

    def __init__(
        self,
        theta: torch.Tensor,
        grad: torch.Tensor,
        beta1: float,
        beta2: float,
        eps: float,
        groups: Sequence[Group] = WHOLE,
        *,
        early: bool,
    ) -> None:
        self.grad, self.beta1, self.beta2, self.eps, self.early = grad, beta1, beta2, eps, early
        self.mean, self.square = torch.zeros_like(theta), torch.zeros_like(theta)
        self.updates = torch.zeros((), dtype=torch.int64)
        vectors = (theta, self.mean, self.square)
        self.groups = [(group, [group.of(vector) for vector in vectors]) for group in groups]

    @torch.no_grad()
    def step(self, lr: float) -> None:
        self.updates += 1
        t = int(self.updates)
        self.mean.lerp_(self.grad, 1 - self.beta1)
        self.square.mul_(self.beta2).addcmul_(self.grad, self.grad, value=1 - self.beta2)
        scale = lr / (1 - self.beta1**t)
        r = rectification(t, self.beta2)
        for group, views in self.groups:
            for theta, mean, square in zip(*views, strict=True):
                if r:
                    root = square.sqrt().add_(self.eps * group.epsilon)
                    theta.addcdiv_(mean, root, value=-scale * group.rate * r * math.sqrt(1 - self.beta2**t))
                elif self.early:
                    theta.sub_(mean, alpha=scale * group.rate)

    def state(self) -> dict[str, torch.Tensor]:
        return {"mean": self.mean, "square": self.square, "updates": self.updates}


def rectification(update: int, beta2: float) -> float:
    """r_t, or 0 while the variance is intractable. β₂ = 0.98: r_5 = 0, r_6 = 0.1155, r_7 = 0.147."""
    limit = 2 / (1 - beta2) - 1
    rho = limit - 2 * update * beta2**update / (1 - beta2**update)
    if rho < RECTIFIED:
        return 0.0
    return math.sqrt((rho - 4) * (rho - 2) * limit / ((limit - 4) * (limit - 2) * rho))


def _maker(early: bool) -> Make:
    def make(config: TrainConfig, theta: torch.Tensor, grad: torch.Tensor, groups: Sequence[Group]) -> RAdam:
        return RAdam(theta, grad, config.adam_beta1, config.adam_beta2, config.adam_eps, groups, early=early)

    return make


RADAM = Row(make=_maker(early=False))
TORCH = Row(make=_maker(early=True))
