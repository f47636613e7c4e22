"""Where sub-layers read and what their branches are added to: the protocol, and the chain.

A stack begins with the embedding; every sub-layer reads something of the states before it and is joined to them; the
stack ends. States are a value that passes through `forward`, the streams that are watched first
(`methods/wirings.py`), whatever else a wiring needs behind them; nothing rests on the module.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from stabkit.methods.base import Site

States = tuple[Any, ...]
"""Tensors (T, B, D) that are watched, and whatever else."""


class ChainWiring(nn.Module):
    """Each sub-layer reads the one before it. The others say what they do otherwise.

    `at`: the sub-layer's place in its stack, from 0.
    """

    @property
    def whole(self) -> bool:
        """Whether nothing is read or joined between sub-layers, so that all of a stack can be one call."""
        chain = (ChainWiring.read, ChainWiring.join)
        return (type(self).read, type(self).join) == chain

    adds = False
    """Whether `join` takes what a sub-layer's branch added."""
    fused = False
    """Whether the sub-layers of this pass are the fused kernel's; set for each pass, as `training` is."""

    def begin(self, x: torch.Tensor) -> States:
        """The states before the first sub-layer, from the embedded tokens."""
        return (x,)

    def read(self, states: States, at: int) -> tuple[torch.Tensor, States]:
        """What the sub-layer reads, and the states with what its `join` is to have."""
        return states[0], states

    def join(self, states: States, y: torch.Tensor, branch: torch.Tensor | None, at: int) -> States:
        """The states after a sub-layer that gave y and added `branch`, γ·f."""
        return (y,)

    def end(self, states: States) -> torch.Tensor:
        """What leaves the stack."""
        x: torch.Tensor = states[0]
        return x

    def fill(self, seed: int, stack: str) -> None:
        """Draw what it draws of its weights, from streams of its own."""


def layer_ends(places: Sequence[Site]) -> tuple[frozenset[int], frozenset[int]]:
    """Which sub-layers of a stack are the first and the last of their layers."""
    layers = [site.layer for site in places]
    starts = frozenset(i for i, layer in enumerate(layers) if i == 0 or layers[i - 1] != layer)
    return starts, frozenset(i - 1 for i in (*starts - {0}, len(layers)))
