"""Like blocks, where a model has no sums x + f(x): gated, concatenated or convolutional residuals.

The blocks are children of one class in an nn.ModuleList or nn.Sequential, of which each reads what the one before it
left and all leave one shape, or what a pattern like `h.*` names. x_i is the first tensor of a block's output, x_0 what
the first is given.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import torch
from torch import nn

from stabkit.errors import UsageError
from stabkit.own.sublayers.memory import full, tensors


@dataclass(frozen=True, slots=True)
class Blocks:
    """The names of a model's blocks, in the order in which they run."""

    names: tuple[str, ...]


def candidates(model: nn.Module) -> list[Blocks]:
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


def named(model: nn.Module, pattern: str) -> Blocks:
    """The modules whose names match `h.*`, a star standing for no dot; raises UsageError for fewer than two."""
    depth = pattern.count(".")
    names = [name for name, _ in model.named_modules() if name.count(".") == depth and fnmatchcase(name, pattern)]
    if len(names) < 2:
        seen = ", ".join(f"{own.names[0]} … {own.names[-1]}" for own in candidates(model)[:3]) or "none"
        raise UsageError(
            f"--blocks: {pattern!r} matches {len(names)} modules; at least two are needed. Similar ones: {seen}"
        )
    return Blocks(tuple(names))


@dataclass(frozen=True, slots=True)
class Passed:
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


@contextmanager
def watched(model: nn.Module, blocks: Blocks) -> Iterator[Passed]:
    """Within, a pass of the model leaves what its blocks read and made, as it was when it was made."""
    passed = Passed([], [], len(blocks.names))

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
