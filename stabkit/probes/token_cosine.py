"""The mean cosine between the output states of different tokens of the probe batch: 1 where all tokens have become one
direction (rank collapse), which no attention above can tell apart.

mean over pairs i ≠ j of cos(x_i, x_j) = (‖Σ u_i‖² − n)/(n·(n − 1)), u_i = x_i/‖x_i‖, over the n tokens of the last
stack's output that are not padding. A candidate link of the chain, beside those of DeepNet §2: deep Post-LN begins
at 1.
"""

from __future__ import annotations

import torch

from stabkit.model.flat import Flat
from stabkit.model.transformer import Transformer
from stabkit.probes.base import Pass, Probe
from stabkit.probes.tools import quantities


class TokenCosine(Probe):
    name = "token_cosine"
    watches = "probe"

    def __init__(self, model: Transformer, flat: Flat) -> None:
        super().__init__(model, flat)
        self.stack = model.stacks[-1]

    def read(self, seen: Pass) -> torch.Tensor:
        return quantities.token_cosine(seen.states, seen.keep[self.stack]).reshape(1)
