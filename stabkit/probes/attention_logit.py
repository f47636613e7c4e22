"""The largest attention logit of a sub-layer: max of q·k/√E over heads, the probe batch's queries and the keys that
each may see; with q/k-norm, of what is normed. Logits that grow make the softmax pick one key and stop its gradient
(Dehghani et al. 2023, §2.1; Wortsman et al. 2023, §3.1).
"""

from __future__ import annotations

from contextlib import AbstractContextManager

import torch

from stabkit.model.branch import Attention
from stabkit.model.flat import Flat
from stabkit.model.transformer import Transformer
from stabkit.probes.base import Pass, Probe
from stabkit.probes.tools.hooks import on_taps


class AttentionLogit(Probe):
    name = "attention_logit"
    watches = "probe"

    def __init__(self, model: Transformer, flat: Flat) -> None:
        super().__init__(model, flat)
        attentions = [(site, r.g) for site, r in model.residuals.items() if isinstance(r.g, Attention)]
        self.heads = model.config.heads
        self.kinds = [(site.stack, site.kind) for site, _ in attentions]
        """Of one kind all have scores of one shape."""
        self.taps = {g.scores.logits: i for i, (_, g) in enumerate(attentions)}
        self.scores = [torch.empty(0)] * len(self.sites)

    def attached(self) -> AbstractContextManager[object]:
        return on_taps(self.taps, self.watches, self._see)

    def _see(self, i: int, s_GTS: torch.Tensor) -> None:
        self.scores[i] = s_GTS

    def read(self, seen: Pass) -> torch.Tensor:
        by_site: dict[int, torch.Tensor] = {}
        for kind in dict.fromkeys(self.kinds):
            at = [i for i, of in enumerate(self.kinds) if of == kind]
            keep_TB = seen.keep[kind[0]]
            by_query_NGT = torch.stack([self.scores[i] for i in at]).amax(dim=-1)  # one call for all: they are small
            by_query_NBT = by_query_NGT.view(len(at), keep_TB.shape[1], self.heads, -1).amax(dim=2)
            by_site.update(zip(at, by_query_NBT[:, keep_TB.t()].amax(dim=1), strict=True))
        return torch.stack([by_site[i] for i in range(len(self.sites))]).double()
