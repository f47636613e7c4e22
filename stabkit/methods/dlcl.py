"""DLCL: each layer reads a learned combination of all layers before it. Wang et al. 2019, §3.

    norm="pre"   x_{l+1} = Σ_{k≤l} W_k^{l+1}·LN_k(y_k), Pre-LN layers, LN after each stack; the embedding y₀ unnormed
    norm="post"  x_{l+1} = LN(Σ_{k≤l} W_k^{l+1}·y_k), Post-LN layers; the first, W₀·y₀, not normed (released code)

W is lower-triangular with (N+1)(N+2)/2 trained numbers in each stack, row averages 1/(l+1) at first.
"""

from __future__ import annotations

from typing import Literal

from stabkit.methods.base import BASELINE, Final, Method, Recipe, Stack


def method(norm: Literal["pre", "post"] = "pre") -> Method:
    """x_{l+1} = Σ_k W_k·LN_k(y_k)."""
    pre = norm == "pre"

    def final(stack: Stack) -> Final:
        return "norm" if pre else ""

    return Method(
        key="dlcl",
        label="DLCL",
        source="Wang et al. 2019 §3",
        formula="x_{l+1} = Σ_k W_k·LN_k(y_k), W_k = 1/(l+1) at first; layers and final LN as Pre-LN"
        if pre
        else "x_{l+1} = LN(Σ_k W_k·y_k), W_k = 1/(l+1) at first; layers as Post-LN",
        group="Pre-LN" if pre else "Post-LN",
        norm_in=lambda site: pre,
        norm_out=lambda site: not pre,
        final=final,
        wiring="history, normed" if pre else "history, norm after",
        recipe=Recipe(source="Wang et al. 2019 §4", base_init=BASELINE.base_init, lr=2e-3, warmup=16_000),
    )
