"""Gradient norms of the training batch's loss, before clipping and before the update (DeepNet Fig. 2a, 2b, 3d).

‖∂L/∂θ‖₂ over all parameters of a sub-layer (`decoder.3.cross`), of a layer (`decoder.3`) and of the embedding; and
‖∂L/∂x‖₂ over all tokens of the tensor that enters the sub-layer's output norm (`decoder.3.cross@x`). The loss is a mean
over tokens, so norms do not grow with the batch. NaN where no hook was attached (a run that diverges between two
recorded steps).
"""

from __future__ import annotations

from contextlib import AbstractContextManager

import torch

from stabkit.model.flat import Flat
from stabkit.model.transformer import Transformer
from stabkit.probes.base import Pass, Probe
from stabkit.probes.hooks import on_taps


class GradNorm(Probe):
    name = "grad_norm"
    watches = "training"

    def __init__(self, model: Transformer, flat: Flat) -> None:
        self.model, self.flat = model, flat
        layers = [f"{site.stack}.{site.layer}" for site in model.sites]
        self.layers = list(dict.fromkeys(layers))
        self.sites = (*flat.slices, *self.layers, *(f"{site.name}@x" for site in model.sites))
        parts = list(flat.slices)
        self.sublayer = torch.tensor([parts.index(site.name) for site in model.sites])
        self.layer = torch.tensor([self.layers.index(name) for name in layers])
        self.x: dict[int, torch.Tensor] = {}

    def attached(self) -> AbstractContextManager[object]:
        self.x = {}
        return on_taps(self.model, "sum", self._watch)

    def _watch(self, i: int, x: torch.Tensor) -> None:
        def keep(gradient: torch.Tensor) -> None:
            self.x[i] = torch.linalg.vector_norm(gradient, dtype=torch.float64)

        x.register_hook(keep)  # type: ignore[no-untyped-call]  # torch leaves it untyped

    def read(self, seen: Pass) -> torch.Tensor:
        parts = self.flat.norms(self.flat.grad).cpu()
        squares = torch.zeros(len(self.layers), dtype=torch.float64)
        squares.index_add_(0, self.layer, parts[self.sublayer].square())
        missing = torch.tensor(float("nan"), dtype=torch.float64, device=self.flat.grad.device)
        x = torch.stack([self.x.get(i, missing) for i in range(len(self.model.sites))]).cpu()
        self.x = {}
        return torch.cat([parts, squares.sqrt(), x])
