"""What a method's slots may say: looked at site by site before anything is built, so that a slip is one line."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, get_args

from stabkit.methods.base import HEADED, Assumed, Group, Method, Recipe, Role, Scale, Site, Stack, sites
from stabkit.methods.count import places
from stabkit.methods.parts import PARTS
from stabkit.methods.wirings import WIRINGS, Shape, Wired

ROLES: tuple[Role, ...] = get_args(Role)
BRANCH = ROLES[: ROLES.index("embedding")]
"""Those that every site is asked for; of the rest the first site is."""
SLOTS = (
    *("omega", "gamma", "kappa", "gain", "norm_in", "norm_branch", "norm_out", "inner", "embedding", "final", "bias"),
    *("rate", "epsilon", "undefined"),
)


def faults(method: Method, n: int, m: int, width: int = 64) -> Iterator[str]:
    """What is wrong with it at a depth, a line each; a slot that raises is for the caller."""
    for name in ("key", "label", "source"):
        if not isinstance(getattr(method, name), str) or not getattr(method, name).strip():
            yield f"its {name} is {getattr(method, name)!r}, not a string"
    yield from _one_of("its group", method.group or "Post-LN", get_args(Group))
    if not isinstance(method.wiring, Wired):
        yield from _one_of("its wiring", method.wiring, tuple(WIRINGS))
    else:
        yield from _wired(method.wiring)
    for assumed in method.assumes:
        yield from _one_of("what it assumes", assumed, get_args(Assumed))
    if not isinstance(method.recipe, Recipe | None):
        yield f"its recipe is {method.recipe!r}, not a Recipe"
    for name in SLOTS:
        if not callable(getattr(method, name)):
            yield f"its {name} is {getattr(method, name)!r}, not a function of a site (lambda site: …)"
            return
    if reason := method.undefined(n, m):
        if not isinstance(reason, str):
            yield f"undefined({n}, {m}) is {reason!r}, not the reason as a string"
        return
    method_sites = sites(n, m, width)
    for site in method_sites:
        yield from _site(method, site)
    stack: Stack
    for stack in dict.fromkeys(site.stack for site in method_sites):
        for name in ("embedding", "final"):
            yield from _part(f"{name}({stack!r})", getattr(method, name)(stack))


def _wired(wiring: Wired) -> Iterator[str]:
    if not callable(wiring.module):
        yield "its wiring has no module, the function (sub-layers, norm) that makes a ChainWiring"
    if not callable(wiring.parameters):
        yield f"its wiring's parameters is {wiring.parameters!r}, not a function of a stack (lambda stack: 0)"
    elif not isinstance(count := wiring.parameters(Shape(layers=2, sublayers=4, width=8, norm=16)), int) or count < 0:
        yield f"its wiring's parameters gives {count!r}, not how many numbers a stack trains"
    if wiring.end is not None:
        yield from _one_of("its wiring's end, what the output passes last,", wiring.end, ("", "norm", *PARTS))
    if not isinstance(wiring.streams, tuple) or not wiring.streams or wiring.streams[0] != "":
        yield f"its wiring's streams is {wiring.streams!r}, not a tuple of names whose first is ''"


def _site(method: Method, site: Site) -> Iterator[str]:
    for name in ("norm_in", "norm_branch", "norm_out"):
        yield from _part(f"{name} of {site.name}", part := getattr(method, name)(site))
        if part == "rms across heads":
            yield f"{name} of {site.name} is {part!r}, which reads the heads' queries, keys or values"
    for place in places(site):
        where = f"inner of {site.name} at {place!r}"
        yield from _part(where, part := method.inner(site, place))
        if part == "heads" and not (site.kind != "ffn" and place in ("first", "last", "end")):
            yield f"{where} is 'heads', which multiplies each head's entries: of attention, at first, last or end"
        if part == "rms across heads" and place not in HEADED:
            yield f"{where} is {part!r}, which reads the heads' queries, keys or values: at query, key or value"
    for name in ("omega", "gamma"):
        scale = getattr(method, name)(site)
        if not isinstance(scale, Scale) or not _number(scale.init):
            yield f"{name} of {site.name} is {scale!r}, not a Scale of a finite number (Scale(init=0.5))"
        elif scale.shared not in ("site", "layer") or not {scale.vector, scale.trainable} <= {True, False}:
            yield f"{name} of {site.name} is {scale!r}: shared is 'site' or 'layer', vector and trainable True or False"
    for role in (*BRANCH, *(("embedding",) if site.index == 1 else ())):
        if not _number(gain := method.gain(site, role)):
            yield f"gain of {site.name} for {role!r} is {gain!r}, not a finite number"
    for slot in ("rate", "epsilon"):
        for known in (*BRANCH, "vector", "outer", *(("embedding", "head") if site.index == 1 else ())):
            if not _number(factor := getattr(method, slot)(site, known)) or factor < 0:
                yield f"{slot} for {known!r} of {site.name} is {factor!r}, not a finite number of 0 or more"
    if not _number(kappa := method.kappa(site)):
        yield f"kappa of {site.name} is {kappa!r}, not a finite number"
    if not isinstance(bias := method.bias(site), bool):
        yield f"bias of {site.name} is {bias!r}, not True or False"


def _part(where: str, said: Any) -> Iterator[str]:
    yield from _one_of(where, said, ("", "norm", *PARTS))


def _one_of(where: str, said: Any, valid: tuple[Any, ...]) -> Iterator[str]:
    if not isinstance(said, str) or said not in valid:
        yield f"{where} is {said!r}, not one of {', '.join(map(repr, valid))}"


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
