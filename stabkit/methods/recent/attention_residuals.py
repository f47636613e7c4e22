"""Attention Residuals: every sub-layer reads an attention over what all before it added. Kimi Team 2026 (arXiv
2603.15031), §3, and its block form, §3.2.

    v₀ = x₀, v_i = f_i(N(h_i)), h_i = Σ_{k<i} a_k·v_k, a = softmax_k(w_i·v_k/rms(v_k));   output N(h)

w_i is trained, 0 at first: every sub-layer begins by reading the mean. `form=block`: layers are parted into up to eight
runs, and the sums of v within a run are attended to, the unfinished run's among them.
"""

from __future__ import annotations

from typing import Literal

from stabkit.methods.base import Method


def method(form: Literal["full", "block"] = "full") -> Method:
    """h_i = Σ_k a_k·v_k, v_i = f_i(N(h_i))."""
    return Method(
        key="attention-residuals",
        label="Attention Residuals",
        source="Kimi Team 2026 §3",
        constants="w = 0 at first",
        norm_in=lambda site: "norm",
        norm_out=lambda site: "",
        final=lambda stack: "norm",
        wiring="attention over depth" if form == "full" else "attention over blocks",
        also=("attnres",),
    )
