"""What a method's slots may say: looked at site by site before anything is built, so that a slip is one line."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, get_args

from stabkit.methods.base import Assumed, Group, Method, Recipe, Role, Scale, Site, Stack, sites
from stabkit.methods.count import places
from stabkit.methods.parts import PARTS
from stabkit.methods.wirings import WIRINGS

ROLES = get_args(Role)


def faults(method: Method, n: int, m: int, width: int = 64) -> Iterator[str]:
    """What is wrong with it at a depth, a line each; a slot that raises is for the caller."""
    for name in ("key", "label", "source"):
        if not isinstance(getattr(method, name), str) or not getattr(method, name).strip():
            yield f"its {name} is {getattr(method, name)!r}, not a text"
    yield from _one_of("its group", method.group, get_args(Group))
    yield from _one_of("its wiring", method.wiring, tuple(WIRINGS))
    for assumed in method.assumes:
        yield from _one_of("what it assumes", assumed, get_args(Assumed))
    if not isinstance(method.recipe, Recipe | None):
        yield f"its recipe is {method.recipe!r}, not a Recipe"
    if reason := method.undefined(n, m):
        if not isinstance(reason, str):
            yield f"undefined({n}, {m}) is {reason!r}, not the reason as a text"
        return
    own = sites(n, m, width)
    for site in own:
        yield from _site(method, site)
    stack: Stack
    for stack in dict.fromkeys(site.stack for site in own):
        for name in ("embedding", "final"):
            yield from _part(f"{name}({stack!r})", getattr(method, name)(stack))


def _site(method: Method, site: Site) -> Iterator[str]:
    for name in ("norm_in", "norm_branch", "norm_out"):
        yield from _part(f"{name} of {site.name}", getattr(method, name)(site))
    for place in places(site):
        yield from _part(f"inner of {site.name} at {place!r}", method.inner(site, place))
    for name in ("omega", "gamma"):
        scale = getattr(method, name)(site)
        if not isinstance(scale, Scale) or not _number(scale.init):
            yield f"{name} of {site.name} is {scale!r}, not a Scale of a finite number"
    for role in (*ROLES[:6], *(ROLES[6:] if site.index == 1 else ())):
        if not _number(gain := method.gain(site, role)):
            yield f"gain of {site.name} for {role!r} is {gain!r}, not a finite number"
    if not isinstance(bias := method.bias(site), bool):
        yield f"bias of {site.name} is {bias!r}, not True or False"


def _part(where: str, said: Any) -> Iterator[str]:
    yield from _one_of(where, said, ("", "norm", *PARTS))


def _one_of(where: str, said: Any, valid: tuple[Any, ...]) -> Iterator[str]:
    if not isinstance(said, str) or said not in valid:
        yield f"{where} is {said!r}, not one of {', '.join(map(repr, valid))}"


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
