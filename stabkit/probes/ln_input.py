"""‖LN input‖: mean over the probe batch's tokens of ‖ω·x + γ·G(x)‖₂, the tensor that enters the norm after a sub-layer
(DeepNet Fig. 3b for the feed-forward, 3c for attention).

One site a sub-layer, so self-attention, cross-attention and feed-forward stay apart. `@omega`: the same over ω√d,
which is 1 when the branch adds nothing: the raw value is about ω√d by construction. Methods with the norm elsewhere
or nowhere: the residual stream after this sub-layer. Where a wiring takes the branch alone, as hyper-connections do:
what the branch reads, which enters its norm.
"""

from __future__ import annotations

import math
from contextlib import AbstractContextManager

import torch

from stabkit.model.flat import Flat
from stabkit.model.transformer import Transformer
from stabkit.probes.base import Pass, Probe
from stabkit.probes.tools.hooks import on_lengths, token_means


class LnInput(Probe):
    name = "ln_input"
    watches = "probe"

    def __init__(self, model: Transformer, flat: Flat) -> None:
        super().__init__(model, flat)
        self.model = model
        self.norms = [torch.empty(0)] * len(model.sites)

    def attached(self) -> AbstractContextManager[object]:
        return on_lengths(self.model.numbered("sum"), self.watches, self.norms.__setitem__)

    def read(self, seen: Pass) -> torch.Tensor:
        raw = token_means(self.model, self.norms, seen.keep)
        omegas = [r.mean_omega() * math.sqrt(self.model.config.hidden) for r in self.model.residuals.values()]
        return torch.cat([raw, raw / torch.tensor(omegas, dtype=raw.dtype, device=raw.device)])
