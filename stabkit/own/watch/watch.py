"""`stabkit.watch(model, optimizer)`: two lines in a training loop, and the chain is recorded and warned of.

Everything happens at the optimiser's step hooks: gradients before every update (after accumulation, all-reduce and
unscaling), activations and the weights' step after those that `schedule.py` names, in an eager eval forward of our own.
No hook stands in a training forward, save for the first call where no probe batch is given. After the first update
nothing is raised: a watch that fails says so once, stops, and training goes on.
"""

from __future__ import annotations

import math
import os
import secrets
import time
import warnings
import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn

from stabkit.errors import StabkitError, StoreError, UsageError
from stabkit.own.chain.gradients import Groups, Weights, gradient_norms, groups_of
from stabkit.own.chain.reader import Reader, masks
from stabkit.own.sublayers import reading, run
from stabkit.own.sublayers.memory import digest
from stabkit.own.sublayers.run import Call
from stabkit.own.watch.inputs import FirstCall, check, copied, unwrapped
from stabkit.own.watch.schedule import reads
from stabkit.results.own.alarm import Alarm, Alarms
from stabkit.results.own.cell import Broke, Facts, Sublayer
from stabkit.results.records import Recorder
from stabkit.storage.watched import WatchShelf
from stabkit.version import __version__

LARGEST_COPY = 1_000_000_000
"""Bytes of weights above which θ_0 is kept only if asked."""
EVERY_STEP = 4096
"""Updates up to which every gradient is kept; beyond, that many of each doubling."""
FLUSH = 30.0
"""Seconds between parts."""

_watched: weakref.WeakSet[nn.Module] = weakref.WeakSet()


class StabilityWarning(UserWarning):
    """A link of the chain is beyond its limit, or a watch has ended before its training."""


class Watch:
    """What `stabkit.watch` returns; see there."""

    def __init__(
        self,
        model: nn.Module,
        optimizer: torch.optim.Optimizer | None = None,
        *,
        probe: Any = None,
        every: str | int = "log",
        out: str | Path = "out",
        name: str = "",
        blocks: str = "",
        warn: bool = True,
        start: bool | None = None,
        writer: Any = None,
    ) -> None:
        self.model = unwrapped(model)
        _refuse(self.model, optimizer, every, writer)
        self.optimizer, self.every, self.blocks, self.warn, self.writer = optimizer, every, blocks, warn, writer
        self.shelf = WatchShelf(Path(out))
        kind = type(self.model).__name__
        self.id = f"{name or kind}-{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{secrets.token_hex(2)}"
        self.steps = 0
        """Updates since the watch began."""
        self.ended = ""
        self.notes: list[str] = []
        size = sum(p.numel() * p.element_size() for p in self.model.parameters())
        self.start = size <= LARGEST_COPY if start is None else start
        if not self.start:
            self.notes.append("‖θ_t − θ_0‖ is not recorded: it needs a copy of the weights; start=True keeps one")
        self._pid = os.getpid()
        self._chain: _Chain | None = None
        self._recorder = Recorder()
        self._loss: list[tuple[int, Any]] = []
        self._gradients: list[tuple[int, torch.Tensor]] = []
        self._flushed = time.monotonic()
        self._first: FirstCall | None = None
        self._handles: list[Any] = []
        _watched.add(self.model)
        try:
            if probe is None:
                self._first = FirstCall(model)
                self.notes.append("read on the first batch that the model was called with")
            else:
                call = copied(Call.of(probe))
                check(call, self.model)
                self._begin(call)
            if optimizer is not None:
                self._handles = [
                    optimizer.register_step_pre_hook(lambda *seen: self._guarded(self._before)),
                    optimizer.register_step_post_hook(lambda *seen: self._guarded(self._after)),
                ]
        except BaseException:
            self._let_go()
            raise

    # — what the user calls —

    @property
    def warnings(self) -> list[Alarm]:
        """Every warning so far."""
        return list(self._chain.alarms.told.values()) if self._chain else []

    def loss(self, value: Any) -> None:
        """Record the training loss of the update that comes next; a number or a tensor of one."""
        if not self.ended:
            self._loss.append((self.steps, value.detach() if isinstance(value, torch.Tensor) else value))

    def step(self) -> None:
        """After an update, where there is no optimiser whose hooks tell."""
        if self.optimizer is not None:
            raise UsageError("watch: the optimiser tells of its steps by itself; step() is for a watch without one")
        self._guarded(self._before)
        self._guarded(self._after)

    def close(self) -> None:
        """Write what is not yet written, and let go of model and optimiser. A second time nothing happens."""
        if self.ended:
            return
        self._guarded(self._last)
        self._end("closed")

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # — what the hooks do —

    def _begin(self, call: Call) -> None:
        stream = reading.found(self.model, call, self.blocks)
        self._chain = _Chain(self.model, call, stream, self.start)
        if self.optimizer is not None:
            held = {id(p) for group in self.optimizer.param_groups for p in group["params"]}
            if not held & {id(p) for p in self.model.parameters()}:
                raise UsageError("watch: the optimizer holds none of the model's parameters")
        self._read()

    def _before(self) -> None:
        if self._chain is None:
            if self._first is None or self._first.call is None:
                raise UsageError("the model was never called before its first update; give the watch a probe batch")
            self._begin(self._first.call)
        assert self._chain is not None
        scale = getattr(self.optimizer, "grad_scale", None)  # of a fused optimiser, which unscales in its own step
        if self.steps % _stride(self.steps) == 0 or reads(self.every, self.steps):
            self._gradients.append((self.steps, gradient_norms(self._chain.groups, scale)))
        if reads(self.every, self.steps + 1):
            self._chain.weights.hold()

    def _after(self) -> None:
        assert self._chain is not None
        self.steps += 1
        if reads(self.every, self.steps):
            moved = self._chain.weights.moved()
            self._chain.weights.release()
            names = tuple(name + mark for mark in moved for name in self._chain.groups)
            self._add("delta", self.steps, names, torch.cat(list(moved.values())).tolist())
            self._read()
        elif self._chain.device.type == "cpu":
            self._settle()

    def _last(self) -> None:
        if self._chain is not None:
            if self._chain.read_at != self.steps:
                self._read()
            self._settle()

    def _read(self) -> None:
        """Activations at the weights as they are; whatever waited on the device is fetched."""
        assert self._chain is not None
        self._settle()
        recorder = Recorder()
        self._chain.read(recorder, self.steps)
        for probe, table in recorder.tables().items():
            self._add(probe, self.steps, table.sites, table.values[-1].tolist())
        if time.monotonic() - self._flushed > FLUSH:
            self._flush()

    def _settle(self) -> None:
        """Fetch gradients and losses from the device, in the order of their updates."""
        assert self._chain is not None
        losses, self._loss = self._loss, []
        for step, value in dict(losses).items():
            self._add("loss", step, ("train",), [float(value)])
        waiting, self._gradients = self._gradients, []
        if waiting:
            values = torch.stack([norms for _, norms in waiting]).tolist()
            for (step, _), row in zip(waiting, values, strict=True):
                self._add("gradient", step, tuple(self._chain.groups), row)

    def _add(self, probe: str, step: int, sites: tuple[str, ...], values: list[float]) -> None:
        assert self._chain is not None
        self._recorder.add(probe, step, sites, values)
        row = dict(zip(sites, values, strict=True))
        if self.writer is not None:
            _write(self.writer, probe, step, row, self._chain.groups)
        if (alarm := self._chain.alarms.see(probe, step, row)) is not None and self.warn:
            warnings.warn(f"stabkit, update {alarm.step}: {alarm.sentence}", StabilityWarning, stacklevel=2)

    # — how it ends —

    def _guarded(self, act: Any) -> None:
        """Do it, unless this is the end or a fork; nothing of ours is raised in a training that has begun."""
        if self.ended:
            return
        if os.getpid() != self._pid:
            self._let_go()
            self.ended = "in a fork of the process that is watched"
            return
        try:
            act()
        except Exception as error:  # whatever it is, training goes on
            why = str(error) if isinstance(error, StabkitError) else f"{type(error).__name__}: {error}"
            warnings.warn(f"stabkit stops watching at update {self.steps}: {why}", StabilityWarning, stacklevel=2)
            self._end(f"stopped: {why}")

    def _end(self, how: str) -> None:
        self._let_go()
        self.ended = how
        self._flush()

    def _let_go(self) -> None:
        _watched.discard(self.model)
        for handle in self._handles:
            handle.remove()
        self._handles = []
        if self._first is not None:
            self._first.forget()

    def _flush(self) -> None:
        """Write a part; where that fails it is said, and the rows wait for the next."""
        self._flushed = time.monotonic()
        if self._chain is None:
            return
        about = {"stabkit": __version__, "torch": torch.__version__, "ended": self.ended, "steps": self.steps}
        try:
            self.shelf.append(self.id, self._facts(), self._recorder.tables(), self.warnings, about)
        except StoreError as error:
            warnings.warn(f"stabkit: {error}; training goes on, the rows are kept", StabilityWarning, stacklevel=2)
            return
        self._recorder = Recorder()

    def _facts(self) -> Facts:
        assert self._chain is not None
        chain = self._chain
        lost = chain.alarms.told.get("finite")
        rate = self.optimizer.param_groups[0].get("lr", math.nan) if self.optimizer else math.nan
        return Facts(
            factory=self.id,
            depth=None,
            lr=0.0,
            seed=0,
            steps=self.steps,
            sublayers=chain.sublayers,
            how=chain.stream.how,
            notes=(*self.notes, *chain.stream.notes),
            model=type(self.model).__name__,
            parameters=sum(p.numel() for p in self.model.parameters()),
            width=chain.reader.width,
            tokens=chain.reader.tokens,
            batch=chain.batch,
            start=math.nan,
            broke=Broke(step=lost.step, where=lost.sentence) if lost else None,
            optimizer=type(self.optimizer).__name__ if self.optimizer else "none",
            rate=float(rate),
        )


class _Chain:
    """A model whose residual stream was found, and what reads it."""

    def __init__(self, model: nn.Module, call: Call, stream: reading.Stream, start: bool) -> None:
        self.model, self.call, self.stream = model, call, stream
        self.groups: Groups = groups_of(model, stream)
        self.reader = Reader(stream, masks(model, call))
        self.weights = Weights(self.groups, start)
        self.device = next(model.parameters()).device
        self.batch = digest((call.args, dict(call.kwargs)))
        self.read_at = -1
        self.sublayers = tuple(
            Sublayer(stack=own.stack, layer=own.layer, kind=own.kind, parameters=len(self.groups[own.name]))
            for own in stream.sublayers
        )
        self.alarms = Alarms(self.sublayers)

    def read(self, recorder: Recorder, step: int) -> None:
        """A row of every quantity of activations."""
        self.read_at = step
        with run.untouched(self.model):
            self.reader.read(recorder, step, self.stream.read(self.model, self.call))


def _stride(step: int) -> int:
    """Between updates whose gradients are kept."""
    return 1 if step < EVERY_STEP else 2 ** (step // EVERY_STEP).bit_length()


def _refuse(model: nn.Module, optimizer: Any, every: str | int, writer: Any) -> None:
    if not isinstance(model, nn.Module):
        raise UsageError(f"watch: model is to be a torch.nn.Module, not {type(model).__name__}")
    if optimizer is not None and not isinstance(optimizer, torch.optim.Optimizer):
        raise UsageError(f"watch: optimizer is to be a torch.optim.Optimizer, not {type(optimizer).__name__}")
    if isinstance(optimizer, torch.optim.LBFGS):
        raise UsageError("watch: LBFGS steps by a closure, which hides its gradients; use another optimizer")
    if every != "log" and not (type(every) is int and every > 0):
        raise UsageError(f"watch: every is 'log' or a number of updates, not {every!r}")
    if writer is not None and not (hasattr(writer, "add_scalar") or hasattr(writer, "log")):
        raise UsageError("watch: a writer has add_scalar (TensorBoard) or log (Weights & Biases)")
    run.refuse(model)
    if not any(p.requires_grad for p in model.parameters()):
        raise UsageError("watch: every parameter is frozen (requires_grad=False); there is nothing to train")
    if model in _watched:
        raise UsageError("watch: this model is watched already; close() the other one first")


def _write(writer: Any, probe: str, step: int, row: Mapping[str, float], groups: Groups) -> None:
    scalars = {f"stabkit/{probe}/{site}": value for site, value in row.items() if math.isfinite(value)}
    if hasattr(writer, "add_scalar"):
        for tag, value in scalars.items():
            writer.add_scalar(tag, value, step)
    else:
        writer.log(scalars, step=step)
