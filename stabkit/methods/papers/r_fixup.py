"""R-Fixup: Fixup for Transformers, no norms; every branch starts at zero. Zhang, Dauphin & Ma 2019.

With L = 2N + 3M residual branches (`Site.branches`):

    W₁ × L^(−1/2), W₂ = 0;   W_Q, W_K, W_V × L^(−1/6), W_O = 0

(m = 2 maps in a feed-forward, m = 4 in attention: L^(−1/(2m−2)); the author counts Q, K, V and O.) No biases in the
maps; one trained number added before each branch, before ReLU and before W₂, one trained factor at each branch's end;
s·(x + b) after the encoder, x + b after the decoder. The output projection is the embedding here, so that it cannot
start at zero. Cross-attention counts like the others (a released version leaves it at 12 layers' gain).
"""

from __future__ import annotations

from stabkit.methods.base import NO_LN, Method, Place, Role, Scale, Site
from stabkit.methods.parts import Part


def method() -> Method:
    """x ← x + s·f(x + b), W₂ = W_O = 0."""

    def gain(site: Site, role: Role) -> float:
        if role in ("out", "down"):
            return 0.0
        powers: dict[Role, float] = {"embedding": 0.0, "gate": 0.0, "up": -1 / 2}
        return float(site.branches ** powers.get(role, -1 / 6))

    def inner(site: Site, place: Place) -> Part:
        return "shift" if place == "first" or (site.kind == "ffn" and place != "end") else ""

    unit = Scale(trainable=True)
    return Method(
        key="r-fixup",
        label="R-Fixup",
        source="Zhang, Dauphin & Ma 2019",
        constants="W₁ × L^(−1/2), W_Q, W_K, W_V × L^(−1/6), W₂ = W_O = 0, L = 2N + 3M branches; γ = s, 1 at first",
        gamma=lambda site: unit,
        gain=gain,
        norm_out=lambda site: "",
        inner=inner,
        final=lambda stack: "scale shift" if stack == "encoder" else "shift",
        bias=lambda site: False,
        assumes=("ReLU",),
        recipe=NO_LN,
    )
