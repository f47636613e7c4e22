"""Options of an audit, and what a factory returns → the audit of a user's own model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn

from stabkit import methods
from stabkit.errors import UsageError
from stabkit.options import ranges
from stabkit.own import audit as own_audit
from stabkit.own import factory
from stabkit.own.audit import Audit
from stabkit.own.probe import built_model


def audit(factory: str, method: str | None, depths: Any, arch: str | None) -> Audit:
    """The factory's model compared with the recipe; raises UsageError that names the option."""
    recipe = methods.build(*methods.parse(method)) if method else None
    n, m = depth(depths, arch or "encoder-decoder") if depths else (None, None)
    module, inputs = model(factory, n or m)
    if depths and not arch and not _is_pair(depths) and not own_audit.both(module, inputs):
        n = 0  # one stack, as it was found to be
    if arch and not depths:
        asked = ranges.stacks("--arch", arch) == ranges.stacks("--arch", "encoder-decoder")
        if asked != own_audit.both(module, inputs):
            there = "one stack" if asked else "an encoder and a decoder with cross-attention"
            raise UsageError(f"--arch {arch}: the model has {there}; leave --arch out, or give --depths too")
    return own_audit.audit(module, recipe, n, m, inputs)


def depth(depths: Any, arch: str) -> tuple[int, int]:
    """(N, M) of `18x12`, or of `18` and an architecture."""
    pairs = ranges.depths("--depths", depths, ranges.stacks("--arch", arch))
    if len(pairs) > 1:
        raise UsageError(f"--depths: a model has one depth, like 18x12, not {len(pairs)}")
    return pairs[0]


def model(name: str, depth: int | None) -> tuple[nn.Module, Any]:
    """(module, inputs) of a factory; called with the depth if it takes one, by a fixed chance.

    It returns the module alone (then there are no inputs), (module, inputs), or what `stabkit probe` takes: (module,
    loss), and with them an optimizer; the inputs are then what the loss calls the module with.
    """
    built_model.seeded(0)
    given = factory.call("FACTORY", name, depth)
    if isinstance(given, tuple) and len(given) in (2, 3) and isinstance(given[0], nn.Module) and callable(given[1]):
        return given[0], built_model.called(given[0], given[1], name)[0]
    module, inputs = given if isinstance(given, tuple) and len(given) == 2 else (given, None)
    if not isinstance(module, nn.Module):
        kind = type(module).__name__
        raise UsageError(f"FACTORY: {name} must return a torch.nn.Module, alone or with inputs or a loss, not {kind}")
    if inputs is not None and not isinstance(inputs, (tuple, list, Mapping, Tensor)):
        raise UsageError(f"FACTORY: the inputs of {name} must be a tuple or a dict, not {type(inputs).__name__}")
    return module, inputs


def _is_pair(depths: Any) -> bool:
    """Whether both stacks are named, which no architecture of one stack takes."""
    try:
        depth(depths, "decoder-only")
    except UsageError:
        return True
    return False
