"""Sub-LN, "DeepNet for Pre-LN": a second norm before each branch's last map, V, O, W₁ and W₂ × γ. DeepNet §4.

    self-attention   x ← x + W_O·LN(heads(LN(x)))
    feed-forward     x ← x + W₂·LN(φ(W₁·LN(x)))
    cross-attention  x ← x + f(LN(x)), neither inner norm nor γ (torchscale; the paper does not say)

    one stack        γ = √ln(2N), √ln(2M)
    encoder-decoder  γ = √(ln(3M)·ln(2N)/3) in the encoder, √ln(3M) in the decoder (torchscale; not in the paper)

`pair="paper"` uses the paper's one-stack constants in both stacks of an encoder-decoder. Equation 9 prints no
residual; Theorem 4 does. γ is below 1 at N = 1.
"""

from __future__ import annotations

import math
from typing import Literal

from stabkit.methods.base import Inner, Method, Place, Recipe, Role, Site
from stabkit.methods.pre_ln import final_norm


def gamma(site: Site, pair: Literal["torchscale", "paper"] = "torchscale") -> float:
    """Of V, O, W₁ and W₂ of this stack. 18L-18L: encoder 2.183, decoder 1.997; one stack of 18: 1.893."""
    n, m = site.encoder_layers, site.decoder_layers
    if not (n and m) or pair == "paper":
        return math.sqrt(math.log(2 * site.depth))
    return math.sqrt(math.log(3 * m) * math.log(2 * n) / 3 if site.stack == "encoder" else math.log(3 * m))


def method(pair: Literal["torchscale", "paper"] = "torchscale") -> Method:
    """x ← x + W·LN(…LN(x)…), √log gains."""

    def gain(site: Site, role: Role) -> float:
        scaled = role in ("value", "out", "up", "down") and site.kind != "cross"
        return gamma(site, pair) if scaled else 1.0

    def inner(site: Site, place: Place) -> Inner:
        return "norm" if place == "last" and site.kind != "cross" else ""

    return Method(
        key="sub-ln",
        label="Sub-LN",
        source="DeepNet §4, Theorem 4; torchscale for an encoder-decoder's pair of γ",
        formula="x ← x + W₂·LN(φ(W₁·LN(x))), LN after each stack; W_V, W_O, W₁, W₂ × √ln(2N)",
        group="Pre-LN",
        gain=gain,
        norm_in=lambda site: True,
        norm_out=lambda site: False,
        inner=inner,
        final=final_norm,
        recipe=Recipe(source="DeepNet (first version), Appendix D.2", base_init="xavier_normal", lr=1.5e-3),
    )
