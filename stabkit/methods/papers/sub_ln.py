"""Sub-LN, "DeepNet for Pre-LN": a second norm before each branch's last map, V, O, W₁ and W₂ × γ. DeepNet §4.

    self-attention   x ← x + W_O·LN(heads(LN(x)))
    feed-forward     x ← x + W₂·LN(φ(W₁·LN(x)))
    cross-attention  x ← x + f(LN(x)), neither inner norm nor γ (torchscale; the paper does not say)

    γ = √ln(2N) in an encoder, √ln(2M) in a decoder

`pair="torchscale"`: in an encoder with a decoder √(ln(3M)·ln(2N)/3), in that decoder √ln(3M), as the released code has
them. `gain="one"`: γ = 1, Xavier's own, of which Theorem 4 says O(log L). Equation 9 prints no residual; Theorem 4
does. γ = √ln(2N) is below 1 at N = 1.
"""

from __future__ import annotations

import math
from typing import Literal

from stabkit.methods.base import Method, Place, Recipe, Role, Site
from stabkit.methods.parts import Part


def gamma(site: Site, pair: Literal["paper", "torchscale"] = "paper") -> float:
    """Of V, O, W₁ and W₂ of this stack. 18 layers: 1.893; 18L-18L of torchscale: encoder 2.183, decoder 1.997."""
    n, m = site.encoder_layers, site.decoder_layers
    if pair == "paper" or not (n and m):
        return math.sqrt(math.log(2 * site.depth))
    return math.sqrt(math.log(3 * m) * math.log(2 * n) / 3 if site.stack == "encoder" else math.log(3 * m))


def method(pair: Literal["paper", "torchscale"] = "paper", gain: Literal["log", "one"] = "log") -> Method:
    """x ← x + W·LN(…LN(x)…), √log gains or none."""
    scales = "√ln(2N), √ln(2M)" if pair == "paper" else "√(ln(3M)·ln(2N)/3), √ln(3M)"

    def gains(site: Site, role: Role) -> float:
        scaled = gain == "log" and role in ("value", "out", "up", "down") and site.kind != "cross"
        return gamma(site, pair) if scaled else 1.0

    def inner(site: Site, place: Place) -> Part:
        return "norm" if place == "last" and site.kind != "cross" else ""

    return Method(
        key="sub-ln",
        label="Sub-LN",
        source="DeepNet §4, Theorem 4",
        constants=f"W_V, W_O, W₁, W₂ × {scales}, but in cross-attention" if gain == "log" else "",
        gain=gains,
        norm_in=lambda site: "norm",
        norm_out=lambda site: "",
        inner=inner,
        final=lambda stack: "norm",
        assumes=("LayerNorm", "ReLU"),
        recipe=Recipe(
            source="DeepNet §4.3 (base) and Table 7 (rate of its language models)", base_init="xavier_normal", lr=1e-3
        ),
    )
