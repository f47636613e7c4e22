"""DLCL: each layer reads a learned combination of all layers before it. Wang et al. 2019, §3.

    norm="pre"   x_{l+1} = Σ_{k≤l} W_k^{l+1}·LN_k(y_k), Pre-LN layers, LN after each stack; the embedding y₀ unnormed
    norm="post"  x_{l+1} = LN(Σ_{k≤l} W_k^{l+1}·y_k), Post-LN layers; the first, W₀·y₀, not normed (released code)

W is lower-triangular with (N+1)(N+2)/2 trained numbers in each stack, row averages 1/(l+1) at first.
"""

from __future__ import annotations

from typing import Literal

from stabkit.methods.base import BASELINE, Method, Recipe


def method(norm: Literal["pre", "post"] = "pre") -> Method:
    """x_{l+1} = Σ_k W_k·LN_k(y_k)."""
    pre = norm == "pre"

    return Method(
        key="dlcl",
        label="DLCL",
        source="Wang et al. 2019 §3",
        norm_in=lambda site: "norm" if pre else "",
        norm_out=lambda site: "" if pre else "norm",
        final=lambda stack: "norm" if pre else "",
        wiring="history, normed" if pre else "history, norm after",
        recipe=Recipe(source="Wang et al. 2019 §4", base_init=BASELINE.base_init, lr=2e-3, warmup=16_000),
    )
