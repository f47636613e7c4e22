"""Gated attention: Pre-LN whose attention is multiplied by a gate that its input opens. Qiu et al. 2025 (arXiv
2505.06708), §2, position G1; the authors' code, modeling_qwen3.py, `attn_output * sigmoid(gate_score)`.

x ← x + W_O·(σ(W_g·u) ⊙ heads(u)), u = N(x), in attention; x ← x + f(N(x)) in the feed-forward; at the end N(x)

`gate=head`: one number a head and token instead of one an entry. W_g reads what the queries are made of, and has no
bias.
"""

from __future__ import annotations

from typing import Literal

from stabkit.methods.base import Gate, Method


def method(gate: Literal["entry", "head"] = "entry") -> Method:
    """x ← x + W_O·(σ(W_g·u) ⊙ heads(u)), u = N(x)."""
    of: Gate = gate
    return Method(
        key="gated-attention",
        label="Gated attention",
        source="Qiu et al. 2025 §2",
        norm_in=lambda site: "norm",
        norm_out=lambda site: "",
        final=lambda stack: "norm",
        gate=lambda site: "" if site.kind == "ffn" else of,
        also=("gated-attn",),
    )
