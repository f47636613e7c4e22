"""GPT-2's scaled initialisation: Pre-LN whose output maps are drawn √(2N) times smaller. Radford et al. 2019, §2.3.

    x ← x + f(N(x)); at the end N(x);   W_O, W₂ × 1/√(2N)

2N is the number of sub-layers of the stack, "residual layers" in the report: N branches of one size make a stream that
is √N times as long, and the factor takes that back at the first step.
The other weights stay at the comparison's base initialisation (GPT-2: N(0, 0.02²) for all; nanoGPT's model.py).
"""

from __future__ import annotations

from stabkit.methods.base import Method, Role, Site


def method() -> Method:
    """x ← x + f(N(x)), output maps small."""

    def gain(site: Site, role: Role) -> float:
        return float(site.sublayers**-0.5) if role in ("out", "down") else 1.0

    return Method(
        key="gpt2-init",
        label="GPT-2 init",
        source="Radford et al. 2019 §2.3",
        constants="W_O, W₂ × 1/√L, L the sub-layers of the stack",
        gain=gain,
        norm_in=lambda site: "norm",
        norm_out=lambda site: "",
        final=lambda stack: "norm",
        also=("gpt2", "gpt-2"),
    )
