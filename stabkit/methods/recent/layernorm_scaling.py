"""LayerNorm scaling: Pre-LN whose norms give 1/√l of their output in layer l. Sun et al. 2025 (arXiv 2502.05795).

    x ← x + f(N(x)/√l), l the layer from 1; at the end N(x)

Pre-LN's variance grows with depth, so that deep layers add little to x and act like the identity, the curse of depth; a
factor on what enters the branch bounds the growth. The norm at the end has none, and GPT-2's scaled initialisation is
to be left out with it (footnote 1). Checked in the authors' code (lmsdss/LayerNorm-Scaling): both norms of a layer have
its factor, after their trained weights.
"""

from __future__ import annotations

from stabkit.methods.base import Method


def method() -> Method:
    """x ← x + f(N(x)/√l)."""
    return Method(
        key="layernorm-scaling",
        label="LN scaling",
        source="Sun et al. 2025 §4",
        constants="κ = 1/√l in layer l",
        kappa=lambda site: site.layer**-0.5,
        norm_in=lambda site: "norm",
        norm_out=lambda site: "",
        final=lambda stack: "norm",
        also=("lns", "layer-norm-scaling", "ln-scaling"),
    )
