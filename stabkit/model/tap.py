"""A tap: what passes a point of the model, for whoever watches it. It changes nothing and holds no weight.

A watcher costs a call. A torch hook would cost ten times that at each of a thousand taps, in the passes that nobody
watches too; they work here as on any module. The fused kernel (`kernels/fused.py`) gives out what passes a tap where
anyone watches it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn


class Tap(nn.Module):
    """The identity on x (T, B, D); every function in its lists is called with what passes."""

    def __init__(self) -> None:
        super().__init__()
        self.watchers: dict[bool, list[Callable[[torch.Tensor], Any]]] = {True: [], False: []}
        """With x, by the mode that the model runs in: training, or not."""
        self.lengths: dict[bool, list[Callable[[torch.Tensor], Any]]] = {True: [], False: []}
        """With ‖x‖₂ of every token (T, B), likewise: the fused kernel need not give out x for it."""
        self.shift: torch.Tensor | None = None
        """Added to x after it was watched: zeros, whose gradient is ∂L/∂x where a hook on x would be lost
        (`torch.vmap`, `training/vmapped.py`)."""
        self.gradients: list[Callable[[torch.Tensor], Any]] = []
        """With ∂L/∂x, where the pass has a gradient."""

    @property
    def watched(self) -> bool:
        """Whether anyone asks for x, or its lengths, in this mode."""
        return bool(self.watchers[self.training] or self.lengths[self.training])

    def __call__(self, x: torch.Tensor) -> Any:
        for watch in self.watchers[self.training]:
            watch(x)
        for watch in self.lengths[self.training]:
            watch(torch.linalg.vector_norm(x, dim=-1))
        if self.gradients and x.requires_grad:
            for see in self.gradients:
                x.register_hook(see)  # type: ignore[no-untyped-call]  # torch leaves it untyped
        if self.shift is not None:
            x = x + self.shift
        return super().__call__(x) if self._forward_hooks else x

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x itself."""
        return x
