"""Sandwich-LN: Pre-LN with a second norm at the end of every branch. Ding et al. 2021 (CogView, arXiv 2105.13290),
§2.4.

    x ← x + N(f(N(x))); at the end N(x)

Checked in the authors' code (THUDM/CogView, mpu/sparse_transformer.py), which draws its output maps √(2N) times smaller
than the others, as GPT-2 does, and divides a norm's input by its largest entry over 8 so that half precision does not
overflow: neither is part of the scheme, and in float32 the second changes nothing but ε's place.
"""

from __future__ import annotations

from stabkit.methods.base import Method


def method() -> Method:
    """x ← x + N(f(N(x)))."""
    return Method(
        key="sandwich-ln",
        label="Sandwich-LN",
        source="Ding et al. 2021 §2.4",
        norm_in=lambda site: "norm",
        norm_branch=lambda site: "norm",
        norm_out=lambda site: "",
        final=lambda stack: "norm",
        also=("cogview",),
    )
