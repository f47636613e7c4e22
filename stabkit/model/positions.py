"""How a model knows where a token stands: one object for all its sub-layers.

    sinusoidal   sin and cos added to the embedding                                          (Vaswani et al. 2017, §3.5)
    rotary       queries and keys of self-attention turned by angles m·θ_i, θ_i = 10000^(−2i/E), position m, entries i
                 and i + E/2 of a head as a pair; nothing is added to the embedding          (Su et al. 2021, §3.2)

Rotary pairs are laid out as in Llama's released code, halves and not neighbours.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np
import torch
from torch import nn

from stabkit.model import draw
from stabkit.spec import ModelConfig
from stabkit.spec import Positions as Name

MAX_POSITIONS = 1024


class Positions(nn.Module):
    """A table by position. `turning`: whether queries and keys are turned."""

    turning = False

    def __init__(self, table: torch.Tensor, device: torch.device) -> None:
        super().__init__()
        self.register_buffer("table", table.to(device, torch.float32), persistent=False)

    def added(self, x_TBD: torch.Tensor) -> torch.Tensor:
        """Embedded tokens with what says where they stand."""
        return x_TBD

    def turned(self, x_TBHE: torch.Tensor) -> torch.Tensor:
        """Queries or keys of every head, likewise."""
        return x_TBHE


class Sinusoidal(Positions):
    def added(self, x_TBD: torch.Tensor) -> torch.Tensor:
        return x_TBD + self.table[: len(x_TBD), None]  # type: ignore[index]  # a buffer: Tensor | Module


class Rotary(Positions):
    turning = True

    def turned(self, x_TBHE: torch.Tensor) -> torch.Tensor:
        cos, sin = self.table[:, : len(x_TBHE), None, None]  # type: ignore[index]
        first, second = x_TBHE.chunk(2, dim=-1)
        return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)


def angles(length: int, size: int) -> torch.Tensor:
    """(2, length, size/2): cos and sin of m·10000^(−2i/size)."""
    angle = np.arange(length)[:, None] * np.exp(np.arange(0, size, 2) * (-math.log(10_000.0) / size))
    return torch.from_numpy(np.stack([np.cos(angle), np.sin(angle)]))


POSITIONS: Mapping[Name, Callable[[ModelConfig, torch.device], Positions]] = {
    "sinusoidal": lambda c, device: Sinusoidal(draw.positions(MAX_POSITIONS, c.hidden), device),
    "rotary": lambda c, device: Rotary(angles(MAX_POSITIONS, c.hidden // c.heads), device),
}
