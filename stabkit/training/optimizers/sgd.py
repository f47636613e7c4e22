"""SGD, without momentum unless it is asked for: the theory's own setting (DeepNet, Theorems 1 to 4)."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from stabkit.spec import TrainConfig
from stabkit.training.optimizers.base import WHOLE, Group, Row


class SGD:
    """θ ← θ − lr·b, b ← μ·b + g, b = g at first, as `torch.optim.SGD` has it (no dampening, no Nesterov)."""

    def __init__(
        self, theta: torch.Tensor, grad: torch.Tensor, groups: Sequence[Group] = WHOLE, momentum: float = 0.0
    ) -> None:
        self.grad, self.momentum = grad, momentum
        self.moving = torch.zeros_like(grad) if momentum else grad
        self.groups = [(group, group.of(theta), group.of(self.moving)) for group in groups]

    @torch.no_grad()
    def step(self, lr: float) -> None:
        if self.momentum:  # 0·μ + g is g
            self.moving.mul_(self.momentum).add_(self.grad)
        for group, theta, moving in self.groups:
            for part, direction in zip(theta, moving, strict=True):
                part.sub_(direction, alpha=lr * group.rate)

    def state(self) -> dict[str, torch.Tensor]:
        return {"moving": self.moving} if self.momentum else {}


def _sgd(config: TrainConfig, theta: torch.Tensor, grad: torch.Tensor, groups: Sequence[Group]) -> SGD:
    return SGD(theta, grad, groups, config.momentum)


SGD_ROW = Row(make=_sgd)
