"""By how much the mixings of streams alone let one stream grow: hyper-connections' own link of the chain (Xie et al.
2025, Fig. 3: "Amax gain").

Of the product R_i···R_1 of a token's mixings up to sub-layer i the largest sum of absolute values in a row: how far a
signal of size 1 in every stream can have grown. `@backward`: of R_S···R_i, S the last sub-layer of the stack, the
largest in a column: how far a gradient can, on its way down to i. Means over the probe batch's tokens. 1 where every
R is doubly stochastic; the paper found 3,000 with free ones at 27 B parameters. Recorded of methods that mix streams.
"""

from __future__ import annotations

from contextlib import AbstractContextManager

import torch

from stabkit.model.flat import Flat
from stabkit.model.transformer import Transformer
from stabkit.model.wirings.hyper import Hyper
from stabkit.probes.base import Pass, Probe
from stabkit.probes.tools.hooks import on_taps


class Mixing(Probe):
    name = "mixing"
    watches = "probe"

    def __init__(self, model: Transformer, flat: Flat) -> None:
        super().__init__(model, flat)
        wirings = [wiring for wiring in model.history.values() if isinstance(wiring, Hyper)]
        taps = [tap for wiring in wirings for tap in wiring.taps()]
        self.taps = {tap: i for i, tap in enumerate(taps)}
        self.stacks = [site.stack for site in model.sites]
        self.mixings = [torch.empty(0)] * len(taps)

    @classmethod
    def applies(cls, model: Transformer) -> bool:
        return all(isinstance(wiring, Hyper) for wiring in model.history.values())

    def attached(self) -> AbstractContextManager[object]:
        return on_taps(self.taps, self.watches, self.mixings.__setitem__)

    def read(self, seen: Pass) -> torch.Tensor:
        forward, backward = [], []
        for stack in dict.fromkeys(self.stacks):
            mine = [r for r, of in zip(self.mixings, self.stacks, strict=True) if of == stack]
            keep = seen.keep[stack]
            ups, downs = mine[:1], mine[-1:]
            for r in mine[1:]:
                ups.append(r @ ups[-1])
            for r in reversed(mine[:-1]):
                downs.append(downs[-1] @ r)
            forward.append(torch.stack([p.abs().sum(-1).amax(-1)[keep].double().mean() for p in ups]))
            backward.append(torch.stack([p.abs().sum(-2).amax(-1)[keep].double().mean() for p in reversed(downs)]))
        return torch.cat([*forward, *backward])
