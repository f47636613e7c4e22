"""A first look at a model, before anything of it is measured: by name what is no number, what nobody drew, what an
optimiser does not expect, and what its output depends on. Audit, probe and watch all look so.

Numbers that no initialisation draws, above LARGEST or all below SMALLEST, are those of memory that was taken and not
written to (torch.empty). A buffer may hold −∞: a mask does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from stabkit.own.sublayers import run
from stabkit.own.sublayers.anatomy import and_more
from stabkit.own.sublayers.memory import tensors
from stabkit.own.sublayers.run import Call

LARGEST, SMALLEST = 1e8, 1e-30


@dataclass(frozen=True, kw_only=True, slots=True)
class Remark:
    """Something about parameters and buffers that can be said by their names."""

    topic: str
    sentence: str
    remedy: str
    names: tuple[str, ...]


def first_look(model: nn.Module, optimizers: Sequence[torch.optim.Optimizer] = ()) -> tuple[Remark, ...]:
    """What is wrong with any model, whatever its recipe: `not finite`, `never drawn`, `optimizer`."""
    return (*_numbers(model), *_steppers(model, optimizers))


def gains(model: nn.Module) -> tuple[str, ...]:
    """Norms of torch's own whose weight is one number that is not 1: meant in some recipes, so a note."""
    odd: dict[float, list[str]] = {}
    for name, part in model.named_modules():
        weight = (
            part.weight.detach() if isinstance(part, nn.LayerNorm | nn.RMSNorm) and part.elementwise_affine else None
        )
        if weight is not None and not weight.is_meta and bool((weight == weight.flatten()[0]).all()):
            odd.setdefault(float(weight.flatten()[0]), []).append(f"{name}.weight".lstrip("."))
    closes = {0.0: ": what it feeds starts closed"}
    return tuple(
        f"{and_more(names)} is {gain:.4g} throughout{closes.get(gain, '')}" for gain, names in odd.items() if gain != 1
    )


def _numbers(model: nn.Module) -> Iterator[Remark]:
    lost: list[tuple[str, str]] = []
    odd: list[str] = []
    buffers = {name for name, _ in model.named_buffers()}
    for name, x in (*model.named_parameters(), *model.named_buffers()):
        if not x.is_floating_point() or not x.numel() or x.is_meta or x.element_size() < 2:  # float8 has few operations
            continue
        x = x.detach()
        if bad := int((x.isnan() if name in buffers else ~x.isfinite()).sum()):
            lost.append((name, f"{bad} of {x.numel()}"))
        elif name not in buffers and (float(x.abs().max()) > LARGEST or 0 < float(x.abs().max()) < SMALLEST):
            odd.append(name)
    if lost:
        kind = "buffer" if lost[0][0] in buffers else "parameter"
        more = f" and {len(lost) - 1} more" if len(lost) > 1 else ""
        yield Remark(
            topic="not finite",
            sentence=f"{kind} {lost[0][0]} has {lost[0][1]} numbers that are not finite{more}",
            remedy="initialise it: memory that was taken and not written to holds anything",
            names=tuple(name for name, _ in lost),
        )
    if odd:
        yield Remark(
            topic="never drawn",
            sentence=f"{and_more(odd)} has numbers that no initialisation draws",
            remedy="initialise it: memory that was taken and not written to holds anything",
            names=tuple(odd),
        )


def _steppers(model: nn.Module, optimizers: Sequence[torch.optim.Optimizer]) -> Iterator[Remark]:
    """What two optimisers step, and tables of embeddings that Muon does: it is for matrices that activations are
    multiplied by (Jordan 2024: embeddings and heads by AdamW)."""
    known = {id(p): name for name, p in model.named_parameters()}
    held = [(own, id(p)) for own in optimizers for group in own.param_groups for p in group["params"]]
    times = Counter(place for _, place in held)
    if twice := [known[place] for place, count in times.items() if count > 1 and place in known]:
        yield Remark(
            topic="optimizer",
            sentence=f"{and_more(twice)} is in two of the given optimizers: both step it",
            remedy="give each parameter to one optimizer",
            names=tuple(twice),
        )
    tables = {id(part.weight) for part in model.modules() if isinstance(part, nn.Embedding)}
    muon = [known[p] for own, p in held if "muon" in type(own).__name__.lower() and p in tables and p in known]
    if muon:
        yield Remark(
            topic="optimizer",
            sentence=f"Muon steps the embedding{'s' * (len(muon) > 1)} {' and '.join(muon)}: tables whose rows are "
            "looked up, no matrices that activations are multiplied by",
            remedy="give embeddings to AdamW",
            names=tuple(muon),
        )


@dataclass(frozen=True, slots=True)
class Sight:
    """What a token's output depends on, by changing entries of the input."""

    ahead: bool
    """On tokens after it."""
    order: bool
    """On the order of those before it."""
    rows: bool
    """On other rows of the batch as well."""


def sight(model: nn.Module, inputs: Any) -> Sight | None:
    """Of a model with one tensor (rows, tokens, …) in and out; None where that cannot be told. Which axis counts rows
    is found: the one that nothing passes along."""
    call = Call.of(inputs)
    x = run.tokens(call)
    if x is None or x.shape[0] < 2 or x.shape[1] < 3:
        return None

    def out(other: torch.Tensor) -> torch.Tensor | None:
        given = tensors(run.returned(model, call.instead(x, other)))
        found = next((t for t in given if t.is_floating_point() and t.dim() > 1), None)
        if found is None or found.dim() < 3 or found.shape[:2] != x.shape[:2]:  # (rows, classes) has no places
            return None
        return found

    with run.opened(model):
        return _depends(x, out)


def _depends(x: torch.Tensor, out: Callable[[torch.Tensor], torch.Tensor | None]) -> Sight | None:
    base = out(x)
    if base is None or not bool(base.isfinite().all()) or torch.equal(swapped := _swapped(x), x):
        return None

    def moved(other: torch.Tensor, place: tuple[int, int]) -> bool:
        now = out(other)
        return now is not None and run.differs(base[place], now[place])

    first, last_token, last_row = (run.altered(x, place) for place in ((0, 0), (0, -1), (-1, 0)))
    seen, behind = out(last_token), moved(first, (0, -1))
    ahead = seen is not None and run.differs(base[0, :-1], seen[0, :-1])
    rows = moved(last_row, (0, 0)) or moved(first, (-1, 0))
    if rows and not ahead and not behind:  # tokens first
        return None
    ordered = x.is_floating_point() or not behind or moved(swapped, (0, -1))  # vectors may have their places in them
    return Sight(ahead, ordered, rows)


def _swapped(x: torch.Tensor) -> torch.Tensor:
    """The first row with its first token and another one, not the last, in each other's place."""
    other = x.clone()
    place = next((i for i in range(1, x.shape[1] - 1) if not torch.equal(x[0, i], x[0, 0])), 0)
    other[0, 0], other[0, place] = x[0, place], x[0, 0]
    return other
