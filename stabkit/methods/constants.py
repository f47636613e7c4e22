"""A method's constants at a depth, and what it adds to the model: counted from the slots, without torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal, TypedDict

from stabkit.methods.base import Kind, Method, Place, Role, Scale, Site, Stack, sites
from stabkit.methods.count import parameters, places
from stabkit.methods.formula import runs
from stabkit.methods.papers import post_ln
from stabkit.methods.parts import PARTS, Part
from stabkit.spec import ModelConfig

WIDTH = 64
"""Of the models whose parameters are counted: 64-128-2 in the classic block, without embeddings."""
ROLES: dict[str, tuple[Role, ...]] = {"ffn": ("up", "down"), "self": ("query", "key", "value", "out")}


def added(method: Method, n: int, m: int) -> int:
    """Parameters beside those of Post-LN at the same depth."""
    config = ModelConfig(encoder_layers=n, decoder_layers=m, hidden=WIDTH)
    mine, plain = (parameters(each, config, vocab=0) for each in (method, post_ln.method()))
    return mine - plain


def by_stack(n: int, m: int) -> dict[Stack, list[Site]]:
    """The sub-layers of each stack."""
    held: dict[Stack, list[Site]] = {}
    for site in sites(n, m, WIDTH):
        held.setdefault(site.stack, []).append(site)
    return held


class ScaleJson(TypedDict):
    """ω or γ of the sub-layers of one kind in a stack."""

    init: list[float]
    """Layer by layer."""
    vector: bool
    trainable: bool
    shared: Literal["site", "layer"]
    """`layer`: one trained parameter for all sub-layers of a layer."""


class ConstantsJson(TypedDict):
    """One kind of sub-layer in one stack."""

    stack: Stack
    kind: Kind
    omega: ScaleJson | Literal["profiled"]
    gamma: ScaleJson
    kappa: list[float]
    gains: dict[Role, list[float]]
    norms: str


def of_depth(method: Method, n: int, m: int, profile: Mapping[str, float] | None = None) -> list[ConstantsJson]:
    """A row a stack and kind of sub-layer: ω, γ and every gain, layer by layer, and what stands where; ω of a method
    that profiles from `profile`, or the word "profiled" without one."""

    def omega(site: Site) -> Scale:
        return replace(method.omega(site), init=profile[site.name]) if profile else method.omega(site)

    rows: list[ConstantsJson] = []
    for stack, members in by_stack(n, m).items():
        for kind in dict.fromkeys(site.kind for site in members):
            mine = [site for site in members if site.kind == kind]
            roles = ROLES["ffn" if kind == "ffn" else "self"]
            rows.append(
                {
                    "stack": stack,
                    "kind": kind,
                    "omega": "profiled" if method.calibrate and not profile else _scale([omega(site) for site in mine]),
                    "gamma": _scale([method.gamma(site) for site in mine]),
                    "kappa": [method.kappa(site) for site in mine],
                    "gains": {role: [method.gain(site, role) for site in mine] for role in roles},
                    "norms": _of_layers(method, mine),
                }
            )
    return rows


WHERE: Mapping[Place, str] = {
    "first": "before the first map",
    "mid": "before φ",
    "last": "before the last map",
    "end": "after the last map",
    "query": "on the queries",
    "key": "on the keys",
    "value": "on the values",
}


def _of_layers(method: Method, mine: Sequence[Site]) -> str:
    """What stands where, and in which layers where these differ."""
    held: dict[str, list[int]] = {}
    for site in mine:
        held.setdefault(_norms(method, site), []).append(site.layer)
    if len(held) == 1:
        return next(iter(held))
    return "; ".join(f"layer{'s' * (len(layers) > 1)} {runs(layers)}: {words}" for words, layers in held.items())


def _norms(method: Method, site: Site) -> str:
    """What stands where, in words."""
    around = (
        (method.norm_in(site), "before the branch"),
        (method.norm_branch(site), "after the branch"),
        (method.norm_out(site), "after the sum"),
    )
    inside = ((method.inner(site, place), WHERE[place]) for place in places(site))
    names = [f"{_word(part)} {where}" for part, where in (*around, *inside) if part]
    return ", ".join(names if method.bias(site) else (*names, "no biases")) or "none"


def _word(part: Part) -> str:
    """`norm`, or the kind that the method names itself."""
    return "norm" if part == "norm" else PARTS[part].words


def _scale(scales: Sequence[Scale]) -> ScaleJson:
    first = scales[0]
    return {
        "init": [scale.init for scale in scales],
        "vector": first.vector,
        "trainable": first.trainable,
        "shared": first.shared,
    }
