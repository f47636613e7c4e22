"""Where a layer reads. A stack begins with the embedding, every layer reads, then joins its output, and the stack ends:

    chain                 read: the layer before
    history, normed       read: Σ_{k≤l} W_k^{l+1}·LN_k(y_k), y₀ not normed             (DLCL, pre-norm)
    history, norm after   read: LN_{l+1}(Σ_{k≤l} W_k^{l+1}·y_k), x₁ = W₀·y₀ not normed  (DLCL, post-norm)

What has been joined so far is a value that passes through `forward`; nothing of it rests on the module.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.autograd import Function

from stabkit.methods.base import Wiring

Joined = tuple[torch.Tensor, ...]


class _Combine(Function):
    """Σ_k w_k·y_k that keeps the y_k themselves, which live anyway, and not a copy of all of them for every layer."""

    @staticmethod
    def forward(ctx: Any, weights: torch.Tensor, *ys: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(weights, *ys)
        return _combined(weights, ys)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor, ...]:
        (dx,) = gradients
        weights, *ys = ctx.saved_tensors
        flat = dx.reshape(-1)
        d_weights = torch.stack([torch.dot(y.reshape(-1), flat) for y in ys])
        return d_weights, *(weights[:, None] * flat).view(len(ys), *dx.shape).unbind(0)


def _combined(weights: torch.Tensor, ys: Joined) -> torch.Tensor:
    flat: torch.Tensor = weights @ torch.stack(ys).flatten(1)
    return flat.view(ys[0].shape)


class History(nn.Module):
    """DLCL's combinations of one stack of `layers` layers: a packed triangle of weights, row l averaging at first."""

    def __init__(self, layers: int, width: int, normed: bool) -> None:
        super().__init__()
        rows = [torch.full((length,), 1.0 / length) for length in range(1, layers + 2)]
        self.weight = nn.Parameter(torch.cat(rows))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(layers))
        self.normed = normed

    def begin(self, x: torch.Tensor) -> Joined:
        return (x,)

    def join(self, joined: Joined, y: torch.Tensor) -> Joined:
        return (*joined, self.norms[len(joined) - 1](y) if self.normed else y)

    def read(self, joined: Joined) -> torch.Tensor:
        """x_{l+1} from y_0 … y_l."""
        length = len(joined)
        row = self.weight[length * (length - 1) // 2 : length * (length + 1) // 2]
        x: torch.Tensor
        if torch.is_grad_enabled():
            x = _Combine.apply(row, *joined)  # type: ignore[no-untyped-call]
        else:
            x = _combined(row, joined)
        return x if self.normed or length == 1 else self.norms[length - 2](x)


def wiring(kind: Wiring, layers: int, width: int) -> History | None:
    """The history of a stack; None for the chain, which needs none."""
    return None if kind == "chain" else History(layers, width, normed=kind == "history, normed")
