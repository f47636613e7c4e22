"""(x, y): a stream that is normed before every sub-layer and one that never is; each reads both (SiameseNorm,
arXiv 2602.08064; released code, deit-model-siamesenorm.py)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import nn

from stabkit.methods.base import Site
from stabkit.model import part
from stabkit.model.wirings.base import ChainWiring, States
from stabkit.spec import Norm


class Siamese(ChainWiring):
    """x ← N(x), read x + N(y); with what the branch adds, z: x ← x + z/√(2l), y ← y + z, l the layer; at the end
    N(x) + N(y)."""

    adds = True

    def __init__(self, places: Sequence[Site], norm: Norm) -> None:
        super().__init__()
        self.layers = [site.layer for site in places]
        self.of_x, self.of_y = (
            nn.ModuleList(part.norm(norm, places[0].width) for _ in range(len(places) + 1)) for _ in range(2)
        )

    def begin(self, x: torch.Tensor) -> States:
        return (x, x)

    def read(self, states: States, at: int) -> tuple[torch.Tensor, States]:
        x, y = self.of_x[at](states[0]), states[1]
        return x + self.of_y[at](y), (x, y)

    def join(self, states: States, y: torch.Tensor, branch: torch.Tensor | None, at: int) -> States:
        assert branch is not None  # it `adds`
        return torch.add(states[0], branch, alpha=1.0 / math.sqrt(2.0 * self.layers[at])), states[1] + branch

    def end(self, states: States) -> torch.Tensor:
        y: torch.Tensor = self.of_x[-1](states[0]) + self.of_y[-1](states[1])
        return y
