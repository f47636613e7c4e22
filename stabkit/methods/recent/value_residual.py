"""Value residual: Pre-LN in which every self-attention takes the first layer's values beside its own. Zhou et al. 2024
(arXiv 2410.17897), §3; the authors' code, modeling_llama_resformer.py.

x ← x + f(N(x)), V_l ← (V_l + V₁)/2 in self-attention of layers 2 and on; at the end N(x)

The released code's ½ and ½; the paper has trained weights as a variant. Attention from the decoder to the encoder keeps
its own values.
"""

from __future__ import annotations

from stabkit.methods.base import Method


def method() -> Method:
    """Pre-LN, V_l ← (V_l + V₁)/2."""
    return Method(
        key="value-residual",
        label="Value residual",
        source="Zhou et al. 2024 §3",
        constants="½ and ½",
        norm_in=lambda site: "norm",
        norm_out=lambda site: "",
        final=lambda stack: "norm",
        value_residual=True,
        also=("resformer",),
    )
