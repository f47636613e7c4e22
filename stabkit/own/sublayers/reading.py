"""A model's residual stream, read on a fixed batch: found once, then read in any number of passes.

stream = found(model, inputs)          sums x + f(x), or like blocks where there are none
states = stream.read(model, inputs)    x_0 … x_L of every stack, branches, F; eval mode, nothing is left behind

Like blocks stand in where a model has no sums x + f(x) (gated, concatenated or convolutional residuals): children of
one class in an nn.ModuleList or nn.Sequential, of which each reads what the one before it left and all leave one shape,
or what a pattern like `h.*` names. x_i is the first tensor of a block's output, x_0 what the first is given.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import reduce
from typing import Any

import torch
from torch import nn

from stabkit.errors import UsageError
from stabkit.own.sublayers import run
from stabkit.own.sublayers.anatomy import Anatomy, and_more, dissect
from stabkit.own.sublayers.memory import full, tensors
from stabkit.own.sublayers.places import Places, SublayerPlace, places


@dataclass(frozen=True, slots=True)
class Blocks:
    """The names of a model's blocks, in the order in which they run."""

    names: tuple[str, ...]


def like_blocks(model: nn.Module) -> list[Blocks]:
    """Runs of like children with matrices of their own, those that hold most parameters first."""
    ranked: list[tuple[int, Blocks]] = []
    for name, module in model.named_modules():
        if isinstance(module, (nn.ModuleList, nn.Sequential)):
            children = list(module.named_children())
            kinds = {type(child) for _, child in children}
            matrices = all(any(p.dim() > 1 for p in child.parameters()) for _, child in children)
            if len(children) > 1 and len(kinds) == 1 and matrices:
                blocks = Blocks(tuple(f"{name}.{child}".lstrip(".") for child, _ in children))
                ranked.append((sum(p.numel() for p in module.parameters()), blocks))
    return [blocks for _, blocks in sorted(ranked, key=lambda one: -one[0])]


def named_blocks(model: nn.Module, pattern: str) -> Blocks:
    """The modules whose names match `h.*`, a star standing for no dot; raises UsageError for fewer than two."""
    depth = pattern.count(".")
    names = [name for name, _ in model.named_modules() if name.count(".") == depth and fnmatchcase(name, pattern)]
    if len(names) < 2:
        seen = ", ".join(f"{own.names[0]} … {own.names[-1]}" for own in like_blocks(model)[:3]) or "none"
        raise UsageError(
            f"--blocks: {pattern!r} matches {len(names)} modules; at least two are needed. Similar ones: {seen}"
        )
    return Blocks(tuple(names))


@dataclass(frozen=True, slots=True)
class BlockStates:
    """What went into each block of a pass, and what came out of it."""

    inputs: list[torch.Tensor]
    outputs: list[torch.Tensor]
    blocks: int

    @property
    def once(self) -> bool:
        """Whether each of the blocks ran once: a state a block, in their order."""
        return len(self.inputs) == len(self.outputs) == self.blocks

    @property
    def states(self) -> list[torch.Tensor]:
        """x_0 … x_L."""
        return [*self.inputs[:1], *self.outputs]

    @property
    def alike(self) -> bool:
        """Whether what left the blocks has one shape."""
        shapes = {tuple(x.shape) for x in self.outputs}
        return len(self.outputs) > 1 and len(shapes) == 1 and self.outputs[0].dim() > 1

    @property
    def chained(self) -> bool:
        """Whether each block reads what the one before it left: norms and branches in a list of their own do not."""
        pairs = zip(self.outputs, self.inputs[1:], strict=False)
        return all(
            before.numel() == after.numel() and torch.equal(before.reshape(-1), after.reshape(-1))
            for before, after in pairs
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class States:
    """What one pass left; every tensor as wide as its stack on the last axis."""

    x: Mapping[str, Sequence[torch.Tensor]]
    """x_0 … x_L of each stack."""
    branches: Sequence[tuple[torch.Tensor, torch.Tensor]]
    """(γ·f_i, the sum it went into) of each sub-layer; none where blocks were found."""
    output: torch.Tensor
    """F: the last stack's output after its final norms; of blocks, what leaves the last."""
    room: Mapping[str, float]
    """{stack: the largest number of the type that it runs in, over the largest entry of its x_i}."""
    dtype: str
    """The type of the last sum, `float16`."""
    logits: torch.Tensor | None
    """What the model returns as `.logits`, else its first floating tensor."""
    attention: Sequence[torch.Tensor] = ()
    """The largest logit of every attention of the pass, in its order; none where blocks were found."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ResidualStream:
    """Where a model is read."""

    sublayers: tuple[SublayerPlace, ...]
    how: str
    """`sums x + f(x)`, or `blocks h.0 … h.11`."""
    notes: tuple[str, ...]
    where: Places | Blocks
    kinds: Mapping[str, str]
    """{parameter: `embedding`, `norm`, `head`} of those outside of branches' matrices."""
    normed: tuple[str, ...]
    """Stacks that end in a norm."""
    head: str
    """The matrix that makes the scores; "" where none was seen."""
    unregistered: str = ""
    """Which sub-layers' weights are not among the model's parameters, and where they are; "" for none."""
    bounded: float = 1.0
    """Share of the sub-layers that a norm stands before, in or after; 1 where that was not read."""

    @property
    def stacks(self) -> tuple[str, ...]:
        """In the order of the pass; the last one's output is F."""
        return tuple(dict.fromkeys(place.stack for place in self.sublayers))

    def read(self, model: nn.Module, inputs: Any) -> States:
        """One pass over these inputs. Raises UsageError where the model does not run as it did when it was found."""
        if isinstance(self.where, Blocks):
            return _of_blocks(model, inputs, self.where)
        return _of_sums(model, inputs, self.where)


def found(model: nn.Module, inputs: Any, pattern: str = "") -> ResidualStream:
    """Where this model is read; `pattern` names its blocks. Raises UsageError where nothing was found, with what was
    seen, and whatever the model raises."""
    run.refuse(model)
    if pattern:
        named = named_blocks(model, pattern)
        passed, anatomy = _passed(model, inputs, named)
        if not passed.once:
            ran = f"{len(passed.outputs)} times in one pass, {passed.blocks} blocks match {pattern}"
            raise UsageError(f"--blocks: blocks ran {ran}; name blocks that each run once")
        if not passed.alike:
            shapes = ", ".join(dict.fromkeys(str(list(x.shape)) for x in passed.outputs)) or "nothing"
            raise UsageError(f"--blocks: the outputs of {pattern} must have one shape; they have {shapes}")
        apart = "" if passed.chained else "; some do not read the output of the one before"
        return _stream(model, named, f"named by --blocks{apart}", anatomy)
    watch = run.watched(model, inputs)
    anatomy = dissect(watch)
    sums = places(watch, anatomy)
    if sums is not None and len(sums.sublayers) > 1:
        notes = list(anatomy.notes)
        if not anatomy.coverage.whole:
            notes.append(f"{anatomy.coverage.sentence}: the links of the stream are of the sums found")
        if sums.shared:
            notes.append(f"{and_more(sums.shared)}: used by several layers, counted in none")
        return ResidualStream(
            sublayers=sums.sublayers,
            how="sums x + f(x)",
            notes=tuple(notes),
            where=sums,
            kinds=_kinds(anatomy),
            normed=sums.normed,
            head=anatomy.head,
            unregistered=_unregistered(model, sums),
            bounded=_bounded(anatomy),
        )
    for like in like_blocks(model):
        passed, _ = _passed(model, inputs, like)
        if passed.once and passed.alike and passed.chained:
            why = "no sums x + f(x) were found: similar blocks are taken as sub-layers"
            return _stream(model, like, why, anatomy)
    seen = ", ".join(dict.fromkeys(type(part).__name__ for part in model.children())) or "nothing"
    raise UsageError(
        f"found no residual sums x + f(x) and no similar blocks of one output shape in the model ({seen}); "
        "name its blocks: --blocks 'h.*', or blocks='h.*' in Python"
    )


def _bounded(anatomy: Anatomy) -> float:
    every = [own for stack in anatomy.stacks for own in stack.sublayers]
    return sum(own.norm_in or own.norm_branch or own.norm_out or own.norm_inner for own in every) / len(every)


def _kinds(anatomy: Anatomy) -> dict[str, str]:
    """{parameter: what it is} of those that are no branch's matrix."""
    kinds = {part.name: part.role for part in anatomy.outside if part.name}
    return {**{name: "norm" for name, *_ in anatomy.norms if name}, **kinds}


def _unregistered(model: nn.Module, sums: Places) -> str:
    """Sub-layers whose matrices no name of the model's leads to, and the plain list, tuple or dict that holds modules
    which the model does not know as its own."""
    if not sums.unregistered:
        return ""
    known = set(model.modules())
    held = []
    for name, module in model.named_modules():
        for attribute, value in vars(module).items():
            values = list(value.values()) if isinstance(value, dict) else value
            if attribute in run.BASE or not isinstance(values, (list, tuple)):
                continue
            if any(
                isinstance(own, nn.Parameter) or (isinstance(own, nn.Module) and own not in known) for own in values
            ):
                held.append(f"{name}.{attribute}".lstrip(".") + f", a plain {type(value).__name__}")
    every = "all" if len(sums.unregistered) == len(sums.sublayers) else f"{len(sums.unregistered)} of"
    where = f" ({' and '.join(held)})" if held else ""
    return (
        f"the weights of {every} {len(sums.sublayers)} sub-layers are not among the model's parameters{where}: no "
        "optimizer steps them"
    )


def _stream(model: nn.Module, like: Blocks, why: str, anatomy: Anatomy) -> ResidualStream:
    taken: set[str] = set()
    places: list[SublayerPlace] = []
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    for i, block in enumerate(like.names, 1):
        read = {names[id(p)] for p in model.get_submodule(block).parameters()}
        mine = tuple(sorted(read - taken))
        places.append(SublayerPlace(stack="blocks", layer=i, kind="block", parameters=mine))
        taken |= read
    return ResidualStream(
        sublayers=tuple(places),
        how=f"blocks {like.names[0]} … {like.names[-1]}",
        notes=(why, "read at blocks: the output is that of the last block, before any final norm"),
        where=like,
        kinds=_kinds(anatomy),
        normed=(),
        head=anatomy.head,
    )


def _of_sums(model: nn.Module, inputs: Any, sums: Places) -> States:
    watch = run.watched(model, inputs, sums.nodes_read())
    if tuple(watch.operations) != sums.operations:
        raise UsageError(
            "the model's operations differ from pass to pass; name its blocks: --blocks, or blocks= in Python"
        )
    held = {at: full(value) for at, value in watch.values.items()}
    at_of = {name: [at, *(own.out for own in sums.sublayers if own.stack == name)] for name, at in sums.first.items()}
    x = {name: [held[at] for at in own] for name, own in at_of.items()}
    branches = [
        (reduce(torch.add, [factor * held[at] for at, factor in own.added]), held[own.at]) for own in sums.sublayers
    ]
    room = {name: headroom([watch.values[at] for at in own]) for name, own in at_of.items()}
    kind = str(watch.values[sums.sublayers[-1].at].dtype).removeprefix("torch.")
    output, scores, largest = held[sums.final], logits(watch.returned), tuple(watch.attention)
    return States(x=x, branches=branches, output=output, room=room, dtype=kind, logits=scores, attention=largest)


def _of_blocks(model: nn.Module, inputs: Any, like: Blocks) -> States:
    with _blocks_watched(model, like) as passed:
        returned = run.watched(model, inputs).returned
    x = passed.states
    return States(x={"blocks": x}, branches=(), output=x[-1], room={}, dtype="", logits=logits(returned))


@contextmanager
def _blocks_watched(model: nn.Module, blocks: Blocks) -> Iterator[BlockStates]:
    """Within, a pass of the model leaves what its blocks read and made, as it was when it was made."""
    passed = BlockStates([], [], len(blocks.names))

    def before(module: nn.Module, args: Any, kwargs: Any) -> None:
        passed.inputs.append(_first((args, kwargs)))

    def after(module: nn.Module, args: Any, output: Any) -> None:
        passed.outputs.append(_first(output))

    handles: list[Any] = []
    for name in blocks.names:
        module = model.get_submodule(name)
        handles += [module.register_forward_pre_hook(before, with_kwargs=True), module.register_forward_hook(after)]
    try:
        yield passed
    finally:
        for handle in handles:
            handle.remove()


def _first(given: Any) -> torch.Tensor:
    """The first floating tensor, in float32 at least; the channels of a picture last."""
    for tensor in tensors(given):
        if tensor.is_floating_point():
            own = full(tensor.detach().clone())
            return own.movedim(1, -1) if own.dim() == 4 else own
    return torch.empty(0)


def _passed(model: nn.Module, inputs: Any, like: Blocks) -> tuple[BlockStates, Anatomy]:
    with _blocks_watched(model, like) as passed:
        trace = run.watched(model, inputs)
    return passed, dissect(trace)


def headroom(x: Sequence[torch.Tensor]) -> float:
    """The largest number of their type over their largest entry (over 1 where that is less); 0 where one is not
    finite."""
    most: float = torch.finfo(x[0].dtype).max
    peaks = [float(own.detach().abs().max()) for own in x]
    return most / max(*peaks, 1.0) if all(map(math.isfinite, peaks)) else 0.0


def logits(returned: Any) -> torch.Tensor | None:
    """What a model scores with: `.logits`, else the first floating tensor with more than one axis; None without."""
    given = getattr(returned, "logits", None)
    if isinstance(given, torch.Tensor):
        return given
    values = dict(returned) if isinstance(returned, Mapping) else returned
    return next((t for t in tensors(values) if t.is_floating_point() and t.dim() > 1), None)
