"""Lion: the sign of a moving mean (Chen et al. 2023, arXiv 2302.06675, Alg. 2)."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from stabkit.spec import TrainConfig
from stabkit.training.optimizers.base import WHOLE, Group, Row

BETA1, BETA2 = 0.9, 0.99
"""The paper's defaults (§4.1); those of Adam are not read."""


class Lion:
    """θ ← θ·(1 − lr·λ) − lr·sign(β₁·m + (1 − β₁)·g), then m ← β₂·m + (1 − β₂)·g; λ of the groups that decay.

    Every entry moves by lr at every update: the paper trains it at a third to a tenth of AdamW's rate, with a decay as
    much larger.
    """

    def __init__(
        self, theta: torch.Tensor, grad: torch.Tensor, groups: Sequence[Group] = WHOLE, decay: float = 0.0
    ) -> None:
        self.grad, self.decay = grad, decay
        self.mean, self.update = torch.zeros_like(theta), torch.empty_like(theta)
        self.groups = [(group, group.of(theta), group.of(self.update)) for group in groups]

    @torch.no_grad()
    def step(self, lr: float) -> None:
        torch.lerp(self.mean, self.grad, 1 - BETA1, out=self.update).sign_()
        self.mean.lerp_(self.grad, 1 - BETA2)
        for group, theta, update in self.groups:
            for part, direction in zip(theta, update, strict=True):
                if self.decay and group.decays:
                    part.mul_(1 - lr * group.rate * self.decay)
                part.sub_(direction, alpha=lr * group.rate)

    def state(self) -> dict[str, torch.Tensor]:
        return {"mean": self.mean}


def _lion(config: TrainConfig, theta: torch.Tensor, grad: torch.Tensor, groups: Sequence[Group]) -> Lion:
    return Lion(theta, grad, groups, config.weight_decay)


LION = Row(make=_lion, apart="what decays")
