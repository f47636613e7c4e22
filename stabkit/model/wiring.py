"""Where a sub-layer reads, and what its branch is added to. A stack begins with the embedding; every sub-layer reads
the states before it and is joined to them; the stack ends:

    chain                 read: the sub-layer before
    history, normed       read, of a layer: Σ_{k≤l} W_k^{l+1}·N_k(y_k), y₀ not normed             (DLCL, pre-norm)
    history, norm after   read, of a layer: N_{l+1}(Σ_{k≤l} W_k^{l+1}·y_k), x₁ = W₀·y₀ not normed  (DLCL, post-norm)
    two streams           join: s ← s + γ·f, beside x; end: x + N(s)                              (ResiDual)

States are a value that passes through `forward`, the streams first (`methods/wirings.py`); nothing rests on the module.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import nn
from torch.autograd import Function

from stabkit.kernels.reference import transformed
from stabkit.methods.wirings import Wiring
from stabkit.model import part
from stabkit.spec import Norm

States = tuple[torch.Tensor, ...]


class ChainWiring(nn.Module):
    """Each sub-layer reads the one before it. The others say what they do otherwise."""

    whole = True
    """Whether nothing is read between sub-layers, so that all of a stack can be one call."""
    adds = False
    """Whether `join` takes what a sub-layer's branch added."""

    def begin(self, x: torch.Tensor) -> States:
        """The states before the first layer, from the embedded tokens."""
        return (x,)

    def read(self, states: States, first: bool) -> torch.Tensor:
        """What the next sub-layer reads; `first` of its layer."""
        return states[0]

    def join(self, states: States, y: torch.Tensor, branch: torch.Tensor | None, last: bool) -> States:
        """The states after a sub-layer that gave y and added `branch`, γ·f; `last` of its layer."""
        return (y,)

    def end(self, states: States) -> torch.Tensor:
        """What leaves the stack."""
        return states[0]


class TwoStreams(ChainWiring):
    """(x, s): s takes what every branch adds, and passes a norm at the end alone."""

    whole, adds = False, True

    def __init__(self, norm: Norm, width: int) -> None:
        super().__init__()
        self.norm = part.norm(norm, width)

    def begin(self, x: torch.Tensor) -> States:
        return (x, x)

    def join(self, states: States, y: torch.Tensor, branch: torch.Tensor | None, last: bool) -> States:
        assert branch is not None  # it `adds`
        return (y, states[1] + branch)

    def end(self, states: States) -> torch.Tensor:
        x, s = states
        y: torch.Tensor = x + self.norm(s)
        return y


class History(ChainWiring):
    """(x, y₀ … y_l): combinations of a stack of `layers` layers, a packed triangle of weights, row l averaging at
    first."""

    whole = False

    def __init__(self, layers: int, norm: Norm, width: int, normed: bool) -> None:
        super().__init__()
        rows = [torch.full((length,), 1.0 / length) for length in range(1, layers + 2)]
        self.weight = nn.Parameter(torch.cat(rows))
        self.norms = nn.ModuleList(part.norm(norm, width) for _ in range(layers))
        self.normed = normed

    def begin(self, x: torch.Tensor) -> States:
        return (x, x)

    def read(self, states: States, first: bool) -> torch.Tensor:
        return self.combined(states[1:]) if first else states[0]

    def join(self, states: States, y: torch.Tensor, branch: torch.Tensor | None, last: bool) -> States:
        if not last:
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


MODULES: Mapping[Wiring, Callable[[int, Norm, int], ChainWiring]] = {
    "chain": lambda layers, norm, width: ChainWiring(),
    "history, normed": lambda layers, norm, width: History(layers, norm, width, normed=True),
    "history, norm after": lambda layers, norm, width: History(layers, norm, width, normed=False),
    "two streams": lambda layers, norm, width: TwoStreams(norm, width),
}
"""(layers of the stack, the comparison's norm, width) → the wiring, of every name in `methods.wirings.WIRINGS`."""


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
