"""Post-LN: the original Transformer. x ← LN(x + f(x)), every weight at the base initialisation.

Vaswani et al. 2017; X. Liu et al. 2020 eq. 1 writes it per sub-layer. No norm after the last layer: the last
sub-layer's own is the last. `query_key` multiplies W_Q and W_K, which by DeepNet's Lemma 1 do not change the bound.
"""

from __future__ import annotations

from typing import Literal

from stabkit.methods.base import BASELINE, Method, Role, Site


def method(query_key: Literal["1", "0.25", "4"] = "1") -> Method:
    """x ← LN(x + f(x))."""

    def gain(site: Site, role: Role) -> float:
        return float(query_key) if role in ("query", "key") else 1.0

    return Method(
        key="post-ln",
        label="Post-LN",
        source="Vaswani et al. 2017; DeepNet §2",
        constants=f"W_Q, W_K × {query_key}" if query_key != "1" else "",
        gain=gain,
        recipe=BASELINE,
    )
