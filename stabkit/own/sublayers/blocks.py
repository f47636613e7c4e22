"""Like blocks, where a model has no sums x + f(x): gated, concatenated or convolutional residuals.

The blocks are the longest run of children of one class in an nn.ModuleList or nn.Sequential whose outputs have one
shape, or what a pattern like `h.*` names. x_i is the first tensor of a block's output, x_0 what the first is given.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import torch
from torch import nn

from stabkit.errors import UsageError
from stabkit.own.sublayers.memory import tensors


@dataclass(frozen=True, slots=True)
class Blocks:
    """The names of a model's blocks, in the order in which they run."""

    names: tuple[str, ...]


def candidates(model: nn.Module) -> list[Blocks]:
    """Runs of like children, the longest first."""
    found = []
    for name, module in model.named_modules():
        if isinstance(module, (nn.ModuleList, nn.Sequential)):
            children = list(module.named_children())
            kinds = {type(child) for _, child in children}
            if len(children) > 1 and len(kinds) == 1 and any(True for _ in children[0][1].parameters()):
                found.append(Blocks(tuple(f"{name}.{own}".lstrip(".") for own, _ in children)))
    return sorted(found, key=lambda blocks: -len(blocks.names))


def named(model: nn.Module, pattern: str) -> Blocks:
    """The modules whose names match `h.*`, a star standing for no dot; raises UsageError for fewer than two."""
    depth = pattern.count(".")
    names = [name for name, _ in model.named_modules() if name.count(".") == depth and fnmatchcase(name, pattern)]
    if len(names) < 2:
        seen = ", ".join(f"{own.names[0]} … {own.names[-1]}" for own in candidates(model)[:3]) or "none"
        raise UsageError(
            f"--blocks: {pattern!r} matches {len(names)} modules, two at least are needed; like ones: {seen}"
        )
    return Blocks(tuple(names))


@contextmanager
def watched(model: nn.Module, blocks: Blocks) -> Iterator[list[torch.Tensor]]:
    """Within, every pass of the model leaves x_0 … x_L in the list, as they were when they were made."""
    states: list[torch.Tensor] = []

    def before(module: nn.Module, args: Any, kwargs: Any) -> None:
        states[:] = [_first((args, kwargs))]

    def after(module: nn.Module, args: Any, output: Any) -> None:
        states.append(_first(output))

    modules = [model.get_submodule(name) for name in blocks.names]
    handles: list[Any] = [modules[0].register_forward_pre_hook(before, with_kwargs=True)]
    handles += [module.register_forward_hook(after) for module in modules]
    try:
        yield states
    finally:
        for handle in handles:
            handle.remove()


def alike(states: Sequence[torch.Tensor]) -> bool:
    """Whether what left the blocks has one shape: so that it can be one stream."""
    return len(states) > 2 and len({tuple(x.shape) for x in states[1:]}) == 1 and states[0].dim() > 1


def _first(given: Any) -> torch.Tensor:
    for tensor in tensors(given):
        if tensor.is_floating_point():
            return tensor.detach().clone()
    return torch.empty(0)
