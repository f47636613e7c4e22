"""The batch that a watched model is read on: given, or a copy of the first that it is called with."""

from __future__ import annotations

import copy
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class WatchedBatch:
    """What a model is read on, and in which precision."""

    call: Call
    autocast: tuple[str, torch.dtype] | None
    """(kind of device, type) where the model is called within torch.autocast."""

    @classmethod
    def of(cls, call: Call, model: nn.Module) -> WatchedBatch:
        """A copy that nobody else writes to and that holds no graph; autocast as it is now."""
        kind = next(model.parameters()).device.type
        on = torch.amp.is_autocast_available(kind) and torch.is_autocast_enabled(kind)
        held = Call(_copied(call.args), _copied(dict(call.kwargs)))
        return cls(held, (kind, torch.get_autocast_dtype(kind)) if on else None)

    def fresh(self) -> Call:
        """What a model may do with as it likes."""
        return Call(_copied(self.call.args), _copied(dict(self.call.kwargs)))

    def precision(self) -> torch.autocast:
        """Within, the model runs as it was called; weights cast for it are not kept."""
        kind, dtype = self.autocast or ("cpu", torch.bfloat16)
        return torch.autocast(kind, dtype=dtype, enabled=self.autocast is not None, cache_enabled=False)

    def check(self, model: nn.Module) -> None:
        """UsageError for a batch that the model cannot be read on: no tensor, or another device than the model's."""
        given = tensors((self.call.args, dict(self.call.kwargs)))
        if not given:
            raise UsageError("probe: no tensor is among what the model is to be called with")
        devices = {p.device for p in model.parameters()}
        strange = {tensor.device for tensor in given} - devices
        if strange and len(devices) == 1:
            here, there = next(iter(devices)), next(iter(strange))
            raise UsageError(f"probe: the batch is on {there}, the model on {here}; move it with .to({str(here)!r})")


class FirstCall:
    """Keeps what the model is first called with, then lets go of it."""

    def __init__(self, model: nn.Module) -> None:
        self.batch: WatchedBatch | None = None
        called: Any = model
        while type(called).__name__ in ("DistributedDataParallel", "DataParallel"):  # which move a batch to its device
            called = called.module
        self._handle = called.register_forward_pre_hook(self._seen, with_kwargs=True)

    def _seen(self, module: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        self._handle.remove()
        self.batch = WatchedBatch.of(Call(args, dict(kwargs)), module)

    def forget(self) -> None:
        """Without a call, no more of them."""
        self._handle.remove()


def _copied(given: Any) -> Any:
    if isinstance(given, torch.Tensor):
        return given.detach().clone()
    if isinstance(given, MutableMapping):
        held = copy.copy(given)
        for name, value in given.items():
            held[name] = _copied(value)
        return held
    if isinstance(given, tuple) and hasattr(given, "_fields"):
        return type(given)(*map(_copied, given))
    if type(given) in (list, tuple):
        return type(given)(_copied(value) for value in given)
    return given
