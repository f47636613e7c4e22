"""What a watch is given: what cannot be watched is refused before a training begins, in one line each; the batch that
the model is read on is given, or a copy of the first that it is called with; losses as the user gives them."""

from __future__ import annotations

import copy
import sys
from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from stabkit.errors import UsageError
from stabkit.own.chain import updates
from stabkit.own.sublayers import run
from stabkit.own.sublayers.memory import tensors
from stabkit.own.sublayers.run import Call
from stabkit.own.watch.journal import say
from stabkit.own.watch.writers import TRACKERS, tracker

WRAPPERS = {"OptimizedModule": "_orig_mod", "DistributedDataParallel": "module", "DataParallel": "module"}
"""{class: where it keeps the model that it wraps}: torch.compile's and torch's parallel ones."""
UNREADABLE = {
    "FullyShardedDataParallel": "(FSDP1) keeps its weights in flat vectors",
    "DeepSpeedEngine": "hides its gradients",
    "PipelineModule": "splits the layers over processes",
    "PipelineStage": "splits the layers over processes",
}
"""{class of a module: why its chain cannot be read}."""
ALONE = 256
"""Losses of one update, more than gradients are accumulated over."""


def check(out: Any, name: Any, blocks: Any) -> None:
    """Raises UsageError for words that are none."""
    if not isinstance(out, (str, Path)):
        raise UsageError(f"watch: out must be the directory of the store, not {type(out).__name__}")
    for option, value in (("name", name), ("blocks", blocks)):
        if not isinstance(value, str):
            raise UsageError(f"watch: {option} must be one string, not {type(value).__name__}")


def absolute(out: str | Path) -> Path:
    """Where the store is, wherever the training goes; raises UsageError where the current folder is gone."""
    try:
        return Path(out).absolute()
    except OSError as error:
        raise UsageError(f"watch: out is {str(out)!r} in a folder that is gone; give an absolute one") from error


def refuse(model: nn.Module, optimizers: Sequence[Any], every: str | int, writer: Any, probe: Any) -> None:
    """Raises UsageError."""
    if not isinstance(model, nn.Module):
        raise UsageError(f"watch: model must be a torch.nn.Module, not {type(model).__name__}")
    for part in model.modules():
        if (known := UNREADABLE.get(type(part).__name__)) is not None:
            raise UsageError(f"watch: {type(part).__name__} {known}; watch the model under DDP or FSDP2 (fully_shard)")
    updates.refuse(optimizers, "watch")
    if not optimizers and probe is None:
        raise UsageError("watch: without an optimizer, give a probe batch and call step() after each update")
    if every != "log" and not (type(every) is int and every > 0):
        raise UsageError(f"watch: every must be 'log' or a number of updates, not {every!r}")
    if writer is not None and tracker(writer) is None:
        known = ", ".join(f"{kind.known_by} ({kind.name})" for kind in TRACKERS)
        raise UsageError(f"watch: a writer must have one of {known}; this is {type(writer).__name__}")
    run.refuse(model)
    if not any(p.requires_grad for p in model.parameters()):
        raise UsageError("watch: every parameter is frozen (requires_grad=False); there is nothing to train")
    own = {id(p) for p in model.parameters()}
    for optimizer in optimizers:
        if not own & updates.parameter_ids(optimizer):
            which = "the optimizer" if len(optimizers) == 1 else type(optimizer).__name__
            raise UsageError(f"watch: {which} holds none of the model's parameters")


def frozen(model: nn.Module, optimizers: Sequence[torch.optim.Optimizer]) -> str:
    """Which optimisers hold nothing of the model but what is frozen; "" for none."""
    trained = {id(p) for p in model.parameters() if p.requires_grad}
    idle = [optimizer for optimizer in optimizers if not trained & updates.parameter_ids(optimizer)]
    return f"all model parameters in {updates.name(idle)} are frozen" if idle else ""


def unwrapped(model: nn.Module) -> nn.Module:
    """The model as it was written."""
    while (inner := WRAPPERS.get(type(model).__name__)) is not None:
        model = getattr(model, inner)
    return model


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
            raise UsageError("probe: the model's arguments contain no tensor")
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
        self._handle = called.register_forward_pre_hook(self._called, with_kwargs=True)

    def _called(self, module: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
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


class Losses:
    """Of one watch, by update, kept where they lie until something is fetched anyway; of several for one update the
    last counts."""

    def __init__(self) -> None:
        self._held: dict[int, Any] = {}
        self._last, self._alone = -1, 0

    def give(self, step: int, value: Any) -> None:
        """Raises UsageError for what is no number, and where a later one was given."""
        own = isinstance(value, torch.Tensor)
        if own and value.numel() == 1 and not value.is_complex():
            value = value.detach().clone()
        elif own or not isinstance(value, (int, float)):
            what = f"{value.dtype} of shape {list(value.shape)}" if own else type(value).__name__
            raise UsageError(f"a loss must be a number or a one-element tensor, not {what}")
        elif isinstance(value, int) and value.bit_length() > sys.float_info.max_exp:
            raise UsageError("a loss must be a number, not one of hundreds of digits")
        if step < self._last or (step == self._last and step not in self._held):
            raise UsageError(f"the loss of update {step} came after that of update {self._last}")
        self._alone = self._alone + 1 if step == self._last else 0
        self._held[step] = value
        self._last = step
        if self._alone == ALONE:
            say(f"{ALONE} losses came after update {step}, but no update: was the watched optimizer replaced?")

    def taken(self) -> dict[int, float]:
        """Those since the last time, fetched."""
        held, self._held = self._held, {}
        return {step: float(value) for step, value in held.items()}
