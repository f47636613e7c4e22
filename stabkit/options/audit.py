"""Options of an audit, and what a factory returns → the audit of a user's own model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn

from stabkit import methods
from stabkit.errors import UsageError
from stabkit.methods.base import Stack
from stabkit.options import ranges
from stabkit.own import audit as own_audit
from stabkit.own import factory
from stabkit.own.audit import Audit
from stabkit.own.probe import built_model

STACKS: tuple[Stack, ...] = ("encoder", "decoder")
DEPTH = 6
"""Of a factory that needs one, where none is given."""


def audit(factory: str, method: str | None, depths: Any, arch: str | None) -> Audit:
    """The factory's model compared with the recipe; raises UsageError that names the option."""
    recipe = methods.build(*methods.parse(method)) if method else None
    n, m = depth(depths, arch or "encoder-decoder") if depths else (None, None)
    module, inputs = model(factory, n or m or DEPTH)
    if depths and not arch and not _is_pair(depths) and len(found := own_audit.stacks_of(module, inputs)) == 1:
        n, m = (n, 0) if "encoder" in found else (0, m)  # one stack, as it was found to be
    if arch and not depths:
        asked = ranges.stacks("--arch", arch) == ranges.stacks("--arch", "encoder-decoder")
        if asked != (len(own_audit.stacks_of(module, inputs)) == 2):
            there = "one stack" if asked else "an encoder and a decoder with cross-attention"
            raise UsageError(f"--arch {arch}: the model has {there}; leave --arch out, or give --depths too")
    stacks = ranges.stacks("--arch", arch) if arch else (0, 0)
    said = [stack for stack, there in zip(STACKS, stacks, strict=True) if there]
    return own_audit.audit(module, recipe, n, m, inputs, said)


def depth(depths: Any, arch: str) -> tuple[int, int]:
    """(N, M) of `18x12`, or of `18` and an architecture."""
    pairs = ranges.depths("--depths", depths, ranges.stacks("--arch", arch))
    if len(pairs) > 1:
        raise UsageError(f"--depths: a model has one depth, like 18x12, not {len(pairs)}")
    return pairs[0]


def model(name: str, depth: int | None) -> tuple[nn.Module, Any]:
    """(module, inputs) of a factory; called with the depth if it takes one, by a fixed chance.

    It returns (module, inputs), or what `stabkit probe` takes (`own/probe/built_model.py`): the inputs are then what
    the loss calls the module with at step 0, None where there is no loss.
    """
    built_model.seeded(0)
    return of(factory.call("FACTORY", name, depth), name)


def of(given: Any, name: str) -> tuple[nn.Module, Any]:
    """(module, inputs) of what a factory returned."""
    if isinstance(given, tuple) and len(given) == 2 and isinstance(given[0], nn.Module):
        if _is_inputs(given[1]):
            return given
        if not callable(given[1]) and not isinstance(given[1], tuple):
            kind = type(given[1]).__name__
            raise UsageError(f"FACTORY: the inputs of {name} must be a tuple or a dict, or a loss, not {kind}")
    module, loss = built_model.model_and_loss(given, f"FACTORY: {name}")
    return module, built_model.called(module, loss, f"FACTORY: {name}")[0] if loss is not None else None


def _is_inputs(given: Any) -> bool:
    """Whether a model is called with this, rather than trained with it: (loss, batches) is a pair too."""
    begins_with_a_loss = isinstance(given, tuple) and bool(given) and callable(given[0])
    return isinstance(given, (tuple, list, Mapping, Tensor)) and not begins_with_a_loss


def _is_pair(depths: Any) -> bool:
    """Whether both stacks are named, which no architecture of one stack takes."""
    try:
        depth(depths, "decoder-only")
    except UsageError:
        return True
    return False
