"""What a method is: a frozen value whose slots say how residuals join, what stands where and how weights are drawn.

The residual of every sub-layer of every method:

    y = N_out( ω·x + γ·N_branch( G( κ·N_in(x) ) ) )

    G(u) = I_end( W₂·I_last( φ( I_mid( W₁·I_first(u) ) ) ) )        feed-forward
    G(u) = I_end( W_O·I_last( attention( I_first(u), memory ) ) )   attention; in cross-attention of the query alone

In a block whose feed-forward is gated, φ(I_mid(W₁·u)) is SiLU(I_mid(W_g·u)) ⊙ W₁·u. W_g is a role of its own: where
constants are of W₁ and W₂ it stays as it is drawn, as W_Q and W_K do, which weigh and carry nothing either. At `query`,
`key` and `value` stands what is applied to these before the scores, to each head or across all. Where a layer reads is
its stack's wiring (`wirings.py`); before a stack stands what `embedding` says, after it what `final` says. What may
stand somewhere is a part (`parts.py`). An unfilled slot is the identity, or 1.

Paper symbol ↔ code name: ω and α `omega`, γ `gamma`, κ `kappa`, β `gain`, N and M `depth` of the encoder and of the
decoder, l `layer` (from 1), i `index` of the sub-layer in its stack (from 1), d `width`.

Nothing here imports torch; a method that profiles does so inside its `calibrate`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, Protocol

from stabkit.methods.parts import Part
from stabkit.methods.wirings import Wired, Wiring
from stabkit.spec import BaseInit, Optimizer
from stabkit.tasks.base import Batch

Stack = Literal["encoder", "decoder"]
Kind = Literal["self", "cross", "ffn"]
Role = Literal["query", "key", "value", "out", "up", "gate", "down", "embedding", "head"]
"""What a weight does: W_Q, W_K, W_V, W_O of attention; W₁ (`up`) and W₂ (`down`) of the feed-forward; W_g (`gate`) of
either, where there is one; the rest."""
Known = Role | Literal["vector", "outer"]
"""What a number of a model is known as to an optimiser; "vector": biases, norms and scales of a sub-layer; "outer":
what stands before and after a stack, and the weights of its wiring."""
Place = Literal["first", "mid", "last", "end", "query", "key", "value"]
"""Inside a branch: before its first map, before φ, before its last map, after it; on q, k and v."""
PLACES: tuple[Place, ...] = ("first", "mid", "last", "end", "query", "key", "value")
HEADED: tuple[Place, ...] = ("query", "key", "value")
"""The places where a part reads a head's d/H entries, with one set of weights for all heads."""
Gate = Literal["", "head", "entry"]
"""What a sub-layer's attention is gated by: nothing, or σ(W_g·u) of what it reads, for each head or each entry."""
Group = Literal["Post-LN", "No-LN", "Pre-LN", "DeepNorm", "Dual"]
"""The row groups of DeepNet Table 1, in its order; then schemes of several streams."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Site:
    """One sub-layer's place: all that a slot may depend on. N = 0 is decoder-only, M = 0 encoder-only."""

    stack: Stack
    kind: Kind
    layer: int
    index: int
    encoder_layers: int
    decoder_layers: int
    width: int
    base: BaseInit = "xavier_normal"
    """The base initialisation that gains multiply; T-Fixup's depend on it."""

    @property
    def depth(self) -> int:
        """Layers in this stack: N for the encoder, M for the decoder."""
        return self.encoder_layers if self.stack == "encoder" else self.decoder_layers

    @property
    def sublayers(self) -> int:
        """Sub-layers in this stack: 2N in an encoder, 3M in a decoder (2M in a decoder without an encoder)."""
        return self.depth * (3 if self.stack == "decoder" and self.encoder_layers else 2)

    @property
    def branches(self) -> int:
        """Residual branches of the whole model: 2N + 3M (R-Fixup's L)."""
        return 2 * self.encoder_layers + self.decoder_layers * (3 if self.encoder_layers else 2)

    @property
    def name(self) -> str:
        """`decoder.3.cross`."""
        return f"{self.stack}.{self.layer}.{self.kind}"


@lru_cache(maxsize=256)  # asked for every run, record and slot; a page shows far fewer sizes
def sites(encoder_layers: int, decoder_layers: int, width: int, base: BaseInit = "xavier_normal") -> tuple[Site, ...]:
    """Every sub-layer in the order of the forward pass."""
    kinds: dict[Stack, tuple[Kind, ...]] = {
        "encoder": ("self", "ffn"),
        "decoder": ("self", "cross", "ffn") if encoder_layers else ("self", "ffn"),
    }
    depth: dict[Stack, int] = {"encoder": encoder_layers, "decoder": decoder_layers}
    return tuple(
        Site(
            stack=stack,
            kind=kind,
            layer=layer,
            index=(layer - 1) * len(kinds[stack]) + position,
            encoder_layers=encoder_layers,
            decoder_layers=decoder_layers,
            width=width,
            base=base,
        )
        for stack in kinds
        for layer in range(1, depth[stack] + 1)
        for position, kind in enumerate(kinds[stack], 1)
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class Scale:
    """ω or γ of one site: a number, or a vector of `width` equal numbers; trained or not; its own or its layer's."""

    init: float = 1.0
    vector: bool = False
    trainable: bool = False
    shared: Literal["site", "layer"] = "site"
    """`layer`: one trained parameter for all sub-layers of a layer."""


ONE = Scale()


class Profiled(Protocol):
    """What `calibrate` may ask of a model: the residual of every site, and one forward pass over a batch."""

    @property
    def residuals(self) -> Mapping[Site, Any]:
        """Torch modules: their input is x, their tap `branch` puts out γ·f(x), `set_omega` takes ω."""

    def read(self, batch: Batch) -> None:
        """One forward pass in training mode (dropout on), without a gradient; what hooks see of it is what counts."""


Calibrate = Callable[[Profiled, Batch], Mapping[str, float]]
"""A pass over data that returns {site name: ω}. It leaves the weights as they are."""


def _one(site: Site) -> Scale:
    return ONE


def _xavier(site: Site, role: Role) -> float:
    return 1.0


def _yes(site: Site) -> bool:
    return True


def _bare(site: Site) -> Part:
    return ""


def _normed(site: Site) -> Part:
    return "norm"


def _nothing(site: Site, place: Place) -> Part:
    return ""


def _ungated(site: Site) -> Gate:
    return ""


def _stack(stack: Stack) -> Part:
    return ""


def _defined(encoder_layers: int, decoder_layers: int) -> str:
    return ""


def _plain(site: Site) -> float:
    return 1.0


def _same(site: Site, role: Known) -> float:
    return 1.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Recipe:
    """How a method's own authors trained it, or DeepNet trained it as a baseline: `--recipe paper`."""

    source: str
    base_init: BaseInit = "fairseq_uniform"
    optimizer: Optimizer = "adam"
    lr: float
    warmup: int = 4000
    hold: int = 0
    """Updates at the full rate before the inverse-sqrt decay, where there is no warm-up."""


BASELINE = Recipe(source="DeepNet (first version), Appendix D.2", lr=1.5e-3)
"""What DeepNet trained its Post-LN and Pre-LN baselines with on WMT-17; all of them sit on fairseq's Transformer."""
NO_LN = Recipe(source="DeepNet (first version), Appendix D.2: No-LN", lr=5e-4)

Assumed = Literal["LayerNorm", "ReLU"]
"""What the derivation of a method's constants takes for granted of the block around them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Method:
    """A residual/normalisation/initialisation scheme. An unfilled slot is Post-LN's: LN after the sum, all scales 1.

    The residual's formula is made from the slots (`formula.py`), so that none is written here.
    """

    key: str
    label: str
    source: str
    """Paper and equation or section."""
    constants: str = ""
    """Its scales and gains in the author's words and the paper's symbols; "" where all are 1."""
    group: Group | None = None
    """The row group of DeepNet Table 1; None: what its norms say (`groups.py`)."""
    omega: Callable[[Site], Scale] = _one
    gamma: Callable[[Site], Scale] = _one
    gain: Callable[[Site, Role], float] = _xavier
    """β: what the base initialisation of this role's weight is multiplied by; the first site decides `embedding`."""
    kappa: Callable[[Site], float] = _plain
    """κ: what enters the branch is multiplied by, after its norm; a fixed number."""
    norm_in: Callable[[Site], Part] = _bare
    norm_branch: Callable[[Site], Part] = _bare
    norm_out: Callable[[Site], Part] = _normed
    inner: Callable[[Site, Place], Part] = _nothing
    embedding: Callable[[Stack], Part] = _stack
    """What a stack's embedded tokens, positions included, pass before its first layer."""
    final: Callable[[Stack], Part] = _stack
    wiring: Wiring | Wired = "chain"
    rate: Callable[[Site, Known], float] = _same
    """What the learning rate of this role's weights is multiplied by, whatever the recipe (depth-μP, CompleteP): a
    comparison at one rate is at one base rate. The first site decides `embedding` and `head`, the last of its stack
    `outer`."""
    epsilon: Callable[[Site, Known], float] = _same
    """What Adam's ε is multiplied by, likewise."""
    gate: Callable[[Site], Gate] = _ungated
    """Of attention: W_O·(σ(W_g·u) ⊙ heads(u)), before what stands at `last`; W_g has no bias, and the role `gate`."""
    value_residual: bool = False
    """Whether self-attention takes the mean of its own values and those of the first layer of its stack."""
    bias: Callable[[Site], bool] = _yes
    """Whether this sub-layer's linear maps have biases, in a block that has any."""
    calibrate: Calibrate | None = None
    undefined: Callable[[int, int], str] = _defined
    """(N, M) → why its papers give no such model, with the source; "" where they do."""
    assumes: tuple[Assumed, ...] = ()
    """What its constants were derived for, where a block may have something else."""
    recipe: Recipe | None = None
    """None: it is not known how its authors trained it, so that `--recipe paper` refuses it."""
    also: tuple[str, ...] = ()
    """Other names that it goes by, as people type them."""

    @property
    def scaled(self) -> bool:
        """Whether rate or ε differ by role or depth."""
        return (self.rate, self.epsilon) != (_same, _same)


def defined(method: Method, layers: int) -> tuple[int, int]:
    """(N, M) of so many layers: both stacks, or the first of encoder and decoder alone where the method has no both."""
    shapes = ((layers, layers), (layers, 0), (0, layers))
    return next((depth for depth in shapes if not method.undefined(*depth)), shapes[0])
