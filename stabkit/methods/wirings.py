"""Where layers read and what they add to: the wirings by name, their formulas, streams and cost.

    chain                  a layer reads the one before it
    history, normed        x_{l+1} = Σ_{k≤l} W_k^{l+1}·N_k(y_k), the embedding y₀ not normed      (DLCL, pre-norm)
    history, norm after    x_{l+1} = N(Σ_{k≤l} W_k^{l+1}·y_k), the first, W₀·y₀, not normed       (DLCL, post-norm)
    two streams            the chain, and beside it s ← s + γ·f, s₀ = x₀; at the end x + N(s)     (ResiDual)
    siamese streams        x ← N(x), reads x + N(y); x ← x + γ·f/√(2l), y ← y + γ·f               (SiameseNorm)
    shrunk chain           the chain, after every sub-layer x ← x − SiLU(α_l)·[x]                 (GPAS)
    from the start         a layer reads λ_l·x + λ⁰_l·x₀; at the end x − b·x_{N/2}                (nanochat)
    attention over depth   reads Σ_i a_i·v_i of what all before added, a by softmax               (Attention Residuals)
    attention over blocks  the same over at most eight sums of it                                 (its block form)
    hyper-connections      n streams, X ← R·X + q ⊗ γ·f, reads p·X, all trained                   (HC)
    doubly stochastic, …   the same, R with rows and columns of sum 1; by where it starts         (mHC)

The modules are `model/wirings`'. A method from a file may bring a `Wired` of its own, with its module.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from stabkit.methods.parts import Part

Wiring = Literal[
    "chain",
    "history, normed",
    "history, norm after",
    "two streams",
    "siamese streams",
    "shrunk chain",
    "from the start",
    "attention over depth",
    "attention over blocks",
    "hyper-connections",
    "doubly stochastic, from 1/n",
    "doubly stochastic, from I",
    "doubly stochastic, from logits I",
]


@dataclass(frozen=True, kw_only=True, slots=True)
class Shape:
    """Of a stack: what a wiring's cost depends on."""

    layers: int
    sublayers: int
    width: int
    norm: int
    """Trained numbers of one norm."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Wired:
    """One wiring: what it says, the names of its streams, and what it costs."""

    formula: str
    """What it adds to the residual's; {N} in the place of a norm around what follows in brackets. "" for the chain."""
    replaces: bool = False
    """Whether the formula stands in the place of the residual's; f⟨u⟩ in it is a branch that reads u."""
    parameters: Callable[[Shape], int]
    """Trained numbers of a stack."""
    followed: bool = False
    """Whether `audit` finds it in a user's model."""
    end: Part | None = None
    """What a stack's output passes last, before what the method puts after the stack; None: what its last sub-layer
    has. "" where the sum of several things leaves it."""
    streams: tuple[str, ...] = ("",)
    """One state passes from sub-layer to sub-layer, or several; the first is the one that branches read, or the mean of
    those, and is named by the site alone."""
    work: float = 0.0
    """What it costs beside the sub-layers, each pass, in what a sub-layer's pass costs beside its products: measured at
    50 layers of 64-128-2 (`running/cost.py`)."""
    states: int = 0
    """Vectors of a token that a backward pass needs beside the sub-layer's own, a sub-layer: for its memory."""
    module: Callable[..., Any] | None = None
    """(sub-layers of the stack, the comparison's norm) → a `model.wirings.base.ChainWiring`, of a wiring from a file of
    one's own; None of those here."""


def _triangle(stack: Shape) -> int:
    """(N + 1)(N + 2)/2 weights, and a norm a layer."""
    return (stack.layers + 1) * (stack.layers + 2) // 2 + stack.layers * stack.norm


STREAMS = 4
"""n of hyper-connections: both papers'."""


def _free(stack: Shape) -> int:
    """A: n(n + 1), B: n, W: d(n + 1), w: d, two factors, a norm."""
    n, d = STREAMS, stack.width
    return stack.sublayers * (n * (n + 1) + n + d * (n + 1) + d + 2 + stack.norm)


def _constrained(stack: Shape) -> int:
    """W: nd·(n² + 2n), b: n² + 2n, three factors."""
    n, d = STREAMS, stack.width
    return stack.sublayers * ((n * d + 1) * (n * n + 2 * n) + 3)


def _queries(stack: Shape) -> int:
    return stack.sublayers * stack.width


_MIXED = "X ← R·X + q ⊗ f⟨p·X⟩, X four streams"

WIRINGS: Mapping[Wiring, Wired] = {
    "chain": Wired(formula="", parameters=lambda stack: 0, followed=True),
    "history, normed": Wired(
        formula="x_{l+1} = Σ_{k≤l} W_k·{N}(y_k), y₀ bare, W trained, 1/(l+1) at first",
        parameters=_triangle,
        followed=True,
        end="",
    ),
    "history, norm after": Wired(
        formula="x_{l+1} = {N}(Σ_{k≤l} W_k·y_k), x₁ bare, W trained, 1/(l+1) at first",
        parameters=_triangle,
        followed=True,
        end="norm",
    ),
    "two streams": Wired(
        formula="s ← s + γ·f, s₀ = x₀; output x + {N}(s)",
        work=1.0,
        parameters=lambda stack: stack.norm,
        end="",
        streams=("", "sum"),
    ),
    "siamese streams": Wired(
        formula="x ← {N}(x), z = f⟨x + {N}(y)⟩, x ← x + z/√(2l), y ← y + z, y₀ = x₀; output {N}(x) + {N}(y)",
        replaces=True,
        work=3.0,
        states=6,
        parameters=lambda stack: 2 * (stack.sublayers + 1) * stack.norm,
        end="",
        streams=("", "y"),
    ),
    "shrunk chain": Wired(
        formula="then x ← x − SiLU(α_l)·[x], [x] without gradient, α_l trained, 0 at first",
        work=1.5,
        parameters=lambda stack: stack.layers,
        end="",
    ),
    "from the start": Wired(
        formula="a layer reads λ_l·x + λ⁰_l·x₀, trained, from 1.15 to 1.05 and from 0.2 to 0.05 at first; output "
        "x − b·x_{N/2}, b trained, 0.2 at first",
        work=1.5,
        parameters=lambda stack: 2 * stack.layers + 1,
        end="",
    ),
    "attention over depth": Wired(
        formula="v_i = f⟨h_i⟩, h_i = Σ_{k<i} a_k·v_k, v₀ = x₀, a = softmax_k(w_i·v_k/rms(v_k)), w_i trained, 0 at "
        "first; output h",
        replaces=True,
        work=5.0,
        states=8,
        parameters=_queries,
        end="",
    ),
    "attention over blocks": Wired(
        formula="v_i = f⟨h_i⟩, h_i = Σ_k a_k·s_k, s₀ = x₀, s_k the sums of v in up to eight runs of layers, a = "
        "softmax_k(w_i·s_k/rms(s_k)), w_i trained, 0 at first; output h",
        replaces=True,
        work=2.0,
        states=8,
        parameters=_queries,
        end="",
    ),
    "hyper-connections": Wired(
        formula=f"{_MIXED}, p, q, R = trained + s·tanh({{N}}(X)·W); output Σ X",
        replaces=True,
        work=7.5,
        parameters=_free,
        end="",
        states=20,
    ),
    **{
        name: Wired(  # type: ignore[misc]  # the three names are Wiring's
            formula=f"{_MIXED}, p = σ, q = 2σ, R = Sinkhorn of α·W·X/rms(X) + b; {start}; output Σ X",
            replaces=True,
            work=8.0,
            parameters=_constrained,
            end="",
            states=20,
        )
        for name, start in {
            "doubly stochastic, from 1/n": "R = ¼ at first",
            "doubly stochastic, from I": "R = I at first",
            "doubly stochastic, from logits I": "R = 0.475 and 0.175 at first",
        }.items()
    },
}


def wired(wiring: Wiring | Wired) -> Wired:
    """The wiring of this name, or itself."""
    return wiring if isinstance(wiring, Wired) else WIRINGS[wiring]


def named(wiring: Wiring | Wired) -> str:
    """Its name."""
    return "its own" if isinstance(wiring, Wired) else wiring
