"""What may stand at a place of a model: a part by name, how formulas write it, and the parameters that it costs.

    norm          whatever norm the comparison is made with: LayerNorm, unless `--norm` or `--block` says another
    layer         LayerNorm: γ ⊙ (x − mean)/√(var + ε) + β                             (Ba et al. 2016)
    rms           RMSNorm: γ ⊙ x/√(mean(x²) + ε)                                       (Zhang & Sennrich 2019, eq. 4)
    dyt, dyt 1    DyT: γ ⊙ tanh(α·x) + β, α one trained number, 0.5 or 1 at first      (Zhu et al. 2025, §4, Table 11)
    derf          Derf: γ ⊙ erf(α·x + s) + β, α 0.5 and s 0 at first, one number each  (Chen et al. 2025, §4)
    shift         x + b, b one trained number, 0 at first                              (R-Fixup)
    scale shift   s·(x + b), s one trained number, 1 at first                          (R-Fixup, after the encoder)
    rms across heads   RMSNorm over the entries of all heads at once, of q or k                (OLMo 2, §3.3)
    heads         γ_h·x_h, a trained factor, 1 at first, for each head's d/H entries   (NormFormer)

Every slot that says what stands somewhere takes one of these names, "" for nothing. The modules are `model/part.py`'s;
a contract test holds both tables together, and what they count.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from stabkit.spec import Norm

Part = Literal["", "norm", "layer", "rms", "dyt", "dyt 1", "derf", "shift", "scale shift", "heads", "rms across heads"]


@dataclass(frozen=True, kw_only=True, slots=True)
class PartKind:
    """One part: its words, how formulas write it, and what it costs."""

    words: str
    function: str = ""
    """`LN`, of a part that is written as a function of what it reads."""
    formula: str = ""
    """Of any other, with {} in the place of a factor: `γ_h·{}`."""
    parameters: Callable[[int, int], int]
    """(entries of the vectors there, heads) → trained numbers."""
    normalises: bool = False
    """Whether the length of what leaves it is fixed by its own weights, however long what enters is."""


PARTS: Mapping[Part, PartKind] = {
    "layer": PartKind(words="LayerNorm", function="LN", parameters=lambda size, heads: 2 * size, normalises=True),
    "rms": PartKind(words="RMSNorm", function="RMSNorm", parameters=lambda size, heads: size, normalises=True),
    "dyt": PartKind(words="DyT", function="DyT", parameters=lambda size, heads: 2 * size + 1),
    "dyt 1": PartKind(words="DyT of α = 1", function="DyT", parameters=lambda size, heads: 2 * size + 1),
    "derf": PartKind(words="Derf", function="Derf", parameters=lambda size, heads: 2 * size + 2),
    "shift": PartKind(words="shift", formula="{} + b", parameters=lambda size, heads: 1),
    "scale shift": PartKind(words="scale and shift", formula="s·({} + b)", parameters=lambda size, heads: 2),
    "heads": PartKind(words="one factor per head", formula="γ_h·{}", parameters=lambda size, heads: heads),
    "rms across heads": PartKind(
        words="RMSNorm across heads",
        function="RMSNorm_H",
        parameters=lambda size, heads: size * heads,
        normalises=True,
    ),
}


def resolved(part: Part, norm: Norm) -> Part:
    """The part that is built where the comparison's norm is `norm`."""
    return norm if part == "norm" else part


def kind(part: Part, norm: Norm) -> PartKind:
    """What stands there; raises KeyError for nothing."""
    return PARTS[resolved(part, norm)]


def cost(part: Part, norm: Norm, size: int, heads: int) -> int:
    """Trained numbers of a part that reads vectors of `size` entries; 0 for nothing."""
    return kind(part, norm).parameters(size, heads) if part else 0


def normalises(part: Part, norm: Norm) -> bool:
    """Whether what stands there gives its output a length of its own."""
    return bool(part) and kind(part, norm).normalises
