"""Depth-μP: Pre-LN whose branches and rates are divided by the root of the depth. Yang et al. 2023 (arXiv 2310.02244).

    x ← x + a·f(N(x))/√N; at the end N(x);   Adam's rate of what is inside the layers × a/√N

Table 1 and eq. 1: a branch multiplier a/√L, and Adam's rate η/√L for the weights of the blocks. a = √2, so that both
factors are 1 at CompleteP's base depth of 2 layers and the two schemes differ in the exponent alone; the paper's own
experiments begin at 8. Its theory has blocks of one map and no biases: it gives no rule for biases and norms, which
take the blocks' factor here, nor for Adam's ε. Of blocks as deep as a Transformer's it says itself that the best rate
moves with depth (§9).
"""

from __future__ import annotations

from stabkit.methods.base import Known, Method, Scale, Site
from stabkit.methods.recent.completep import multiple


def method() -> Method:
    """x ← x + f(N(x))/√m, rates likewise."""

    def rate(site: Site, role: Known) -> float:
        return 1.0 if role in ("outer", "embedding", "head") else multiple(site) ** -0.5

    return Method(
        key="depth-mup",
        label="Depth-μP",
        source="Yang et al. 2023 eq. 1, Table 1",
        constants="γ = √(2/N), N the layers of the stack; rate of the layers × √(2/N)",
        gamma=lambda site: Scale(init=multiple(site) ** -0.5),
        norm_in=lambda site: "norm",
        norm_out=lambda site: "",
        final=lambda stack: "norm",
        rate=rate,
        also=("depth-mu-p", "depthmup"),
    )
