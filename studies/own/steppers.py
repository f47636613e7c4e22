"""What steps a model of the corpus: optimisers without weight decay, a linear warm-up. PyTorch alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.optim.lr_scheduler import LambdaLR


class Lion(torch.optim.Optimizer):
    """θ ← θ − η·sign(β₁m + (1 − β₁)g), m ← β₂m + (1 − β₂)g (Chen et al. 2302.06675), β = 0.9, 0.99."""

    def __init__(self, parameters: Any, lr: float) -> None:
        super().__init__(parameters, {"lr": lr})

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    m = self.state[p].setdefault("m", torch.zeros_like(p))
                    p.add_(torch.sign(0.9 * m + 0.1 * p.grad), alpha=-group["lr"])
                    m.mul_(0.99).add_(p.grad, alpha=0.01)


def optimizers(model: Any, name: str, rate: float) -> list[torch.optim.Optimizer]:
    """What steps a model, without weight decay; Adam the blocks' matrices at `model.out` times the rate."""
    every = list(model.parameters())
    blocks: Any = model.blocks
    matrices = [p for p in blocks.parameters() if p.dim() == 2]
    rest = [p for p in every if all(p is not matrix for matrix in matrices)]
    if name == "adamw" and model.out != 1.0:
        slower = {"params": matrices, "lr": rate * float(model.out), "eps": 1e-8 * float(model.out)}
        groups: list[dict[str, Any]] = [{"params": rest}, slower]
        return [torch.optim.AdamW(groups, lr=rate, weight_decay=0.0)]
    if name == "adamw":
        return [torch.optim.AdamW(every, lr=rate, weight_decay=0.0)]
    if name == "sgd":
        return [torch.optim.SGD(every, lr=rate, momentum=0.9)]
    if name == "lion":
        return [Lion(every, lr=rate)]
    muon = torch.optim.Muon(matrices, lr=rate, weight_decay=0.0)
    return [muon, torch.optim.AdamW(rest, lr=rate / 20, weight_decay=0.0)]


def ramps(own: Sequence[torch.optim.Optimizer], warmup: int) -> list[LambdaLR]:
    """A linear warm-up each; none for 0."""
    return [LambdaLR(one, lambda t: min(1.0, (t + 1) / warmup)) for one in own] if warmup else []
