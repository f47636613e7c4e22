"""How many numbers a model holds: a sum over what stands in its slots, each part saying its own. Without torch."""

from __future__ import annotations

from stabkit.methods.base import HEADED, PLACES, Method, Place, Scale, Site, Stack, sites
from stabkit.methods.blocks import biased, inner, inner_width
from stabkit.methods.parts import cost
from stabkit.methods.wirings import Shape, wired
from stabkit.spec import ModelConfig


def parameters(method: Method, config: ModelConfig, vocab: int) -> int:
    """All numbers of the model of this method, trained or not, embedding and softmax included."""
    d, heads, norm = config.hidden, config.heads, config.norm
    method_sites = sites(config.encoder_layers, config.decoder_layers, d, config.base_init)
    total = vocab * d * (1 if config.tied else 2)
    total += sum(_maps(method, site, config) + _places(method, site, config) for site in method_sites)
    total += _scales(method, method_sites)
    for stack in dict.fromkeys(site.stack for site in method_sites):
        mine = [site for site in method_sites if site.stack == stack]
        total += sum(cost(part, norm, d, heads) for part in (method.embedding(stack), method.final(stack)))
        shape = Shape(layers=mine[0].depth, sublayers=len(mine), width=d, norm=cost("norm", norm, d, heads))
        total += wired(method.wiring).parameters(shape)
    return total


def _maps(method: Method, site: Site, config: ModelConfig) -> int:
    """A sub-layer's linear maps: attention's four; of a feed-forward as many as `ffn_kind` has."""
    d, f, bias = config.hidden, inner_width(config), biased(method, site, config)
    if site.kind != "ffn":
        gate = {"": 0, "head": config.heads, "entry": d}[method.gate(site)]
        return 4 * d * d + 4 * d * bias + gate * d
    upwards = {"relu": 1, "swiglu": 2}[config.ffn_kind]
    return (upwards + 1) * d * f + (upwards * f + d) * bias


def _places(method: Method, site: Site, config: ModelConfig) -> int:
    """Everything that stands around and inside a sub-layer's branch."""
    around = (method.norm_in(site), method.norm_branch(site), method.norm_out(site))
    inside = ((inner(method, site, place, config), width(site, place, config)) for place in places(site))
    parts = (*((part, config.hidden) for part in around), *inside)
    return sum(cost(part, config.norm, size, config.heads) for part, size in parts)


def places(site: Site) -> tuple[Place, ...]:
    """The places that a sub-layer of this kind has."""
    without = HEADED if site.kind == "ffn" else ("mid",)
    return tuple(place for place in PLACES if place not in without)


def width(site: Site, place: Place, config: ModelConfig) -> int:
    """Entries of the vectors that a part reads there."""
    if place in HEADED:
        return config.hidden // config.heads
    return inner_width(config) if site.kind == "ffn" and place in ("mid", "last") else config.hidden


def _scales(method: Method, method_sites: tuple[Site, ...]) -> int:
    """ω and γ where they are no fixed numbers; one that a layer shares counts once."""
    total, seen = 0, set[tuple[str, Stack, int]]()
    for site in method_sites:
        named: tuple[tuple[str, Scale], ...] = (("omega", method.omega(site)), ("gamma", method.gamma(site)))
        for name, scale in named:
            key = (name, site.stack, site.layer)
            if not (scale.trainable or scale.vector) or (scale.shared == "layer" and key in seen):
                continue
            total += site.width if scale.vector else 1
            if scale.shared == "layer":
                seen.add(key)
    return total
