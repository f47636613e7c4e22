"""The changes of `results/own/cure.py`, made on a model that a factory has just made: its weights, its optimisers,
hooks on its modules. Never the user's files.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from stabkit.own.probe.built_model import Made
from stabkit.own.probe.schedule import Schedule, scale
from stabkit.own.sublayers import run
from stabkit.own.sublayers.anatomy import Anatomy, dissect
from stabkit.results.own.cure import CLIP, HEAD, WARMUP

NORMAL = 0.9, 1.1
"""Standard deviations of an embedding that are 1 already."""


def changed(made: Made, key: str) -> Made | None:
    """A model as a change leaves it; None where it has nothing to change: sums that a norm follows, a tied head, a
    schedule of its own. The model given is the one that is changed."""
    return CHANGES[key](made)


def _rate(divisor: float) -> Callable[[Made], Made | None]:
    def change(made: Made) -> Made:
        scale(made.optimizers, made.schedule.schedulers, 1 / divisor)
        return made

    return change


def _warmup(made: Made) -> Made | None:
    if made.schedule.schedulers:
        return None
    return replace(made, schedule=Schedule.of((), made.optimizers, WARMUP, ""))


def _clip(made: Made) -> Made:
    parameters = [p for p in made.model.parameters() if p.requires_grad]

    def clip(optimizer: torch.optim.Optimizer, *given: Any) -> None:
        if optimizer is made.optimizers[0]:
            nn.utils.clip_grad_norm_(parameters, CLIP)

    for optimizer in made.optimizers:
        optimizer.register_step_pre_hook(clip)
    return made


def _head(made: Made) -> Made | None:
    anatomy = _anatomy(made)
    weight = dict(made.model.named_parameters(remove_duplicate=False)).get(anatomy.head)
    tied = {id(part.weight) for part in anatomy.outside if part.role == "embedding"}
    tables = [module.weight for module in made.model.modules() if isinstance(module, nn.Embedding)]
    if weight is None or id(weight) in tied or any(weight is table for table in tables):
        return None
    with torch.no_grad():
        weight.div_(HEAD)
    return made


def _embedding(made: Made) -> Made | None:
    heads = [part.weight for part in _anatomy(made).outside if part.role == "head"]
    known = dict(made.model.named_parameters(remove_duplicate=False))
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


def _last(made: Made) -> Made | None:
    anatomy = _anatomy(made)
    known = dict(made.model.named_parameters(remove_duplicate=False))
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


def _branches(power: float) -> Callable[[Made], Made | None]:
    def change(made: Made) -> Made | None:
        owners = dict(made.model.named_modules())
        for stack in _anatomy(made).stacks:
            for own in stack.sublayers:
                ends = {part.name.rpartition(".")[0] for part in own.parts if part.role in ("out", "down")}
                if own.norm_branch or own.omega != 1 or not ends or not ends <= owners.keys():
                    return None
                for name in ends:
                    owners[name].register_forward_hook(_times(stack.layers**power))
        return made

    return change


def _times(factor: float) -> Callable[[nn.Module, Any, Any], Any]:
    def hook(module: nn.Module, given: Any, returned: Any) -> Any:
        return returned * factor if isinstance(returned, torch.Tensor) else returned

    return hook


def _anatomy(made: Made) -> Anatomy:
    with run.untouched(made.model):
        return dissect(run.watched(made.model, made.call))


CHANGES: Mapping[str, Callable[[Made], Made | None]] = {
    "rate/3": _rate(3),
    "rate/10": _rate(10),
    "warmup": _warmup,
    "clip": _clip,
    "head": _head,
    "embedding": _embedding,
    "last/sqrt(2N)": _last,
    "branch/sqrt(N)": _branches(-0.5),
    "branch/N": _branches(-1.0),
    "rate*3": _rate(1 / 3),
    "rate*10": _rate(0.1),
}
