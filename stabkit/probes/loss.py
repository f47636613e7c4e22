"""The loss a token: label-smoothed cross-entropy at θ_t, of the training batch (`train`, with dropout) and of the probe
batch, which is held-out text (`probe`, eval mode). The wider validation batches are read less often, into a table of
their own (`validation`).
"""

from __future__ import annotations

import torch

from stabkit.model.flat import Flat
from stabkit.model.transformer import Transformer
from stabkit.probes.base import Pass, Probe


class Loss(Probe):
    name = "loss"
    watches = "probe"

    def __init__(self, model: Transformer, flat: Flat) -> None:
        self.sites = ("train", "probe")

    def read(self, seen: Pass) -> torch.Tensor:
        return torch.stack([seen.train_loss, seen.loss]).double()
