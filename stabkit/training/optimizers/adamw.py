"""AdamW: Adam with decoupled decay (Loshchilov & Hutter 2019, Alg. 2), of linear maps inside sub-layers alone."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from stabkit.spec import TrainConfig
from stabkit.training.optimizers.adam import Adam
from stabkit.training.optimizers.base import Group, Row


def _adamw(config: TrainConfig, theta: torch.Tensor, grad: torch.Tensor, groups: Sequence[Group]) -> Adam:
    betas = config.adam_beta1, config.adam_beta2
    return Adam(theta, grad, *betas, config.adam_eps, groups, config.weight_decay)


ADAMW = Row(make=_adamw, apart="what decays")
