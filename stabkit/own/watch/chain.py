"""A model whose residual stream was found, and what reads it: activations, gradients, steps of the weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import torch
from torch import nn

from stabkit.own.chain.gradients import Weights, arrived, gradient_squares, groups_of, mesh_of, norms, sublayers
from stabkit.own.chain.reader import Reader, masks
from stabkit.own.sublayers import reading, run
from stabkit.own.sublayers.memory import digest
from stabkit.own.watch.distributed import reshard, whole
from stabkit.own.watch.inputs import WatchedBatch
from stabkit.results.records import Recorder, Table


class WatchedChain:
    """Of one model, read on one batch."""

    def __init__(self, model: nn.Module, batch: WatchedBatch, blocks: str, start: bool) -> None:
        self.model, self.batch = model, batch
        call = batch.call
        with whole(model), run.untouched(model), batch.precision():
            self.stream = reading.found(model, batch.fresh(), blocks)
        self.groups = groups_of(model, self.stream)
        self.reader = Reader(self.stream, masks(model, call))
        self.weights, self._start = Weights(self.groups, start), start
        self._known = self._parameters()
        self.mesh = mesh_of(self.groups)
        self.device = next(model.parameters()).device
        self.digest = digest((call.args, dict(call.kwargs)))
        self.sublayers = sublayers(self.stream, self.groups)

    def activations(self, step: int) -> Mapping[str, Table]:
        """A row of every quantity of activations at the weights as they are; the model is as before afterwards."""
        recorder = Recorder()
        try:
            with run.untouched(self.model), self.batch.precision():
                states = self.stream.read(self.model, self.batch.fresh())
            self.reader.read(recorder, step, states)
        finally:
            reshard(self.model)
        return recorder.tables()

    def _parameters(self) -> list[tuple[nn.Parameter, bool]]:
        return [(p, p.requires_grad) for p in self.model.parameters()]

    def changed(self, whole: bool) -> bool:
        """Whether other parameters are trained than before, which are read from now on. `whole`: look for replaced ones
        too, not only for those frozen or let go of."""
        if not whole and all(p.requires_grad is was for p, was in self._known):
            return False
        now = self._parameters()
        if len(now) == len(self._known) and all(
            p is q and a is b for (p, a), (q, b) in zip(now, self._known, strict=True)
        ):
            return False
        self.groups, self._known = groups_of(self.model, self.stream), now
        self.weights = Weights(self.groups, self._start)
        self.weights.hold()
        pairs = zip(self.sublayers, sublayers(self.stream, self.groups), strict=True)
        self.sublayers = tuple(replace(new, parameters=max(was.parameters, new.parameters)) for was, new in pairs)
        return True

    def gradients(self, scale: torch.Tensor | None) -> torch.Tensor:
        """(groups,) ‖∂L/∂θ_i‖² of what lies in this process, on the model's device: for `norms`."""
        return gradient_squares(self.groups, scale)

    def norms(self, squares: Sequence[torch.Tensor]) -> list[list[float]]:
        """(readings × groups) ‖∂L/∂θ_i‖; all processes that hold a part call it together."""
        rows: list[list[float]] = norms(torch.stack(list(squares)), self.mesh).tolist()
        return rows

    def missing(self) -> frozenset[str]:
        """Groups that no gradient reached."""
        return frozenset(name for name, parameters in self.groups.items() if not arrived(parameters))

    def steps(self) -> dict[str, float]:
        """What the weights moved since `weights.hold()`, which is let go of."""
        moved = self.weights.moved()
        self.weights.release()
        names = [name + mark for mark in moved for name in self.groups]
        return dict(zip(names, torch.cat(list(moved.values())).tolist(), strict=True))
