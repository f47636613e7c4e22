"""Pre-LN: x ← x + f(LN(x)), and a norm after each stack. Xiong et al. 2020; the baseline of DeepNet Table 1.

X. Liu et al. 2020 print f(x + LN(x)), a slip. What cross-attention reads is the encoder's output after its final norm,
and is not normed again.
"""

from __future__ import annotations

from stabkit.methods.base import BASELINE, Method


def method() -> Method:
    """x ← x + f(LN(x))."""
    return Method(
        key="pre-ln",
        label="Pre-LN",
        source="Xiong et al. 2020; DeepNet Table 1",
        norm_in=lambda site: "norm",
        norm_out=lambda site: "",
        final=lambda stack: "norm",
        recipe=BASELINE,
    )
