"""DS-Init: Post-LN whose layer l starts √l times smaller, so that higher layers shrink. Zhang et al. 2019, §4.

    W^l ~ U(−γ·a/√l, γ·a/√l), γ the Xavier bound, a = 1, l the layer in its stack from 1, for every matrix of the layer

`power="0.25"` is the released code: its initialiser takes the factor 1/√l for the variance, so that the bound shrinks
as l^(−1/4) alone. The paper's other part, merged attention, is another architecture and not here, nor in DeepNet's row.
"""

from __future__ import annotations

from typing import Literal

from stabkit.methods.base import BASELINE, Method, Role, Site


def method(power: Literal["0.5", "0.25"] = "0.5") -> Method:
    """x ← LN(x + f(x)), weights of layer l divided by √l."""

    def gain(site: Site, role: Role) -> float:
        return 1.0 if role == "embedding" else site.layer ** -float(power)

    return Method(
        key="ds-init",
        label="DS-Init",
        source="Zhang et al. 2019 §4",
        constants=f"every matrix of layer l × l^(−{power})",
        gain=gain,
        assumes=("LayerNorm", "ReLU"),
        recipe=BASELINE,
    )
