"""Optimisers over one vector, one row each in OPTIMIZERS.

torch's own optimisers import its compiler when the first is made, a second in every worker; what they compute is a few
operations on one vector here. A group is parts of the vector that share a factor on the rate and one on ε; one group of
the whole vector, both factors 1, unless a method's own recipe says otherwise (`factors.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch

from stabkit.spec import Optimizer as Name


@dataclass(frozen=True, slots=True)
class Group:
    """Parts of θ whose rate and whose ε are multiplied alike."""

    rate: float = 1.0
    epsilon: float = 1.0
    parts: tuple[slice, ...] = (slice(None),)

    def of(self, vector: torch.Tensor) -> list[torch.Tensor]:
        """Views of these parts."""
        return [vector[part] for part in self.parts]


WHOLE = (Group(),)


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

    def __init__(
        self,
        theta: torch.Tensor,
        grad: torch.Tensor,
        beta1: float,
        beta2: float,
        eps: float,
        groups: Sequence[Group] = WHOLE,
    ) -> None:
        self.beta1, self.beta2, self.eps = beta1, beta2, eps
        self.mean, self.square = torch.zeros_like(theta), torch.zeros_like(theta)
        self.updates = torch.zeros((), dtype=torch.float32, device=theta.device)
        vectors = (theta, grad, self.mean, self.square)
        self.groups = [(group, [group.of(vector) for vector in vectors]) for group in groups]

    @torch.no_grad()
    def step(self, lr: float) -> None:
        self.updates += 1
        for group, (theta, grad, mean, square) in self.groups:
            torch._fused_adam_(
                theta,
                grad,
                mean,
                square,
                [],
                [self.updates] * len(theta),
                lr=lr * group.rate,
                beta1=self.beta1,
                beta2=self.beta2,
                weight_decay=0.0,
                eps=self.eps * group.epsilon,
                amsgrad=False,
                maximize=False,
            )

    def state(self) -> dict[str, torch.Tensor]:
        return {"mean": self.mean, "square": self.square, "updates": self.updates}


class SGD:
    """θ ← θ − lr·g, without momentum: the theory's own setting (DeepNet, Theorems 1 to 4)."""

    def __init__(self, theta: torch.Tensor, grad: torch.Tensor, groups: Sequence[Group] = WHOLE) -> None:
        self.groups = [(group, group.of(theta), group.of(grad)) for group in groups]

    @torch.no_grad()
    def step(self, lr: float) -> None:
        for group, theta, grad in self.groups:
            for part, gradient in zip(theta, grad, strict=True):
                part.sub_(gradient, alpha=lr * group.rate)

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


Make = Callable[..., Optimizer]

OPTIMIZERS: dict[Name, Make] = {
    "adam": lambda c, theta, grad, groups=WHOLE: Adam(theta, grad, c.adam_beta1, c.adam_beta2, c.adam_eps, groups),
    "sgd": lambda c, theta, grad, groups=WHOLE: SGD(theta, grad, groups),
    "radam": lambda c, theta, grad, groups=WHOLE: RAdam(
        theta, grad, c.adam_beta1, c.adam_beta2, c.adam_eps, groups, early=False
    ),
    "radam-torch": lambda c, theta, grad, groups=WHOLE: RAdam(
        theta, grad, c.adam_beta1, c.adam_beta2, c.adam_eps, groups, early=True
    ),
}
"""(configuration, θ, ∂L/∂θ, groups) → an optimiser of that vector."""
