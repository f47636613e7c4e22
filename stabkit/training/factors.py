"""What a method's own recipe multiplies the learning rate and Adam's ε by, as groups of the vector θ (`Recipe.rate`,
`Recipe.epsilon`: depth-μP, CompleteP). In the shared recipe everything has 1.

A linear map that holds several roles has a part of rows for each; biases, norms and scales are the role "vector".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from stabkit.methods.base import Method, Role, Site
from stabkit.model.branch import Linear
from stabkit.model.flat import Flat
from stabkit.model.transformer import Transformer
from stabkit.spec import RunSpec
from stabkit.training.optim import WHOLE, Group

Known = Role | Literal["vector"]


def groups(spec: RunSpec, method: Method, model: Transformer, flat: Flat) -> Sequence[Group]:
    """The groups of a run: one of everything unless its method's own recipe has factors."""
    recipe = method.recipe
    if spec.recipe != "paper" or recipe is None or not recipe.scaled:
        return WHOLE
    held: dict[tuple[float, float], list[slice]] = {}
    for part, site, role in roles(model, flat):
        own = held.setdefault((recipe.rate(site, role), recipe.epsilon(site, role)), [])
        if own and own[-1].stop == part.start:
            own[-1] = slice(own[-1].start, part.stop)
        else:
            own.append(part)
    return [Group(rate, epsilon, tuple(parts)) for (rate, epsilon), parts in held.items()]


def roles(model: Transformer, flat: Flat) -> Iterator[tuple[slice, Site, Known]]:
    """Every part of θ with the site and the role that decide its factors, in the order of the vector."""
    maps = {id(module.weight): module for module in model.modules() if isinstance(module, Linear)}
    place = {id(p): site for site, residual in reversed(model.residuals.items()) for p in residual.parameters()}
    for stack in model.stacks:
        last = [site for site in model.sites if site.stack == stack][-1]
        for beside in (model.begin, model.final, model.history):
            place |= {id(p): last for p in (beside[stack].parameters() if stack in beside else ())}
    for parameter, part in flat.places():
        site = place.get(id(parameter), model.sites[0])
        if parameter is model.embedding or parameter is model.head:
            yield part, site, "embedding" if parameter is model.embedding else "head"
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
