"""‖γ·G(x)‖/‖ω·x‖: how much a branch weighs against its shortcut, as a mean over the probe batch's tokens (ADMIN's
dependency on the residual branch; Liu et al. 2020, §4). One site a sub-layer.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, ExitStack

import torch

from stabkit.model.flat import Flat
from stabkit.model.transformer import Transformer
from stabkit.probes.base import Pass, Probe
from stabkit.probes.hooks import on_taps, token_means


class BranchRatio(Probe):
    name = "branch_ratio"
    watches = "probe"

    def __init__(self, model: Transformer, flat: Flat) -> None:
        self.model = model
        self.sites = tuple(site.name for site in model.sites)
        self.branch = torch.empty(0)
        self.shortcut = torch.empty(0)
        self.ratios = [torch.empty(0)] * len(model.sites)

    def attached(self) -> AbstractContextManager[object]:
        stack = ExitStack()
        stack.enter_context(on_taps(self.model.numbered("branch"), self.watches, self._branch))
        stack.enter_context(on_taps(self.model.numbered("sum"), self.watches, self._sum))
        return stack

    def _branch(self, i: int, branch: torch.Tensor) -> None:
        self.branch = branch

    def _sum(self, i: int, total: torch.Tensor) -> None:
        norm = torch.linalg.vector_norm
        if self.shortcut.shape != total.shape:
            self.shortcut = torch.empty_like(total)  # kept: a fresh one at every site costs more than the norms
        torch.sub(total, self.branch, out=self.shortcut)
        self.ratios[i] = norm(self.branch, dim=-1) / norm(self.shortcut, dim=-1)

    def read(self, seen: Pass) -> torch.Tensor:
        return token_means(self.model, self.ratios, seen.keep)
