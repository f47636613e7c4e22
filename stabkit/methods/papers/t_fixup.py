"""T-Fixup: no norms, no warm-up; W_V, W_O, W₁, W₂ and the embedding start smaller. Huang et al. 2020, §4.

    encoder  W_V, W_O, W₁, W₂ × 0.67·N^(−1/4)
    decoder  W_V, W_O, W₁, W₂ × (9M)^(−1/4), of both attentions
    embedding N(0, 1/d) × (9N)^(−1/4): one table serves both stacks, as in the released code when all are shared

on Xavier with gain 1: fairseq's base draws W_V by √½ smaller, which the released code undoes with √2, and so do we
(`Site.base`). W_Q and W_K stay. The derivation is of an encoder with a decoder; constants of one stack alone were asked
for and not given, so that there is no such model here.
"""

from __future__ import annotations

import math

from stabkit.methods.base import Method, Recipe, Role, Site

ONE_STACK = "its constants are derived for an encoder with a decoder, not for one stack (Huang et al. 2020 §4)"


def method() -> Method:
    """x ← x + f(x), small W_V, W_O, W₁, W₂."""

    def gain(site: Site, role: Role) -> float:
        if role in ("query", "key", "gate"):
            return 1.0
        if role == "embedding":
            return float((9 * site.encoder_layers) ** -0.25)
        scale = 0.67 * site.depth**-0.25 if site.stack == "encoder" else (9 * site.depth) ** -0.25
        return float(scale * (math.sqrt(2.0) if role == "value" and site.base != "xavier_normal" else 1.0))

    return Method(
        key="t-fixup",
        label="T-Fixup",
        source="Huang et al. 2020 §4",
        constants="W_V, W_O, W₁, W₂ × 0.67·N^(−1/4) in the encoder, × (9M)^(−1/4) in the decoder; embedding × "
        "(9N)^(−1/4)",
        gain=gain,
        norm_out=lambda site: "",
        assumes=("ReLU",),
        undefined=lambda n, m: "" if n and m else ONE_STACK,
        recipe=Recipe(source="Huang et al. 2020 §5: no warm-up, decay after 4000", lr=5e-4, warmup=0, hold=4000),
    )
