"""What a method multiplies the learning rate and Adam's ε by, as groups of the vector θ (`Method.rate`,
`Method.epsilon`: depth-μP, CompleteP).

A linear map that holds several roles has a part of rows for each.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from stabkit.methods.base import Known, Method, Site
from stabkit.model.branch import Linear
from stabkit.model.flat import Flat
from stabkit.model.transformer import Transformer
from stabkit.training.optim import WHOLE, Group


def groups(method: Method, model: Transformer, flat: Flat) -> Sequence[Group]:
    """The groups of a model's vector: one of everything unless its method has factors."""
    if not method.scaled:
        return WHOLE
    held: dict[tuple[float, float], list[slice]] = {}
    for part, site, role in roles(model, flat):
        slices = held.setdefault((method.rate(site, role), method.epsilon(site, role)), [])
        if slices and slices[-1].stop == part.start:
            slices[-1] = slice(slices[-1].start, part.stop)
        else:
            slices.append(part)
    return [Group(rate, epsilon, tuple(parts)) for (rate, epsilon), parts in held.items()]


def roles(model: Transformer, flat: Flat) -> Iterator[tuple[slice, Site, Known]]:
    """Every part of θ with the site and the role that decide its factors, in the order of the vector."""
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
            yield part, site, "embedding" if parameter is model.embedding else "head"
        elif id(parameter) in outer:
            yield part, outer[id(parameter)], "outer"
        elif id(parameter) in maps:
            yield from _rows(maps[id(parameter)], part, site)
        else:
            yield part, site, "vector"


def _rows(linear: Linear, part: slice, site: Site) -> Iterator[tuple[slice, Site, Known]]:
    """The rows of each role, head by head."""
    length = linear.size * linear.weight.shape[1]
    for number in range(linear.heads * len(linear.roles)):
        role = linear.roles[number % len(linear.roles)]
        begin = part.start + number * length
        yield slice(begin, begin + length), site, role
