"""Gradient norms of the training batch's loss, before clipping and before the update (DeepNet Fig. 2a, 2b, 3d).

‖∂L/∂θ‖₂ over all parameters of a sub-layer (`decoder.3.cross`), of a layer (`decoder.3`), of the embedding; and
‖∂L/∂x‖₂ over all tokens of the tensor that enters a layer's last norm (`decoder.3@x`; `Transformer.numbered`). The loss
is a mean over tokens, so norms do not grow with the batch. ‖∂L/∂x‖ is NaN where no hook was attached: a run that
diverges between two recorded steps.
"""

from __future__ import annotations

import math
from contextlib import AbstractContextManager

import torch

from stabkit.model.flat import Flat
from stabkit.model.transformer import Transformer
from stabkit.probes.base import Pass, Probe
from stabkit.probes.tools.hooks import on_gradients


class GradNorm(Probe):
    name = "grad_norm"
    watches = "training"

    def __init__(self, model: Transformer, flat: Flat) -> None:
        self.flat = flat
        names = [f"{site.stack}.{site.layer}" for site in model.sites]
        layers = list(dict.fromkeys(names))
        self.sites = (*flat.slices, *layers, *(f"{layer}@x" for layer in layers))
        parts = list(flat.slices)
        self.sublayer = torch.tensor([parts.index(site.name) for site in model.sites])
        self.layer = torch.tensor([layers.index(name) for name in names])
        last = {name: i for i, name in enumerate(names)}
        taps = list(model.numbered("sum"))
        self.taps = {taps[i]: layers.index(name) for name, i in last.items()}
        self.unseen = flat.theta.new_full((), math.nan, dtype=torch.float64)
        self.x = [self.unseen] * len(layers)

    def attached(self) -> AbstractContextManager[object]:
        return on_gradients(self.taps, self._see)

    def _see(self, i: int, gradient: torch.Tensor) -> None:
        self.x[i] = torch.linalg.vector_norm(gradient, dtype=torch.float64)

    def read(self, seen: Pass) -> torch.Tensor:
        parts = self.flat.norms(self.flat.grad).cpu()
        squares = torch.zeros(len(self.x), dtype=torch.float64)
        squares.index_add_(0, self.layer, parts[self.sublayer].square())
        x = torch.stack(self.x).cpu()
        self.x = [self.unseen] * len(self.x)
        return torch.cat([parts, squares.sqrt(), x])
