"""What a method is: a frozen value whose slots say how residuals join, where norms stand and how weights are drawn.

The residual of every sub-layer of every method:

    y = N_out( ω·x + γ·N_branch( G( N_in(x) ) ) )

Paper symbol ↔ code name: ω and α `omega`, γ `gamma`, β `gain`, N and M `depth` of the encoder and of the decoder,
l `layer` (from 1), i `index` of the sub-layer in its stack (from 1), d `width`.

Nothing here imports torch; a method that profiles does so inside its `calibrate`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from stabkit.model.transformer import Transformer
    from stabkit.tasks.base import Batch

Stack = Literal["encoder", "decoder"]
Kind = Literal["self", "cross", "ffn"]
Role = Literal["query", "key", "value", "out", "up", "down", "embedding", "head"]
"""What a weight does: W_Q, W_K, W_V, W_O of attention; W₁ (`up`) and W₂ (`down`) of the feed-forward; the rest."""


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

    @property
    def depth(self) -> int:
        """Layers in this stack: N for the encoder, M for the decoder."""
        return self.encoder_layers if self.stack == "encoder" else self.decoder_layers

    @property
    def sublayers(self) -> int:
        """Sub-layers in this stack: 2N in an encoder, 3M in a decoder (2M in a decoder without an encoder)."""
        return self.depth * (3 if self.stack == "decoder" and self.encoder_layers else 2)

    @property
    def name(self) -> str:
        """`decoder.3.cross`."""
        return f"{self.stack}.{self.layer}.{self.kind}"


def sites(encoder_layers: int, decoder_layers: int, width: int) -> tuple[Site, ...]:
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
        )
        for stack in kinds
        for layer in range(1, depth[stack] + 1)
        for position, kind in enumerate(kinds[stack], 1)
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class Scale:
    """ω or γ of one site: a number, or a vector of `width` equal numbers; trained or not."""

    init: float = 1.0
    vector: bool = False
    trainable: bool = False


ONE = Scale()

Calibrate = Callable[["Transformer", "Batch"], Mapping[str, float]]
"""A pass over data that returns {site name: ω}. It leaves the weights as they are."""


def _one(site: Site) -> Scale:
    return ONE


def _xavier(site: Site, role: Role) -> float:
    return 1.0


def _yes(site: Site) -> bool:
    return True


def _no(site: Site) -> bool:
    return False


def _no_stack(stack: Stack) -> bool:
    return False


@dataclass(frozen=True, kw_only=True, slots=True)
class Method:
    """A residual/normalisation/initialisation scheme. An unfilled slot is Post-LN's: LN after the sum, all scales 1."""

    key: str
    label: str
    source: str
    """Paper and equation or section."""
    formula: str
    """The residual and the initialisation in one line, in the paper's symbols."""
    group: Literal["Post-LN", "Pre-LN", "No-LN"] = "Post-LN"
    """The row group of DeepNet Table 1."""
    omega: Callable[[Site], Scale] = _one
    gamma: Callable[[Site], Scale] = _one
    gain: Callable[[Site, Role], float] = _xavier
    """β: what the base initialisation of this role's weight is multiplied by."""
    norm_in: Callable[[Site], bool] = _no
    norm_branch: Callable[[Site], bool] = _no
    norm_out: Callable[[Site], bool] = _yes
    norm_final: Callable[[Stack], bool] = _no_stack
    bias: Callable[[Site], bool] = _yes
    """Whether this sub-layer's linear maps have biases."""
    calibrate: Calibrate | None = None
