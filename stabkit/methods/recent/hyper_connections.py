"""Hyper-connections: four streams, mixed around every sub-layer by trained weights. Zhu et al. 2024 (arXiv 2409.19606),
§2, Alg. 2 (dynamic, with tanh).

    X ← R·X + q ⊗ f(N(p·X)), p, q and R trained, with a part that follows the token;   output N(Σ X)

X is the embedding four times. At first R = I, q = 1, and p takes one stream, the next at each sub-layer.
"""

from __future__ import annotations

from stabkit.methods.base import Method


def method() -> Method:
    """X ← R·X + q ⊗ f(N(p·X))."""
    return Method(
        key="hyper-connections",
        label="Hyper-connections",
        source="Zhu et al. 2024 Alg. 2",
        constants="n = 4; R = I, q = 1, p a unit vector, the moving part × 0.01 and 0 at first",
        norm_in=lambda site: "norm",
        norm_out=lambda site: "",
        final=lambda stack: "norm",
        wiring="hyper-connections",
        also=("hc",),
    )
