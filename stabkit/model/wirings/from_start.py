"""Every layer reads the embedding beside the layer before it, and the middle is taken out at the end (nanochat,
gpt.py)."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn

from stabkit.methods.base import Site
from stabkit.model.wirings.base import ChainWiring, States, layer_ends
from stabkit.spec import Norm


class FromStart(ChainWiring):
    """Layer i of N, from 0, reads λ_i·x + λ⁰_i·x₀; at the end x − b·x_mid, x_mid the state after layer ⌊N/2⌋.

    λ_i = 1.15 − 0.10·i/(N − 1), λ⁰_i = 0.20 − 0.15·i/(N − 1), b = 0.2 at first; all trained.
    """

    def __init__(self, places: Sequence[Site], norm: Norm) -> None:
        super().__init__()
        layers = places[-1].layer
        self.starts, stops = layer_ends(places)
        self.layers = [site.layer - 1 for site in places]
        self.middle = sorted(stops)[layers // 2]
        depth = torch.arange(layers) / max(layers - 1, 1)
        self.keep, self.start = nn.Parameter(1.15 - 0.10 * depth), nn.Parameter(0.20 - 0.15 * depth)
        self.back = nn.Parameter(torch.full((), 0.2))

    def begin(self, x: torch.Tensor) -> States:
        return (x, x)

    def read(self, states: States, at: int) -> tuple[torch.Tensor, States]:
        if at not in self.starts:
            return states[0], states
        layer = self.layers[at]
        return self.keep[layer] * states[0] + self.start[layer] * states[1], states

    def join(self, states: States, y: torch.Tensor, branch: torch.Tensor | None, at: int) -> States:
        return (y, states[1], y) if at == self.middle else (y, *states[1:])

    def end(self, states: States) -> torch.Tensor:
        x, _, middle = states
        y: torch.Tensor = x - self.back * middle
        return y
