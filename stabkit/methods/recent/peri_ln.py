"""Peri-LN: a norm before and a norm after every branch, and one on the embedding. Kim et al. 2025 (arXiv 2502.02732).

    x ← x + N(f(N(x))), x₀ = N(embedding); at the end N(x)

What a branch adds has the length that its last norm gives it, so that the variance of x grows by as much in every
sub-layer; Pre-LN's grows by a share of what it is once training has made branches large. The paper calls the norm on
the embedding optional (`embedding="none"`, which with LayerNorm is CogView's Sandwich-LN).
"""

from __future__ import annotations

from typing import Literal

from stabkit.methods.base import Method


def method(embedding: Literal["norm", "none"] = "norm") -> Method:
    """x ← x + N(f(N(x))), the embedding normed."""
    return Method(
        key="peri-ln",
        label="Peri-LN",
        source="Kim et al. 2025",
        norm_in=lambda site: "norm",
        norm_branch=lambda site: "norm",
        norm_out=lambda site: "",
        embedding=lambda stack: "norm" if embedding == "norm" else "",
        final=lambda stack: "norm",
        also=("periln",),
    )
