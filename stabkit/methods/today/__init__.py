"""Methods of after 2022, and older ones that people use today: one paper a file. What is not here yet, and why: OUT."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Out(NamedTuple):
    """A scheme that is not here: what it does, and what a method would need to say it."""

    label: str
    formula: str
    needs: str
    source: str


OUT: Mapping[str, Out] = {
    "ngpt": Out(
        "nGPT",
        "h ← norm(h + α ⊙ (norm(f(h)) − h)), α a trained vector, 0.05 at first",
        "matrices that are normed again after every update, which no slot can ask of the optimiser",
        "Loshchilov et al. 2024, arXiv 2410.01131",
    ),
    "hyper-connections": Out(
        "hyper-connections",
        "h₀ = A_mᵀ·H, H ← A_rᵀ·H + Bᵀ·f(h₀), H of n streams, A_m, A_r and B trained",
        "a wiring of n streams whose mixing is trained, and that makes what a branch reads out of all of them",
        "Zhu et al. 2024, arXiv 2409.19606",
    ),
    "siamesenorm": Out(
        "SiameseNorm",
        "x ← N(x), z = f(N(x + N(y))), x ← x + z/√(2l), y ← y + z; output N(N(x) + N(y))",
        "a wiring that reads the shortcut and the branch's input apart, from two streams",
        "arXiv 2602.08064",
    ),
    "value-residual": Out(
        "value residual",
        "V_l ← (V_l + V₁)/2 before the attention of every layer but the first",
        "a slot that hands one layer's values to the attention of all others",
        "Zhou et al. 2024, arXiv 2410.17897",
    ),
}
"""By key, in the order in which they are told."""
