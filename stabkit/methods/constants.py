"""A method's constants at a depth, and what it adds to the model: counted from the slots, without torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from stabkit.methods import post_ln
from stabkit.methods.base import PLACES, Method, Role, Scale, Site, parameters, sites

WIDTH, FFN, HEADS = 64, 128, 2
"""Of the models whose parameters are counted: 64-128-2, without embeddings."""
ROLES: dict[str, tuple[Role, ...]] = {"ffn": ("up", "down"), "self": ("query", "key", "value", "out")}


def added(method: Method, n: int, m: int) -> int:
    """Parameters beside those of Post-LN at the same depth."""
    mine, plain = (parameters(each, sites(n, m, WIDTH), FFN, HEADS, vocab=0) for each in (method, post_ln.method()))
    return mine - plain


def by_stack(n: int, m: int) -> dict[str, list[Site]]:
    """The sub-layers of each stack."""
    held: dict[str, list[Site]] = {}
    for site in sites(n, m, WIDTH):
        held.setdefault(site.stack, []).append(site)
    return held


def of_depth(method: Method, n: int, m: int, profile: Mapping[str, float] | None = None) -> list[dict[str, Any]]:
    """A row a stack and kind of sub-layer: ω, γ and every gain, layer by layer, and what stands where; ω of a method
    that profiles from `profile`, or the word "profiled" without one."""

    def omega(site: Site) -> Scale:
        return replace(method.omega(site), init=profile[site.name]) if profile else method.omega(site)

    rows = []
    for stack, own in by_stack(n, m).items():
        for kind in dict.fromkeys(site.kind for site in own):
            mine = [site for site in own if site.kind == kind]
            roles = ROLES["ffn" if kind == "ffn" else "self"]
            rows.append(
                {
                    "stack": stack,
                    "kind": kind,
                    "omega": "profiled" if method.calibrate and not profile else _scale([omega(site) for site in mine]),
                    "gamma": _scale([method.gamma(site) for site in mine]),
                    "gains": {role: [method.gain(site, role) for site in mine] for role in roles},
                    "norms": _norms(method, mine[0]),
                }
            )
    return rows


def _norms(method: Method, site: Site) -> str:
    places = [
        name
        for name, there in (
            ("norm before the branch", method.norm_in(site)),
            ("norm after the branch", method.norm_branch(site)),
            ("norm after the sum", method.norm_out(site)),
        )
        if there
    ]
    kinds = {"norm": "norm", "shift": "shift", "heads": "factor a head"}
    where = {
        "first": "before the first map",
        "mid": "before φ",
        "last": "before the last map",
        "end": "after the last map",
    }
    places += [f"{kinds[kind]} {where[place]}" for place in PLACES if (kind := method.inner(site, place))]
    if not method.bias(site):
        places.append("no biases")
    return ", ".join(places) or "none"


def _scale(scales: Sequence[Scale]) -> dict[str, Any]:
    return {**asdict(scales[0]), "init": [scale.init for scale in scales]}
