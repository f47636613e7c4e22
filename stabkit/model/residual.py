"""The residual, the one formula that all methods share:

    y = N_out( ω·x + γ·N_branch( G( κ·N_in(x) ) ) )

(G: `branch.py`) with two taps, identity modules that probes hook: `branch` (after γ) and `sum` (before N_out).
ω·x = sum − branch.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from stabkit.methods.base import Method, Scale, Site
from stabkit.model.branch import FEED_FORWARDS, Attention
from stabkit.model.kv_cache import Past
from stabkit.model.part import part
from stabkit.model.positions import Positions
from stabkit.model.tap import Tap
from stabkit.spec import ModelConfig


class Residual(nn.Module):
    """One sub-layer with its shortcut. A scale that is a fixed number stays a number; others are parameters.

    `shared`: the scales that sub-layers before this one have and this one may share; it adds its own.
    """

    def __init__(
        self,
        config: ModelConfig,
        method: Method,
        site: Site,
        dropout: float,
        shared: dict[str, nn.Parameter],
        positions: Positions,
    ) -> None:
        super().__init__()
        of = (config.norm, config.hidden, config.heads)
        self.g: nn.Module
        if site.kind == "ffn":
            self.g = FEED_FORWARDS[config.ffn_kind](config, method, site)
        else:
            self.g = Attention(config, method, site, positions)
        self.norm_in = part(method.norm_in(site), *of)
        self.norm_branch = part(method.norm_branch(site), *of)
        self.norm_out = part(method.norm_out(site), *of)
        self.kappa = method.kappa(site)
        self.omega = _scale("omega", method.omega(site), site, shared)
        self.gamma = _scale("gamma", method.gamma(site), site, shared)
        self.dropout = dropout
        self.branch = Tap()
        self.sum = Tap()

    def forward(
        self, x: torch.Tensor, memory: torch.Tensor | None, mask: torch.Tensor | None, past: Past | None = None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """(T, B, D) → y (T, B, D), and γ·f, which was added."""
        u = x if self.norm_in is None else self.norm_in(x)
        f = self.g(u if self.kappa == 1.0 else u * self.kappa, memory, mask, past)
        if self.dropout:
            f = functional.dropout(f, self.dropout, self.training)
        if self.norm_branch is not None:
            f = self.norm_branch(f)
        if not (isinstance(self.gamma, float) and self.gamma == 1.0):
            f = f * self.gamma
        f = self.branch(f)
        joined = torch.add(f, x, alpha=self.omega) if isinstance(self.omega, float) else torch.addcmul(f, x, self.omega)
        y: torch.Tensor = self.sum(joined)
        return y if self.norm_out is None else self.norm_out(y), f

    def set_omega(self, value: float) -> None:
        """Give ω the value that a method's calibration found."""
        if isinstance(self.omega, float):
            self.omega = value
        else:
            with torch.no_grad():
                self.omega.fill_(value)

    def mean_omega(self) -> float:
        """ω as one number: the mean of a vector."""
        return self.omega if isinstance(self.omega, float) else float(self.omega.detach().mean())


def _scale(name: str, scale: Scale, site: Site, shared: dict[str, nn.Parameter]) -> float | nn.Parameter:
    if not scale.trainable and not scale.vector:
        return scale.init
    key = f"{name} {site.stack} {site.layer}" if scale.shared == "layer" else f"{name} {site.name}"
    if key not in shared:
        values = torch.full((site.width,) if scale.vector else (), scale.init)
        shared[key] = nn.Parameter(values, requires_grad=scale.trainable)
    return shared[key]
