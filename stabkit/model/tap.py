"""A tap: what passes a point of the model, for whoever watches it. It changes nothing and holds no weight.

A watcher costs a call. A torch hook would cost ten times that at each of a thousand taps, in the passes that nobody
watches too; they work here as on any module.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn


class Tap(nn.Module):
    """The identity; every function in `watchers` is called with what passes."""

    def __init__(self) -> None:
        super().__init__()
        self.watchers: list[Callable[[torch.Tensor], None]] = []

    def __call__(self, x: torch.Tensor) -> Any:
        for watch in self.watchers:
            watch(x)
        return super().__call__(x) if self._forward_hooks else x

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x itself."""
        return x
