"""mHC: hyper-connections whose mixing has rows and columns of sum one. Xie et al. 2025 (arXiv 2512.24880), eq. 5 to 9.

    X ← R·X + q ⊗ f(N(p·X)), p = σ(·), q = 2σ(·), R = Sinkhorn(exp(·)) of α·W·X/rms(X) + b;   output N(Σ X)

The paper does not say where b starts, and the public implementations differ:

    uniform     b = 0: R = ¼ everywhere, p = ½, q = 1
                                                              (Megatron-LM, core/transformer/hyper_connection.py)
    identity    R = I, p = ¼, q from 0.9 to 1.1               (SkyRL, skyrl/tx/layers/connectors.py)
    static      R = 0.475 and 0.175, q = 1.46, p = 0.73 of one stream and ½ of the others
                                                              (lucidrains/hyper-connections, mHCv2.py)

Further differences of theirs are not taken over: lucidrains maps each stream by itself, SkyRL norms each stream by the
sub-layer's own norm first, Megatron-LM ends with the mean. As there, a sum of Sinkhorn's counts as 10⁻⁶ at least.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from stabkit.methods.base import Method
from stabkit.methods.wirings import Wiring

Start = Literal["uniform", "identity", "static"]
WIRING: Mapping[Start, Wiring] = {
    "uniform": "doubly stochastic, from 1/n",
    "identity": "doubly stochastic, from I",
    "static": "doubly stochastic, from logits I",
}
CONSTANTS: Mapping[Start, str] = {
    "uniform": "n = 4; R = ¼, p = ½, q = 1 at first, W by Xavier, α = 0.01; 20 rounds of Sinkhorn",
    "identity": "n = 4; R = I, p = ¼, q from 0.9 to 1.1 at first, W = 0, α = 1; 20 rounds of Sinkhorn",
    "static": "n = 4; R = 0.475 and 0.175, p = 0.73 and ½, q = 1.46 at first, W = 0, α = 0.01; 20 rounds of Sinkhorn",
}
SOURCES: Mapping[Start, str] = {"uniform": "Megatron-LM", "identity": "SkyRL", "static": "lucidrains"}


def method(start: Start = "uniform") -> Method:
    """X ← R·X + q ⊗ f(N(p·X)), R doubly stochastic."""
    return Method(
        key="mhc",
        label="mHC",
        source=f"Xie et al. 2025 (2512.24880) eq. 5–9; start: {SOURCES[start]}",
        constants=CONSTANTS[start],
        norm_in=lambda site: "norm",
        norm_out=lambda site: "",
        final=lambda stack: "norm",
        wiring=WIRING[start],
        also=("manifold-constrained-hyper-connections",),
    )
