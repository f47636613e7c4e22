"""Post-LN-init: Post-LN whose layer l starts k_l = N − l + 1 times smaller: W^l ~ N(0, 1/(k_l² d')), DeepNet §2.

d' is the mean of fan-in and fan-out, so 1/√d' is Xavier's standard deviation and the gain is 1/k_l: 1/N in the layer
nearest the input, 1 in the top layer. The decoder counts its own layers (k_l = M − l + 1). The text says "the weights
of l-th layer" and shows the feed-forward's output matrix; we scale every linear map of the layer by default, and
`which="v_o_ffn"` leaves W_Q and W_K alone, as DeepNorm's initialisation does.
"""

from __future__ import annotations

from typing import Literal

from stabkit.methods.base import BASELINE, Method, Recipe, Role, Site


def method(which: Literal["all", "v_o_ffn"] = "all") -> Method:
    """x ← LN(x + f(x)), weights of layer l divided by N − l + 1."""
    untouched = ("embedding",) if which == "all" else ("query", "key", "gate", "embedding")

    def gain(site: Site, role: Role) -> float:
        return 1.0 if role in untouched else 1.0 / (site.depth - site.layer + 1)

    return Method(
        key="post-ln-init",
        label="Post-LN-init",
        source="DeepNet §2",
        constants=("W_V, W_O, W₁, W₂" if which == "v_o_ffn" else "every matrix") + " of layer l × 1/(N − l + 1)",
        gain=gain,
        assumes=("LayerNorm", "ReLU"),
        recipe=Recipe(
            source=f"{BASELINE.source}: Post-LN, to which §2 compares it", base_init="xavier_normal", lr=BASELINE.lr
        ),
    )
