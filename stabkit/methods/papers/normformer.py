"""NormFormer: Pre-LN with a norm after attention, a factor a head, a norm in the feed-forward. Shleifer et al. 2021.

    self-attention   x ← x + LN(W_O·(γ_h·head_h)), γ_h trained, 1 at first
    feed-forward     x ← λ·x + W₂·LN(φ(W₁·LN(x))), λ only with `res_scale="yes"` (a trained vector, 1 at first)

`heads="fairseq"` multiplies after W_O, on d/H entries each, as fairseq does. The paper has decoders alone; what DeepNet
compares as NormFormer in an encoder-decoder is its own port. Here self-attention and feed-forward of both stacks get
the additions, and cross-attention stays Pre-LN's, as in fairseq.
"""

from __future__ import annotations

from typing import Literal

from stabkit.methods.base import BASELINE, ONE, Method, Place, Scale, Site
from stabkit.methods.parts import Part


def method(heads: Literal["paper", "fairseq"] = "paper", res_scale: Literal["no", "yes"] = "no") -> Method:
    """Pre-LN with three further norms or factors a layer."""
    place_of_heads: Place = "last" if heads == "paper" else "end"

    def inner(site: Site, role: Place) -> Part:
        if site.kind == "self" and role == place_of_heads:
            return "heads"
        return "norm" if site.kind == "ffn" and role == "last" else ""

    def omega(site: Site) -> Scale:
        return Scale(vector=True, trainable=True) if res_scale == "yes" and site.kind == "ffn" else ONE

    return Method(
        key="normformer",
        label="NormFormer",
        source="Shleifer et al. 2021 §2",
        constants="every factor 1 at first",
        omega=omega,
        norm_in=lambda site: "norm",
        norm_branch=lambda site: "norm" if site.kind == "self" else "",
        norm_out=lambda site: "",
        inner=inner,
        final=lambda stack: "norm",
        recipe=BASELINE,
    )
