"""ReZero: no norms; x ← x + α·f(x) with one trained α a layer, 0 at first. Bachlechner et al. 2021.

The released code shares one α among the sub-layers of a layer; the text may be read as one a sub-layer
(`alpha="sublayer"`). At θ₀ the model is the identity on its embeddings: the branches receive no gradient at step 0, and
the first update moves α alone.
"""

from __future__ import annotations

from typing import Literal

from stabkit.methods.base import NO_LN, Method, Recipe, Scale


def method(alpha: Literal["layer", "sublayer"] = "layer") -> Method:
    """x ← x + α·f(x), α = 0."""
    shared: Literal["site", "layer"] = "layer" if alpha == "layer" else "site"
    zero = Scale(init=0.0, trainable=True, shared=shared)
    return Method(
        key="rezero",
        label="ReZero",
        source="Bachlechner et al. 2021",
        constants=f"γ = α, one trained number per {alpha}, 0 at first".replace("sublayer", "sub-layer"),
        gamma=lambda site: zero,
        norm_out=lambda site: "",
        recipe=Recipe(
            source=f"rate: {NO_LN.source}; base and no warm-up: the released code",
            base_init="torch_uniform",
            lr=NO_LN.lr,
            warmup=0,
        ),
    )
