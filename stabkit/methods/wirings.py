"""Where layers read and what they add to: the wirings by name, their formulas, streams and cost.

    chain                 a layer reads the one before it
    history, normed       x_{l+1} = Σ_{k≤l} W_k^{l+1}·N_k(y_k), the embedding y₀ not normed      (DLCL, pre-norm)
    history, norm after   x_{l+1} = N(Σ_{k≤l} W_k^{l+1}·y_k), the first, W₀·y₀, not normed       (DLCL, post-norm)
    two streams           the chain, and beside it s ← s + γ·f, s₀ = x₀; at the end x + N(s)     (ResiDual)

The modules are `model/wiring.py`'s.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from stabkit.methods.parts import Part

Wiring = Literal["chain", "history, normed", "history, norm after", "two streams"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Wired:
    """One wiring: what it says, the names of its streams, and what it costs."""

    formula: str
    """What it adds to the residual's; {N} in the place of a norm around what follows in brackets. "" for the chain."""
    parameters: Callable[[int, int], int]
    """(layers of the stack, trained numbers of one norm) → trained numbers."""
    history: bool = False
    """Whether a layer reads a combination of all before it."""
    end: Part | None = None
    """What a stack's output passes last, before what the method puts after the stack; None: what its last sub-layer
    has. "" where the sum of several things leaves it."""
    streams: tuple[str, ...] = ("",)
    """One state passes from sub-layer to sub-layer, or several; the first is the one that branches read, and is named
    by the site alone."""


def _triangle(layers: int, norm: int) -> int:
    """(N + 1)(N + 2)/2 weights, and a norm a layer."""
    return (layers + 1) * (layers + 2) // 2 + layers * norm


WIRINGS: Mapping[Wiring, Wired] = {
    "chain": Wired(formula="", parameters=lambda layers, norm: 0),
    "history, normed": Wired(
        formula="x_{l+1} = Σ_{k≤l} W_k·{N}(y_k), y₀ bare, W trained, 1/(l+1) at first",
        parameters=_triangle,
        history=True,
        end="",
    ),
    "history, norm after": Wired(
        formula="x_{l+1} = {N}(Σ_{k≤l} W_k·y_k), x₁ bare, W trained, 1/(l+1) at first",
        parameters=_triangle,
        history=True,
        end="norm",
    ),
    "two streams": Wired(
        formula="s ← s + γ·f, s₀ = x₀; output x + {N}(s)",
        parameters=lambda layers, norm: norm,
        end="",
        streams=("", "sum"),
    ),
}
