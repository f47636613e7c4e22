"""A layer reads a weighted sum of all before it (DLCL: Wang et al. 2019).

normed       Σ_{k≤l} W_k^{l+1}·N_k(y_k), y₀ not normed                 (pre-norm)
norm after   N_{l+1}(Σ_{k≤l} W_k^{l+1}·y_k), x₁ = W₀·y₀ not normed     (post-norm)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn
from torch.autograd import Function

from stabkit.kernels.reference import transformed
from stabkit.methods.base import Site
from stabkit.model import part
from stabkit.model.wirings.base import ChainWiring, States, layer_ends
from stabkit.spec import Norm


class History(ChainWiring):
    """(x, y₀ … y_l): combinations of a stack of `layers` layers, a packed triangle of weights, row l averaging at
    first."""

    def __init__(self, places: Sequence[Site], norm: Norm, normed: bool) -> None:
        super().__init__()
        layers, width = places[-1].layer, places[0].width
        self.starts, self.stops = layer_ends(places)
        rows = [torch.full((length,), 1.0 / length) for length in range(1, layers + 2)]
        self.weight = nn.Parameter(torch.cat(rows))
        self.norms = nn.ModuleList(part.norm(norm, width) for _ in range(layers))
        self.normed = normed

    def begin(self, x: torch.Tensor) -> States:
        return (x, x)

    def read(self, states: States, at: int) -> tuple[torch.Tensor, States]:
        return self.combined(states[1:]) if at in self.starts else states[0], states

    def join(self, states: States, y: torch.Tensor, branch: torch.Tensor | None, at: int) -> States:
        if at not in self.stops:
            return (y, *states[1:])
        return (y, *states[1:], self.norms[len(states) - 2](y) if self.normed else y)

    def end(self, states: States) -> torch.Tensor:
        return self.combined(states[1:])

    def combined(self, ys: States) -> torch.Tensor:
        """x_{l+1} from y_0 … y_l."""
        length = len(ys)
        row = self.weight[length * (length - 1) // 2 : length * (length + 1) // 2]
        x: torch.Tensor
        if torch.is_grad_enabled() and not transformed():
            x = _Combine.apply(row, *ys)  # type: ignore[no-untyped-call]
        else:
            x = _combined(row, ys)
        return x if self.normed or length == 1 else self.norms[length - 2](x)


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


def _combined(weights: torch.Tensor, ys: States) -> torch.Tensor:
    flat: torch.Tensor = weights @ torch.stack(ys).flatten(1)
    return flat.view(ys[0].shape)
