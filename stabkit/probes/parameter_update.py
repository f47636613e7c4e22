"""‖Δθ‖: ‖θ_t − θ_0‖₂ over all parameters of a sub-layer, of the embedding and of the final norms; the factor that
Theorems 2 and 3 of DeepNet multiply. Exactly 0 at step 0.
"""

from __future__ import annotations

import torch

from stabkit.model.flat import Flat
from stabkit.model.transformer import Transformer
from stabkit.probes.base import Pass, Probe


class ParameterUpdate(Probe):
    name = "parameter_update"
    watches = "probe"

    def __init__(self, model: Transformer, flat: Flat) -> None:
        self.flat = flat
        self.first = flat.theta.clone()
        self.difference = torch.empty_like(self.first)
        self.sites = tuple(flat.slices)

    def read(self, seen: Pass) -> torch.Tensor:
        return self.flat.norms(torch.sub(self.flat.theta, self.first, out=self.difference))
