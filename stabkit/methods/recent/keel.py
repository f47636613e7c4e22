"""Keel: Post-LN whose shortcut is multiplied by the number of sub-layers, with a norm before the branch too. Chen & Wei
2026 (arXiv 2601.19895), eq. 8 and §3.1.

    x ← N(L·x + f(N(x))), L the sub-layers of the stack;   the first layer: attention x ← x + f(N(x)), no norm after it,
                                                           feed-forward x ← N(x + f(N(x))), both without L

The paper calls sub-layers layers (footnote 1): its 64 layers are 32 of attention and feed-forward. With ω = L the
product of what the norms do to the gradient along the shortcut, (1 + 1/L²)^(−L/2), goes to 1; Post-LN's is 2^(−L/2)
(eq. 15, 19). Its norms are RMSNorms without a bias; here they are the comparison's. The last norm is the last
sub-layer's own.
"""

from __future__ import annotations

from typing import Literal

from stabkit.methods.base import ONE, Method, Scale, Site


def method(alpha: Literal["paper", "one"] = "paper") -> Method:
    """x ← N(L·x + f(N(x))), the first layer near Pre-LN's."""

    def omega(site: Site) -> Scale:
        return ONE if site.layer == 1 or alpha == "one" else Scale(init=float(site.sublayers))

    return Method(
        key="keel",
        label="Keel",
        source="Chen & Wei 2026 eq. 8, §3.1",
        constants="ω = L, the sub-layers of the stack, from layer 2 on" if alpha == "paper" else "",
        omega=omega,
        norm_in=lambda site: "norm",
        norm_out=lambda site: "" if site.index == 1 else "norm",
    )
