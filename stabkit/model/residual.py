"""The residual, the one formula that all methods share:

    y = N_out( ω·x + γ·N_branch( G( κ·N_in(x) ) ) )

(G: `branch.py`) with taps, identity modules that probes watch: `branch` (after γ), `sum` (before N_out), and
`shortcut`, ω·x as sum − branch, which is made where it is watched.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
from torch import nn
from torch.nn import functional

from stabkit.kernels.fused import FusedSublayer
from stabkit.methods.base import PLACES, Method, Scale, Site
from stabkit.model.branch import FEED_FORWARDS, Attention, Carried, FeedForward, Linear, SwiGLU
from stabkit.model.part import coded, part
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
        self.g: Attention | FeedForward
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
        self.shortcut = Tap()

    def forward(
        self,
        x: torch.Tensor,
        memory: torch.Tensor | None,
        mask: torch.Tensor | None,
        carried: Carried | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """(T, B, D) → y (T, B, D), and γ·f, which was added."""
        u = x if self.norm_in is None else self.norm_in(x)
        f = self.g(u if self.kappa == 1.0 else u * self.kappa, memory, mask, carried)
        if self.dropout:
            f = functional.dropout(f, self.dropout, self.training)
        if self.norm_branch is not None:
            f = self.norm_branch(f)
        if not (isinstance(self.gamma, float) and self.gamma == 1.0):
            f = f * self.gamma
        f = self.branch(f)
        joined = torch.add(f, x, alpha=self.omega) if isinstance(self.omega, float) else torch.addcmul(f, x, self.omega)
        if self.shortcut.watched:
            self.shortcut(joined - f)
        y: torch.Tensor = self.sum(joined)
        return y if self.norm_out is None else self.norm_out(y), f

    def fused(self, causal: bool, after: Sequence[Tap]) -> FusedSublayer:
        """This sub-layer as the fused kernel takes it; its state passes the taps `after`."""
        g = self.g
        places: dict[str, nn.Module | None] = {"in": self.norm_in, "branch": self.norm_branch, "out": self.norm_out}
        places |= {name: getattr(g, name, None) for name in PLACES}
        kind: Literal["self", "cross", "relu", "swiglu"]
        maps: tuple[Linear | None, ...]
        if isinstance(g, FeedForward):
            kind, inner, maps = (
                "swiglu" if isinstance(g, SwiGLU) else "relu",
                g.down.weight.shape[1],
                (g.up, None, g.down),
            )
        else:
            kind, inner, maps = "self" if g.own else "cross", 0, (g.qkv, None, g.out) if g.own else (g.q, g.kv, g.out)
        parts = coded(places)
        if isinstance(g, Attention) and (g.gate or g.hands_on):
            parts["last"] = ("unknown", ())  # the file has neither gates nor values of another layer
        return FusedSublayer(
            kind=kind,
            causal=causal,
            inner=inner,
            parts=parts,
            maps=tuple(p for m in maps for p in ((m.weight, m.bias) if m else (None, None))),
            scaled=self,
            kappa=self.kappa,
            branch=self.branch,
            sum=self.sum,
            shortcut=self.shortcut,
            scores=g.scores.logits if isinstance(g, Attention) else None,
            after=after,
        )

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
        return float(scale.init)
    key = f"{name} {site.stack} {site.layer}" if scale.shared == "layer" else f"{name} {site.name}"
    if key not in shared:
        values = torch.full((site.width,) if scale.vector else (), scale.init)
        shared[key] = nn.Parameter(values, requires_grad=scale.trainable)
    return shared[key]
