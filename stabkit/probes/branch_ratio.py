"""‖γ·G(x)‖/‖ω·x‖: how much a branch weighs against its shortcut, as a mean over the probe batch's tokens (ADMIN's
dependency on the residual branch; Liu et al. 2020, §4). One site a sub-layer.

`@branch`, `@shortcut`: the mean squares of the two a token and entry, mean ‖γ·G(x)‖²/d and ‖ω·x‖²/d.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, ExitStack

import torch

from stabkit.model.flat import Flat
from stabkit.model.transformer import Transformer
from stabkit.probes.base import Pass, Probe
from stabkit.probes.tools.hooks import on_lengths


class BranchRatio(Probe):
    name = "branch_ratio"
    watches = "probe"

    def __init__(self, model: Transformer, flat: Flat) -> None:
        super().__init__(model, flat)
        self.model = model
        self.branches = [torch.empty(0)] * len(model.sites)
        self.shortcuts = [torch.empty(0)] * len(model.sites)

    def attached(self) -> AbstractContextManager[object]:
        stack = ExitStack()
        stack.enter_context(on_lengths(self.model.numbered("branch"), self.watches, self.branches.__setitem__))
        stack.enter_context(on_lengths(self.model.numbered("shortcut"), self.watches, self.shortcuts.__setitem__))
        return stack

    def read(self, seen: Pass) -> torch.Tensor:
        by_stack: list[list[torch.Tensor]] = []
        for stack in self.model.stacks:
            mine = [i for i, site in enumerate(self.model.sites) if site.stack == stack]
            branch, shortcut = (torch.stack([norms[i] for i in mine]) for norms in (self.branches, self.shortcuts))
            squares = [norms.square() / self.model.config.hidden for norms in (branch, shortcut)]
            values = (branch / shortcut, *squares)
            by_stack.append([value[:, seen.keep[stack]].double().mean(dim=1) for value in values])
        return torch.cat([each for part in zip(*by_stack, strict=True) for each in part])
