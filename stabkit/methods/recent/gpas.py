"""GPAS: Pre-LN whose state is made smaller after every sub-layer, and its gradient not. Chen et al. 2025 (arXiv
2506.22049); the authors' code, modeling_llama.py, `pre_gpas`.

x ← x + f(N(x)), then x ← x − SiLU(α_l)·[x], [x] a constant to the gradient; at the end N(x)

α_l is one trained number a layer, both sub-layers', 0 at first, so that it begins as Pre-LN.
"""

from __future__ import annotations

from stabkit.methods.base import Method


def method() -> Method:
    """Pre-LN, x ← x − SiLU(α_l)·[x] after every sub-layer."""
    return Method(
        key="gpas",
        label="GPAS",
        source="Chen et al. 2025 §3; released code",
        constants="α_l = 0 at first, one per layer",
        norm_in=lambda site: "norm",
        norm_out=lambda site: "",
        final=lambda stack: "norm",
        wiring="shrunk chain",
    )
