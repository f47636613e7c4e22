"""CompleteP: Pre-LN whose branches are divided by the depth. Dey et al. 2025 (arXiv 2505.01618), Table 1 with α = 1.

    x ← x + f(N(x))/m, m = N/2; at the end N(x);   Adam's ε of what is inside the layers × 1/m

Rates and all else are tuned at the base depth, 2 layers, where m is 1. The rate of what is inside the layers is
multiplied by m^(α−1), which is 1. Checked in the released code (EleutherAI/nanoGPT-mup, branch completep): attention
and feed-forward are each divided, and embedding, softmax and last norm have no factor of depth. Its factors of width
are 1 here, as every model of a comparison has one width; under AdamW λ has no factor of its own.
"""

from __future__ import annotations

from stabkit.methods.base import Known, Method, Scale, Site

BASE = 2
"""Layers at which m is 1."""


def multiple(site: Site) -> float:
    """m: the layers of this stack over BASE."""
    return site.depth / BASE


def method() -> Method:
    """x ← x + f(N(x))/m, ε likewise."""

    def epsilon(site: Site, role: Known) -> float:
        return 1.0 if role in ("outer", "embedding", "head") else 1.0 / multiple(site)

    return Method(
        key="completep",
        label="CompleteP",
        source="Dey et al. 2025; nanoGPT-mup",
        constants="γ = 2/N, N the layers of the stack; ε of the layers × 2/N",
        gamma=lambda site: Scale(init=1.0 / multiple(site)),
        norm_in=lambda site: "norm",
        norm_out=lambda site: "",
        final=lambda stack: "norm",
        epsilon=epsilon,
        also=("complete-p",),
    )
