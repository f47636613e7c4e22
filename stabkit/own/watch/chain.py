"""A model whose residual stream was found, and what reads it: activations, gradients, steps of the weights."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import nn

from stabkit.errors import UsageError
from stabkit.own.chain.gradients import (
    NONE,
    Groups,
    Weights,
    flat,
    gradient_squares,
    groups_of,
    mesh_of,
    sublayers,
    summed,
)
from stabkit.own.chain.reader import Reader, masks
from stabkit.own.chain.updates import parameter_ids
from stabkit.own.sublayers import reading, run
from stabkit.own.sublayers.memory import digest
from stabkit.own.watch.distributed import reshard, whole
from stabkit.own.watch.inputs import WatchedBatch
from stabkit.own.watch.still import described
from stabkit.results.records import Recorder, Table

Optimizers = Sequence[torch.optim.Optimizer]
NOBODYS = -1
"""Stands where an optimiser's identity would."""


@dataclass(frozen=True, slots=True)
class GradientReading:
    """‖∂L/∂θ‖² of one update, on the device: a part before each optimiser's step."""

    step: int
    groups: Groups
    parts: list[tuple[list[int], torch.Tensor]] = field(default_factory=list)
    """(places among all parameters of the groups, float64 squares)."""
    lost: list[torch.Tensor] = field(default_factory=list)
    """What a scaler found, for a fused optimiser that will not step where it is not 0."""

    def whole(self) -> torch.Tensor:
        """(parameters,) squares, NONE where there is none."""
        count = sum(map(len, self.groups.values()))
        first = self.parts[0][1]
        if len(first) == count:
            return first
        every = first.new_full((count,), NONE)
        for places, squares in self.parts:
            every[places] = squares.to(every.device)
        return every


class OtherSublayers(Exception):
    """The model has other sub-layers than before: what is recorded from here on is of another."""


class WatchedChain:
    """Of one model, read on one batch."""

    def __init__(self, model: nn.Module, batch: WatchedBatch, optimizers: Optimizers, blocks: str, start: bool) -> None:
        self.model, self.batch, self.optimizers, self.blocks = model, batch, tuple(optimizers), blocks
        call = batch.call
        self.stream = self._found()
        self._stale = False
        """Whether parameters came or went since the stream was found."""
        self.groups = groups_of(model, self.stream)
        self.reader = Reader(self.stream, masks(model, call), model)
        self.weights, self._start = Weights(self.groups, start), start
        self._known = self._parameters()
        self.mesh = mesh_of(self.groups)
        self.device = next(model.parameters()).device
        self.digest = digest((call.args, dict(call.kwargs)))
        self.sublayers = sublayers(self.stream, self.groups)
        self._places: dict[int, list[int]] = {}

    def _found(self) -> reading.ResidualStream:
        with whole(self.model), run.untouched(self.model), self.batch.precision():
            return reading.found(self.model, self.batch.fresh(), self.blocks)

    def _find_again(self) -> None:
        """The stream, after blocks were frozen, replaced, written otherwise. Raises OtherSublayers."""
        stream, self._stale = self._found(), False
        if [own.name for own in stream.sublayers] != [own.name for own in self.stream.sublayers]:
            raise OtherSublayers
        self.stream = self.reader.stream = stream
        self._renew()

    def _states(self) -> reading.States:
        with run.untouched(self.model), self.batch.precision():
            return self.stream.read(self.model, self.batch.fresh())

    def repeats(self) -> bool:
        """Whether two readings at the weights as they are end in equal bits; the model is as before afterwards."""
        try:
            first, second = (digest([states.output, states.logits]) for states in (self._states() for _ in range(2)))
        finally:
            reshard(self.model)
        return first == second

    def activations(self, step: int) -> Mapping[str, Table]:
        """A row of every quantity of activations at the weights as they are; the model is as before afterwards. Raises
        OtherSublayers."""
        recorder = Recorder()
        try:
            if self._stale:
                self._find_again()
            try:
                states = self._states()
            except UsageError:  # its operations are not those that were found
                self._find_again()
                states = self._states()
            self.reader.read(recorder, step, states)
        finally:
            reshard(self.model)
        return recorder.tables()

    def _parameters(self) -> list[tuple[nn.Parameter, bool]]:
        return [(p, p.requires_grad) for p in self.model.parameters()]

    def changed(self, whole: bool) -> bool:
        """Whether other parameters are trained than before, which are read from now on. `whole`: look for replaced ones
        too, not only for those frozen or let go of."""
        if whole:
            self._places.clear()
        if not whole and all(p.requires_grad is was for p, was in self._known):
            return False
        now = self._parameters()
        if len(now) == len(self._known) and all(
            p is q and a is b for (p, a), (q, b) in zip(now, self._known, strict=True)
        ):
            return False
        self._stale = self._stale or {id(p) for p, _ in now} != {id(p) for p, _ in self._known}
        self._known = now
        self._renew()
        return True

    def _renew(self) -> None:
        """What follows from the stream and from which parameters are trained."""
        self.groups = groups_of(self.model, self.stream)
        self._places.clear()
        self.weights = Weights(self.groups, self._start)
        self.weights.hold()
        pairs = zip(self.sublayers, sublayers(self.stream, self.groups), strict=True)
        self.sublayers = tuple(replace(new, parameters=max(was.parameters, new.parameters)) for was, new in pairs)

    def read_gradients(self, reading: GradientReading, optimizer: torch.optim.Optimizer | None) -> None:
        """Of the parameters that this optimiser is about to step; without one of all. Those that none of them steps are
        read with the first."""
        scale = getattr(optimizer, "grad_scale", None)  # of a fused optimiser, which unscales in its own step
        lost = getattr(optimizer, "found_inf", None)  # … and which then does not make it
        places = self._of(optimizer)
        if not reading.parts and optimizer is not None and (idle := self._unstepped()):
            places = sorted({*places, *idle})
        parameters = flat(self.groups)
        squares = gradient_squares([parameters[i] for i in places], self.mesh, scale)
        reading.parts.append((places, squares))
        reading.lost.extend([] if lost is None else [lost])

    @property
    def names(self) -> dict[str, list[str]]:
        """{site: its parameters' names}."""
        known = {id(p): name for name, p in self.model.named_parameters()}
        return {site: [known[id(p)] for p in own] for site, own in self.groups.items()}

    @property
    def causes(self) -> dict[str, str]:
        """{name: why a parameter may not move}: a rate of 0, half precision."""
        rates = {
            id(p): group.get("lr") for own in self.optimizers for group in own.param_groups for p in group["params"]
        }
        causes = {}
        for name, p in self.model.named_parameters():
            if id(p) in rates and not rates[id(p)]:
                causes[name] = "its rate is 0"
            elif p.dtype in (torch.bfloat16, torch.float16):
                kind = str(p.dtype).removeprefix("torch.")
                causes[name] = f"weights in {kind}: steps below half a unit in the last place are lost"
        return causes

    @property
    def unstepped(self) -> list[str]:
        """Tensors to be trained that no optimiser given steps."""
        names = [name for own in self.names.values() for name in own]
        return [names[place] for place in self._unstepped()]

    def owned(self) -> Iterator[str]:
        """What is to be said of weights that no optimiser steps: they are not the model's, or in none given."""
        if self.stream.unregistered:
            yield self.stream.unregistered
        if self.unstepped:
            which = described(self.unstepped, self.stream.kinds)
            yield f"no given optimizer steps {which}, although trainable"

    def forget_places(self) -> None:
        """Other optimisers step from now on."""
        self._places.clear()

    def _unstepped(self) -> list[int]:
        """The places of parameters that no optimiser given steps; none where none is given."""
        if not self.optimizers:
            return []
        if NOBODYS not in self._places:
            stepped = {place for optimizer in self.optimizers for place in self._of(optimizer)}
            self._places[NOBODYS] = [place for place in range(len(flat(self.groups))) if place not in stepped]
        return self._places[NOBODYS]

    def _of(self, optimizer: torch.optim.Optimizer | None) -> list[int]:
        if id(optimizer) not in self._places:
            mine = parameter_ids(optimizer) if optimizer is not None else None
            parameters = enumerate(flat(self.groups))
            self._places[id(optimizer)] = [i for i, p in parameters if mine is None or id(p) in mine]
        return self._places[id(optimizer)]

    def left_of(self, moved: torch.Tensor) -> torch.Tensor:
        """How far the weights are from where `weights.hold()` found them, which is let go of, over how far they `moved`
        (parameters,) then: 1 where nothing was written to them since, no number where they did not move."""
        now = self.weights.away()
        self.weights.release()
        return (now / moved.sum()).sqrt()

    def squares(self, readings: Sequence[GradientReading]) -> list[torch.Tensor]:
        """(parameters,) float64 ‖∂L/∂θ‖² of each reading; all processes that hold a part call it together."""
        whole = [reading.whole() for reading in readings]
        if not whole:
            return []
        return list(torch.split(summed(torch.cat(whole), self.mesh).cpu(), [len(own) for own in whole]))

    def steps(self) -> tuple[dict[str, float], torch.Tensor]:
        """What the weights moved since `weights.hold()`; (parameters,) ‖Δθ‖² of each."""
        moved, squares = self.weights.changes()
        if not self.optimizers:
            self.weights.release()
        names = [name + mark for mark in moved for name in self.groups]
        return dict(zip(names, torch.cat(list(moved.values())).tolist(), strict=True)), squares
