"""Adam, with decay or without: torch's own kernel over one vector.

torch's optimisers import its compiler when the first is made, a second in every worker; the kernel is a call.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from stabkit.spec import TrainConfig
from stabkit.training.optimizers.base import WHOLE, Group, Row


class Adam:
    """θ ← θ − lr·m̂/(√v̂ + ε), m and v the running means of the gradient and its square (Kingma & Ba 2015, Alg. 1).

    With `decay` λ, before it, θ ← θ·(1 − lr·λ) of the groups that decay (Loshchilov & Hutter 2019, Alg. 2, as torch has
    it: λ times the rate). Equal to `torch.optim.Adam(fused=True)` and `torch.optim.AdamW(fused=True)` to the bit: the
    same kernel on the same numbers.
    """

    def __init__(
        self,
        theta: torch.Tensor,
        grad: torch.Tensor,
        beta1: float,
        beta2: float,
        eps: float,
        groups: Sequence[Group] = WHOLE,
        decay: float = 0.0,
    ) -> None:
        self.beta1, self.beta2, self.eps, self.decay = beta1, beta2, eps, decay
        self.mean, self.square = torch.zeros_like(theta), torch.zeros_like(theta)
        self.updates = torch.zeros((), dtype=torch.float32, device=theta.device)
        vectors = (theta, grad, self.mean, self.square)
        self.groups = [(group, [group.of(vector) for vector in vectors]) for group in groups]

    @torch.no_grad()
    def step(self, lr: float) -> None:
        self.updates += 1
        for group, (theta, grad, mean, square) in self.groups:
            decays = self.decay > 0 and group.decays
            (torch._fused_adamw_ if decays else torch._fused_adam_)(
                theta,
                grad,
                mean,
                square,
                [],
                [self.updates] * len(theta),
                lr=lr * group.rate,
                beta1=self.beta1,
                beta2=self.beta2,
                weight_decay=self.decay if decays else 0.0,
                eps=self.eps * group.epsilon,
                amsgrad=False,
                maximize=False,
            )

    def state(self) -> dict[str, torch.Tensor]:
        return {"mean": self.mean, "square": self.square, "updates": self.updates}


def _adam(config: TrainConfig, theta: torch.Tensor, grad: torch.Tensor, groups: Sequence[Group]) -> Adam:
    return Adam(theta, grad, config.adam_beta1, config.adam_beta2, config.adam_eps, groups)


ADAM = Row(make=_adam)
