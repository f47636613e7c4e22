"""The chain, its state made smaller after every sub-layer and its gradient not (GPAS: arXiv 2506.22049; released code,
modeling_llama.py, GPASBlock)."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn
from torch.nn import functional

from stabkit.methods.base import Site
from stabkit.model.wirings.base import ChainWiring, States
from stabkit.spec import Norm


class Shrunk(ChainWiring):
    """x ← y − SiLU(α_l)·[y], [·] a constant to the gradient; α_l of layer l, both sub-layers', 0 at first."""

    def __init__(self, places: Sequence[Site], norm: Norm) -> None:
        super().__init__()
        self.layers = [site.layer - 1 for site in places]
        self.alpha = nn.Parameter(torch.zeros(places[-1].layer))

    def join(self, states: States, y: torch.Tensor, branch: torch.Tensor | None, at: int) -> States:
        return (y - functional.silu(self.alpha[self.layers[at]]) * y.detach(),)
