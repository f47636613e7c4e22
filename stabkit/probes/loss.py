"""The loss a token: label-smoothed cross-entropy at θ_t, of the training batch (`train`, with dropout) and of the probe
batch, which is held-out text (`probe`, eval mode); `train@nll` is the training batch's without label smoothing, whose
exponential is its perplexity. The wider validation batches are read less often, into a table of their own
(`validation`: the loss, its nll, and the share of tokens predicted right).
"""

from __future__ import annotations

import torch

from stabkit.probes.base import Pass, Probe


class Loss(Probe):
    name = "loss"
    watches = "probe"

    def read(self, seen: Pass) -> torch.Tensor:
        return torch.stack([seen.train_loss, seen.loss, seen.train_nll]).double()
