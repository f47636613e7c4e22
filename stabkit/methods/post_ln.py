"""Post-LN: the original Transformer. x ← LN(x + f(x)), every weight at the base initialisation.

Vaswani et al. 2017; Wang et al. 2020 eq. 1 writes it per sub-layer. No norm after the last layer: the last sub-layer's
own is the last.
"""

from __future__ import annotations

from stabkit.methods.base import Method


def method() -> Method:
    """x ← LN(x + f(x))."""
    return Method(
        key="post-ln",
        label="Post-LN",
        source="Vaswani et al. 2017; DeepNet §2",
        formula="x ← LN(x + f(x))",
    )
