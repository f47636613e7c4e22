"""Optimisers over one vector, one row each in OPTIMIZERS.

torch's own optimisers import its compiler when the first is made, a second in every worker; what they compute is a few
operations on one vector here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Protocol

import torch

from stabkit.spec import Optimizer as Name
from stabkit.spec import TrainConfig


class Optimizer(Protocol):
    """θ and what is remembered from one update to the next."""

    def step(self, lr: float) -> None:
        """One update in place, with the gradient as it stands."""

    def state(self) -> dict[str, torch.Tensor]:
        """What it remembers, by name; writing into these tensors restores it."""


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

    def state(self) -> dict[str, torch.Tensor]:
        return {"mean": self.mean, "square": self.square, "updates": self.updates}


class SGD:
    """θ ← θ − lr·g, without momentum: the theory's own setting (DeepNet, Theorems 1 to 4)."""

    def __init__(self, theta: torch.Tensor, grad: torch.Tensor) -> None:
        self.theta, self.grad = theta, grad

    @torch.no_grad()
    def step(self, lr: float) -> None:
        self.theta.sub_(self.grad, alpha=lr)

    def state(self) -> dict[str, torch.Tensor]:
        return {}


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
        self, theta: torch.Tensor, grad: torch.Tensor, beta1: float, beta2: float, eps: float, *, early: bool
    ) -> None:
        self.theta, self.grad, self.beta1, self.beta2, self.eps, self.early = theta, grad, beta1, beta2, eps, early
        self.mean, self.square = torch.zeros_like(theta), torch.zeros_like(theta)
        self.updates = torch.zeros((), dtype=torch.int64)

    @torch.no_grad()
    def step(self, lr: float) -> None:
        self.updates += 1
        t = int(self.updates)
        self.mean.lerp_(self.grad, 1 - self.beta1)
        self.square.mul_(self.beta2).addcmul_(self.grad, self.grad, value=1 - self.beta2)
        scale = lr / (1 - self.beta1**t)
        r = rectification(t, self.beta2)
        if r:
            root = self.square.sqrt().add_(self.eps)
            self.theta.addcdiv_(self.mean, root, value=-scale * r * math.sqrt(1 - self.beta2**t))
        elif self.early:
            self.theta.sub_(self.mean, alpha=scale)

    def state(self) -> dict[str, torch.Tensor]:
        return {"mean": self.mean, "square": self.square, "updates": self.updates}


def rectification(update: int, beta2: float) -> float:
    """r_t, or 0 while the variance is intractable. β₂ = 0.98: r_5 = 0, r_6 = 0.1155, r_7 = 0.147."""
    limit = 2 / (1 - beta2) - 1
    rho = limit - 2 * update * beta2**update / (1 - beta2**update)
    if rho < RECTIFIED:
        return 0.0
    return math.sqrt((rho - 4) * (rho - 2) * limit / ((limit - 4) * (limit - 2) * rho))


Make = Callable[[TrainConfig, torch.Tensor, torch.Tensor], Optimizer]

OPTIMIZERS: dict[Name, Make] = {
    "adam": lambda c, theta, grad: Adam(theta, grad, c.adam_beta1, c.adam_beta2, c.adam_eps),
    "sgd": lambda c, theta, grad: SGD(theta, grad),
    "radam": lambda c, theta, grad: RAdam(theta, grad, c.adam_beta1, c.adam_beta2, c.adam_eps, early=False),
    "radam-torch": lambda c, theta, grad: RAdam(theta, grad, c.adam_beta1, c.adam_beta2, c.adam_eps, early=True),
}
"""(configuration, θ, ∂L/∂θ) → an optimiser of that vector."""
