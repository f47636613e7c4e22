"""(x, s): s takes what every branch adds, and passes a norm at the end alone (ResiDual: Xie et al. 2023)."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from stabkit.methods.base import Site
from stabkit.model import part
from stabkit.model.wirings.base import ChainWiring, States
from stabkit.spec import Norm


class TwoStreams(ChainWiring):
    """s ← s + γ·f beside x; at the end x + N(s)."""

    adds = True

    def __init__(self, places: Sequence[Site], norm: Norm) -> None:
        super().__init__()
        self.norm = part.norm(norm, places[0].width)

    def begin(self, x: torch.Tensor) -> States:
        return (x, x)

    def join(self, states: States, y: torch.Tensor, branch: torch.Tensor | None, at: int) -> States:
        assert branch is not None  # it `adds`
        return (y, states[1] + branch)

    def end(self, states: States) -> torch.Tensor:
        x, s = states
        y: torch.Tensor = x + self.norm(s)
        return y
