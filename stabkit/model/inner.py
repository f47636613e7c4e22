"""What a method may put inside a branch or after a stack: a norm, one number added, a factor a head, s·(x + b)."""

from __future__ import annotations

import torch
from torch import nn

from stabkit.methods.base import Final, Inner


class Shift(nn.Module):
    """x + b, b one trained number, 0 at first (R-Fixup)."""

    def __init__(self) -> None:
        super().__init__()
        self.b = nn.Parameter(torch.zeros(()))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.b


class ScaleShift(nn.Module):
    """s·(x + b), s one trained number, 1 at first (R-Fixup, after the encoder)."""

    def __init__(self) -> None:
        super().__init__()
        self.b = nn.Parameter(torch.zeros(()))
        self.s = nn.Parameter(torch.ones(()))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.s * (x + self.b)


class Heads(nn.Module):
    """γ_h·x_h: a trained factor, 1 at first, for each head's D/H entries (NormFormer)."""

    def __init__(self, heads: int) -> None:
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(heads))

    def forward(self, x_TBD: torch.Tensor) -> torch.Tensor:
        t, b, d = x_TBD.shape
        return (x_TBD.view(t, b, len(self.gamma), -1) * self.gamma[:, None]).view(t, b, d)


def place(kind: Inner, width: int, heads: int) -> nn.Module | None:
    """What stands at a place of a branch whose vectors there have `width` entries; None for nothing."""
    if kind == "norm":
        return nn.LayerNorm(width)
    if kind == "shift":
        return Shift()
    return Heads(heads) if kind == "heads" else None


def final(kind: Final, width: int) -> nn.Module | None:
    """What stands after a stack; None for nothing."""
    if kind == "norm":
        return nn.LayerNorm(width)
    return {"shift": Shift, "scale shift": ScaleShift}[kind]() if kind else None
