"""Blocks: what sub-layers are made of, whatever the method. A block is a name for settings of a model; each has an
option of its own too.

    classic   the papers': LayerNorm, ReLU, sinusoids added to the embedding, biases
    llama     RMSNorm, SwiGLU of as many weights, rotary positions, no biases (Touvron et al. 2023, §2.2)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, get_args

from stabkit.methods.base import Method, Place, Site
from stabkit.methods.parts import PARTS, Part
from stabkit.spec import Block, FfnKind, ModelConfig

BLOCKS: Mapping[Block, Mapping[str, Any]] = {
    "classic": {"norm": "layer", "ffn_kind": "relu", "positions": "sinusoidal", "qk_norm": False, "biases": True},
    "llama": {"norm": "rms", "ffn_kind": "swiglu", "positions": "rotary", "qk_norm": False, "biases": False},
}
"""Settings of `ModelConfig` by the block's name."""
ACTIVATIONS: Mapping[FfnKind, str] = {"relu": "ReLU", "swiglu": "SwiGLU"}


def name_of(config: ModelConfig) -> str:
    """`llama`; where a setting is another's `llama with LayerNorm`; the block that it is nearest to."""
    block = min(get_args(Block), key=lambda name: len(list(_apart(config, BLOCKS[name]))))
    others = list(_apart(config, BLOCKS[block]))
    return f"{block} with {', '.join(others)}" if others else block


def _apart(config: ModelConfig, block: Mapping[str, Any]) -> Iterator[str]:
    """What of a model is not this block's."""
    words = {
        "norm": PARTS[config.norm].words,
        "ffn_kind": ACTIVATIONS[config.ffn_kind],
        "positions": f"{config.positions} positions",
        "qk_norm": "q/k-norm" if config.qk_norm else "no q/k-norm",
        "biases": "biases" if config.biases else "no biases",
    }
    yield from (word for name, word in words.items() if getattr(config, name) != block[name])


def inner_width(config: ModelConfig) -> int:
    """Entries between the maps of a feed-forward: `ffn`, or two thirds of it where it is gated by a third map."""
    return round(2 * config.ffn / 3) if config.ffn_kind == "swiglu" else config.ffn


def biased(method: Method, site: Site, config: ModelConfig) -> bool:
    """Whether a sub-layer's maps have biases."""
    return config.biases and method.bias(site)


def inner(method: Method, site: Site, place: Place, config: ModelConfig) -> Part:
    """What stands at a place inside a branch: the method's, else the q/k-norm of the block."""
    return method.inner(site, place) or ("norm" if config.qk_norm and place in ("query", "key") else "")


def departs(assumes: Sequence[str], config: ModelConfig) -> str:
    """`its constants are derived for LayerNorm and ReLU, but the block has RMSNorm and SwiGLU`; "" where they are as
    assumed."""
    has: Mapping[str, str] = {"LayerNorm": PARTS[config.norm].words, "ReLU": ACTIVATIONS[config.ffn_kind]}
    other = [(assumed, has[assumed]) for assumed in assumes if has[assumed] != assumed]
    if not other:
        return ""
    derived, here = (" and ".join(words) for words in zip(*other, strict=True))
    return f"its constants are derived for {derived}, but the block has {here}"
