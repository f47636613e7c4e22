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
        "matrices that are normalised after every update, which no slot can request from the optimiser",
        "Loshchilov et al. 2024, arXiv 2410.01131",
    ),
}
"""By key, in the order in which they are told."""
