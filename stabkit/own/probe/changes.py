"""The changes of `results/own/cure.py`, made on a model that a factory has just made: its weights, its optimisers,
hooks on its modules. Never the user's files.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import torch
from torch import nn

from stabkit.methods.base import Site
from stabkit.methods.papers.deepnorm import alpha_beta
from stabkit.own.probe.built_model import BuiltModel
from stabkit.own.probe.loop import size, usual_size
from stabkit.own.probe.schedule import Schedule, peak, scale
from stabkit.own.sublayers import run
from stabkit.own.sublayers.anatomy import Anatomy, Stack, dissect
from stabkit.results.own.cure import BY_KEY, CLIP, HEAD, WARMUP, Edit
from stabkit.results.own.forecast import FAST, LARGE, USUAL

NORMAL = 0.9, 1.1
"""Standard deviations of an embedding that are 1 already."""


def changed(made: BuiltModel, key: str) -> BuiltModel | None:
    """A model as a change leaves it; None where it has nothing to change: a tied head, a schedule of its own. The model
    given is the one that is changed."""
    return EDITS[BY_KEY[key].edit](made, BY_KEY[key].by)


def _smaller(made: BuiltModel, by: float) -> BuiltModel | None:
    """Every matrix of a sub-layer, and the head where it is as large, over their usual size."""
    anatomy = _anatomy(made)
    known = _parameters(made)
    names = {part.name for stack in anatomy.stacks for own in stack.sublayers for part in own.parts} & known.keys()
    middle = usual_size(known[name] for name in names)
    if not middle > LARGE:
        return None
    heads = {part.name for part in anatomy.outside if part.role == "head"} & known.keys()
    names |= {name for name in heads if size(known[name]) > LARGE}
    with torch.no_grad():
        for weight in {id(known[name]): known[name] for name in names}.values():
            weight.div_(middle)
    return replace(made, changed=endings(names), factors=(middle,))


def _rate(made: BuiltModel, divisor: float) -> BuiltModel | None:
    """The rate over this; without one the rate that the optimiser is used at, where the model's own lies beyond those
    of all tested models."""
    factors: tuple[float, ...] = ()
    if not divisor:
        divisor = peak(made.optimizers) / USUAL.get(type(made.optimizers[0]).__name__, math.nan)
        if not (divisor > FAST or 0 < divisor < 1 / FAST):
            return None
        factors = (divisor,)
    scale(made.optimizers, made.schedule.schedulers, 1 / divisor)
    return replace(made, factors=factors) if factors else made


def _warmup(made: BuiltModel, by: float) -> BuiltModel | None:
    if made.schedule.schedulers:
        return None
    return replace(made, schedule=Schedule.of((), made.optimizers, WARMUP, ""))


def _clip(made: BuiltModel, by: float) -> BuiltModel | None:
    parameters = [p for p in made.model.parameters() if p.requires_grad]

    def clip(optimizer: torch.optim.Optimizer, *given: Any) -> None:
        if optimizer is made.optimizers[0]:
            nn.utils.clip_grad_norm_(parameters, CLIP)

    for optimizer in made.optimizers:
        optimizer.register_step_pre_hook(clip)
    return made


def _head(made: BuiltModel, by: float) -> BuiltModel | None:
    anatomy = _anatomy(made)
    weight = _parameters(made).get(anatomy.head)
    tied = {id(part.weight) for part in anatomy.outside if part.role == "embedding"}
    tables = [module.weight for module in made.model.modules() if isinstance(module, nn.Embedding)]
    if weight is None or id(weight) in tied or any(weight is table for table in tables):
        return None
    with torch.no_grad():
        weight.div_(HEAD)
    return made


def _embedding(made: BuiltModel, by: float) -> BuiltModel | None:
    heads = [part.weight for part in _anatomy(made).outside if part.role == "head"]
    known = _parameters(made)
    head = known.get(_anatomy(made).head)
    tables = [
        module.weight
        for module in made.model.modules()
        if isinstance(module, nn.Embedding) and module.weight is not head and len(module.weight) > 1
    ]
    away = [table for table in tables if not NORMAL[0] <= float(table.detach().std()) <= NORMAL[1]]
    if not away or not heads:
        return None
    with torch.no_grad():
        for table in away:
            table.div_(max(float(table.std()), 1e-12))
    ours = {id(table) for table in away}
    return replace(made, changed=tuple(sorted(name for name, p in known.items() if id(p) in ours)))


def _last(made: BuiltModel, by: float) -> BuiltModel | None:
    anatomy = _anatomy(made)
    known = _parameters(made)
    names = {
        part.name
        for stack in anatomy.stacks
        for own in stack.sublayers
        if not own.norm_branch
        for part in own.parts
        if part.role in ("out", "down") and part.name in known
    }
    if not names:
        return None
    with torch.no_grad():
        for name in names:
            known[name].div_(math.sqrt(2 * max(stack.layers for stack in anatomy.stacks)))
    return replace(made, changed=endings(names))


def endings(names: Iterable[str]) -> tuple[str, ...]:
    """What follows the layer's number in these names, each once: `attn.c_proj.weight`."""
    return tuple(sorted({re.split(r"\.\d+\.", name, maxsplit=1)[-1] for name in names}))


def _branch(made: BuiltModel, power: float) -> BuiltModel | None:
    stacks = _anatomy(made).stacks
    scaled = [(stack, stack.layers**power) for stack in stacks]
    return replace(made, normed_sums=_normed(stacks)) if _scaled(made, scaled) else None


def _normed(stacks: Sequence[Stack]) -> bool:
    """Whether a norm follows every sum."""
    return all(own.norm_out for stack in stacks for own in stack.sublayers)


def _scaled(made: BuiltModel, factors: Sequence[tuple[Stack, float]]) -> bool:
    """Multiply what every branch of these stacks adds; False, and nothing is done, where a sum is not plain."""
    owners = dict(made.model.named_modules())
    places: list[tuple[nn.Module, float]] = []
    for stack, factor in factors:
        for own in stack.sublayers:
            ends = {_end(owners, part.name) for part in own.parts if part.role in ("out", "down")}
            if own.norm_branch or own.omega != 1 or not ends or not ends <= owners.keys():
                return False
            places += [(owners[name], factor) for name in ends]
    for module, factor in places:
        module.register_forward_hook(_times(factor))
    return True


def _end(owners: Mapping[str, nn.Module], name: str) -> str:
    """The module that returns what a branch's last matrix gives: its own, or the nn.MultiheadAttention around it, which
    never calls it."""
    own = name.rpartition(".")[0]
    around = own.rpartition(".")[0]
    return around if isinstance(owners.get(around), nn.MultiheadAttention) else own


def _times(factor: float) -> Callable[[nn.Module, Any, Any], Any]:
    def hook(module: nn.Module, given: Any, returned: Any) -> Any:
        if isinstance(returned, torch.Tensor):
            return returned * factor
        first, *rest = returned
        return (first * factor, *rest)

    return hook


SHRUNK = ("value", "out", "up", "down")
"""Roles of the weights that DeepNorm draws β times smaller."""


def _deepnorm(made: BuiltModel, by: float) -> BuiltModel | None:
    """N(αx + f(x)) as N(x + f(x)/α), which it is but for the norm's ε, and β on the weights as they were"""
    anatomy = _anatomy(made)
    stacks = anatomy.stacks
    if not _normed(stacks) or len(stacks) > 1 + len(anatomy.encoder_of):
        return None
    constants = [(stack, *alpha_beta(_site(anatomy, place))) for place, stack in enumerate(stacks)]
    held = {part.data_ptr() for part in (p.untyped_storage() for p in made.model.parameters())}
    weights = [
        (part.weight, beta)
        for stack, _, beta in constants
        for own in stack.sublayers
        for part in own.parts
        if part.role in SHRUNK
    ]
    if any(weight.untyped_storage().data_ptr() not in held for weight, _ in weights):
        return None
    if not _scaled(made, [(stack, 1 / alpha) for stack, alpha, _ in constants]):
        return None
    with torch.no_grad():
        for weight, beta in weights:
            weight.mul_(beta)
    _, alpha, beta = constants[-1]
    return replace(made, factors=(alpha, beta))


READERS = ("query", "key", "value", "up", "gate")
"""Roles of the matrices that a branch begins with."""


def _before(made: BuiltModel, by: float) -> BuiltModel | None:
    """N(x + f(x)) as x + f(N(x)), each norm with the weights that it has; the last stays after the last sum too."""
    called: list[tuple[nn.Module, int]] = []
    handles = [
        module.register_forward_hook(lambda module, given, returned: called.append((module, _place(given, returned))))
        for module in made.model.modules()
        if all(p.dim() < 2 for p in module.parameters())
    ]
    try:
        with run.untouched(made.model):
            anatomy = dissect(run.watched(made.model, made.call))
            norm_at = {place: module for module, place in reversed(called)}
    finally:
        for handle in handles:
            handle.remove()
    owners = dict(made.model.named_modules())
    moved = list[tuple[nn.Module, list[nn.Module], bool]]()
    for own, last in ((own, own is stack.sublayers[-1]) for stack in anatomy.stacks for own in stack.sublayers):
        begins = {part.name.rpartition(".")[0] for part in own.parts if part.role in READERS}
        norm = norm_at.get(own.join.node.value.data_ptr())
        norms = own.norm_in, own.norm_out, own.norm_branch
        plain = norms == (False, True, False) and own.omega == 1 and own.kind in ("self", "ffn")
        if norm is None or not plain or not begins or not begins <= owners.keys():
            return None
        moved.append((norm, [owners[name] for name in sorted(begins)], last))
    if len({id(norm) for norm, _, _ in moved}) < len(moved):  # one for several sums
        return None
    for norm, readers, last in moved:
        for reader in readers:
            reader.register_forward_pre_hook(_normed_first(norm), with_kwargs=True)
        if not last:
            norm.register_forward_hook(lambda module, given, returned: given[0])
    return made


def _place(given: tuple[Any, ...], returned: Any) -> int:
    """Where what a module was called with lies; 0 of one that gives it back, dropout in eval mode, say."""
    before, after = (x.data_ptr() if isinstance(x, torch.Tensor) else 0 for x in (next(iter(given), None), returned))
    return before if before != after else 0


def _normed_first(norm: nn.Module) -> Callable[[nn.Module, Any, Any], Any]:
    """The norm of what a module is called with; of attention of query, key and value, where they are one."""

    def hook(module: nn.Module, given: Any, named: Any) -> Any:
        def normed(value: Any) -> Any:
            return norm.forward(value) if isinstance(value, torch.Tensor) and value is x else value

        x = given[0] if given else next(iter(named.values()))
        return tuple(map(normed, given)), {name: normed(value) for name, value in named.items()}

    return hook


def _site(anatomy: Anatomy, place: int) -> Site:
    """A sub-layer of a stack, for its constants."""
    layers = [stack.layers for stack in anatomy.stacks]
    decoder = next((own for own, of in anatomy.encoder_of.items() if place in (own, of)), None)
    n, m = (layers[place], 0) if decoder is None else (layers[anatomy.encoder_of[decoder]], layers[decoder])
    side: Literal["encoder", "decoder"] = "decoder" if place == decoder else "encoder"
    width = anatomy.stacks[place].sublayers[0].width
    return Site(stack=side, kind="ffn", layer=1, index=0, encoder_layers=n, decoder_layers=m, width=width)


def _parameters(made: BuiltModel) -> dict[str, nn.Parameter]:
    """By every name that they have."""
    return dict(made.model.named_parameters(remove_duplicate=False))


def _anatomy(made: BuiltModel) -> Anatomy:
    with run.untouched(made.model):
        return dissect(run.watched(made.model, made.call))


EDITS: Mapping[Edit, Callable[[BuiltModel, float], BuiltModel | None]] = {
    "smaller": _smaller,
    "rate": _rate,
    "warmup": _warmup,
    "clip": _clip,
    "head": _head,
    "embedding": _embedding,
    "last": _last,
    "deepnorm": _deepnorm,
    "before": _before,
    "branch": _branch,
}
"""{what is done: the function that does it}; how much stands in `results/own/cure.py`."""
