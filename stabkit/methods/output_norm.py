"""Where lengths are set by a norm: after every sum, and at the output."""

from __future__ import annotations

from stabkit.methods.base import Method, sites
from stabkit.methods.parts import normalises
from stabkit.methods.wirings import wired
from stabkit.spec import ModelConfig


def sums_in_norm(method: Method, config: ModelConfig) -> bool:
    """Whether every residual sum enters a norm at once."""
    method_sites = sites(config.encoder_layers, config.decoder_layers, config.hidden, config.base_init)
    return all(normalises(method.norm_out(site), config.norm) for site in method_sites)


def in_norm(method: Method, config: ModelConfig) -> bool:
    """Whether the output is what a norm gives: of the method after the stack, else of its wiring, else of the last
    sub-layer."""
    last = sites(config.encoder_layers, config.decoder_layers, config.hidden, config.base_init)[-1]
    end = wired(method.wiring).end
    ending = method.final(last.stack) or (method.norm_out(last) if end is None else end)
    return normalises(ending, config.norm)
