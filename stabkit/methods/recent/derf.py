"""Derf: Pre-LN with γ·erf(α·x + s) + β in the place of every norm. Chen et al. 2025 (arXiv 2512.10938), §4.

x ← x + f(Derf(x)); at the end Derf(x); Derf(x) = γ ⊙ erf(α·x + s) + β, α and s one trained number for each

α begins at 0.5 and s at 0 (the authors' code, ViT/dynamic_erf.py).
"""

from __future__ import annotations

from stabkit.methods.base import Method


def method() -> Method:
    """x ← x + f(Derf(x))."""
    return Method(
        key="derf",
        label="Derf",
        source="Chen et al. 2025 §4",
        constants="α = 0.5, s = 0 at first",
        norm_in=lambda site: "derf",
        norm_out=lambda site: "",
        final=lambda stack: "derf",
        also=("dynamic-erf",),
    )
