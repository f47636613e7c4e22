"""The residual of nanochat: every layer reads the embedding again, branches begin at zero, the middle is taken out.
karpathy/nanochat, nanochat/gpt.py, `GPT.init_weights` and `forward`.

    before layer i of N, from 0:   x ← λ_i·x + λ⁰_i·x₀,   λ_i = 1.15 − 0.10·i/(N − 1), λ⁰_i = 0.20 − 0.15·i/(N − 1)
    x ← x + f(N(x)), W_O = W₂ = 0;   at the end N(x − b·x_mid), b = 0.2, x_mid the state after layer ⌊N/2⌋

λ, λ⁰ and b are trained. A norm stands on the embedding too. Left out: the gate that mixes each token with the one
before it, the value embeddings, rates of their own for λ and b, the factor 0.4 on W₁.
"""

from __future__ import annotations

from stabkit.methods.base import Method


def method() -> Method:
    """x ← λ·x + λ⁰·x₀ before a layer, W_O = W₂ = 0, N(x − b·x_mid) at the end."""
    return Method(
        key="nanochat",
        label="nanochat",
        source="karpathy/nanochat gpt.py",
        constants="λ from 1.15 to 1.05, λ⁰ from 0.20 to 0.05, b = 0.2 at first; W_O = W₂ = 0",
        gain=lambda site, role: 0.0 if role in ("out", "down") else 1.0,
        norm_in=lambda site: "norm",
        norm_out=lambda site: "",
        embedding=lambda stack: "norm",
        final=lambda stack: "norm",
        wiring="from the start",
        also=("x0-lambda",),
    )
