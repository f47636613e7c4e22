"""The batch that a watched model is read on: given, or a copy of the first that it is called with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

from stabkit.errors import UsageError
from stabkit.own.sublayers.memory import tensors
from stabkit.own.sublayers.run import Call

WRAPPERS = {"OptimizedModule": "_orig_mod", "DistributedDataParallel": "module", "DataParallel": "module"}
"""{class: where it keeps the model that it wraps}: torch.compile's and torch's parallel ones."""


def unwrapped(model: nn.Module) -> nn.Module:
    """The model as it was written."""
    while (inner := WRAPPERS.get(type(model).__name__)) is not None:
        model = getattr(model, inner)
    return model


def stepped(optimizer: Any) -> Any:
    """The optimiser that steps, inside accelerate's or Lightning's."""
    inner = getattr(optimizer, "optimizer", None)
    return inner if isinstance(inner, torch.optim.Optimizer) else optimizer


class FirstCall:
    """Keeps what the model is first called with, then lets go of it."""

    def __init__(self, model: nn.Module) -> None:
        self.call: Call | None = None
        self._handle = model.register_forward_pre_hook(self._seen, with_kwargs=True)

    def _seen(self, module: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        self._handle.remove()
        self.call = copied(Call(args, dict(kwargs)))

    def forget(self) -> None:
        """Without a call, no more of them."""
        self._handle.remove()


def copied(call: Call) -> Call:
    """The same, of tensors that nobody else writes to and that hold no graph."""
    return Call(_copied(call.args), _copied(dict(call.kwargs)))


def _copied(given: Any) -> Any:
    if isinstance(given, torch.Tensor):
        return given.detach().clone()
    if isinstance(given, dict):
        return {name: _copied(value) for name, value in given.items()}
    if isinstance(given, (list, tuple)) and type(given) in (list, tuple):
        return type(given)(_copied(value) for value in given)
    return given


def check(call: Call, model: nn.Module) -> None:
    """UsageError for a batch that the model cannot be read on: no tensor, or another device than the model's."""
    found = tensors((call.args, dict(call.kwargs)))
    if not found:
        raise UsageError("probe: no tensor is among what the model is to be called with")
    devices = {p.device for p in model.parameters()}
    strange = {one.device for one in found} - devices
    if strange and len(devices) == 1:
        here, there = next(iter(devices)), next(iter(strange))
        raise UsageError(f"probe: the batch is on {there}, the model on {here}; move it with .to({str(here)!r})")
