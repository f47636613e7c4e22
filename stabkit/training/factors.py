"""The parts of θ that an optimiser updates alike: what a method multiplies rate and ε by (`Method.rate`,
`Method.epsilon`: depth-μP, CompleteP), what decays, what is a matrix.

A linear map that holds several roles has a part of rows for each, head by head.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from stabkit.methods.base import Known, Method, Site
from stabkit.model.branch import Linear
from stabkit.model.flat import Flat
from stabkit.model.transformer import Transformer
from stabkit.training.optimizers.base import WHOLE, Apart, Group


class RolePart(NamedTuple):
    """Numbers of one role at one place."""

    slices: list[slice]
    """Where they lie in θ, in their own order."""
    site: Site
    role: Known
    """Both decide the factors."""
    shape: tuple[int, int] | None
    """(out, in) of a role's weights in a linear map; None of anything else."""


def groups(method: Method, model: Transformer, flat: Flat, apart: Apart = "nothing") -> Sequence[Group]:
    """The groups of a model's vector: one of everything unless its method has factors, or the optimiser must have
    something apart."""
    if not method.scaled and apart == "nothing":
        return WHOLE
    held: dict[tuple[float, float, bool, tuple[int, int] | None], list[slice]] = {}
    for slices, site, role, shape in roles(model, flat):
        decays, matrix = apart != "nothing" and shape is not None, shape if apart == "matrices" else None
        held.setdefault((method.rate(site, role), method.epsilon(site, role), decays, matrix), []).extend(slices)
    return [
        Group(rate, epsilon, tuple(parts if shape else _joined(parts)), decays, shape)
        for (rate, epsilon, decays, shape), parts in held.items()
    ]


def _joined(parts: list[slice]) -> list[slice]:
    """The same in the order of the vector, neighbours as one."""
    joined: list[slice] = []
    for part in sorted(parts, key=lambda part: part.start):
        if joined and joined[-1].stop == part.start:
            part = slice(joined.pop().start, part.stop)
        joined.append(part)
    return joined


def roles(model: Transformer, flat: Flat) -> Iterator[RolePart]:
    """Every part of θ, in the order of the vector but for the roles of a map."""
    maps = {id(module.weight): module for module in model.modules() if isinstance(module, Linear)}
    place = {id(p): site for site, residual in reversed(model.residuals.items()) for p in residual.parameters()}
    outer: dict[int, Site] = {}
    for stack in model.stacks:
        last = [site for site in model.sites if site.stack == stack][-1]
        for beside in (model.begin, model.final, model.history):
            outer |= {id(p): last for p in (beside[stack].parameters() if stack in beside else ())}
    for parameter, part in flat.places():
        site = place.get(id(parameter), model.sites[0])
        if parameter is model.embedding or parameter is model.head:
            yield RolePart([part], site, "embedding" if parameter is model.embedding else "head", None)
        elif id(parameter) in outer:
            yield RolePart([part], outer[id(parameter)], "outer", None)
        elif id(parameter) in maps:
            yield from _rows(maps[id(parameter)], part, site)
        else:
            yield RolePart([part], site, "vector", None)


def _rows(linear: Linear, part: slice, site: Site) -> Iterator[RolePart]:
    """The rows of each role."""
    fan_in = linear.weight.shape[1]
    length = linear.size * fan_in
    for i, role in enumerate(linear.roles):
        starts = [part.start + (head * len(linear.roles) + i) * length for head in range(linear.heads)]
        yield RolePart([slice(at, at + length) for at in starts], site, role, (linear.heads * linear.size, fan_in))
