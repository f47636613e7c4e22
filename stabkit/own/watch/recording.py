"""What is recorded around each update of a model that is watched, once the batch it is read on is known."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from stabkit.errors import UsageError
from stabkit.own.sublayers.run import Call
from stabkit.own.watch.chain import Chain
from stabkit.own.watch.journal import Journal
from stabkit.own.watch.schedule import reads, stride
from stabkit.results.own.cell import Broke, Facts


class Recording:
    """Of one watch, from the model as it is now."""

    def __init__(
        self, model: nn.Module, call: Call, journal: Journal, *, every: str | int, blocks: str, start: bool
    ) -> None:
        self.chain, self.journal, self.every = Chain(model, call, blocks, start), journal, every
        journal.begin(self.chain.sublayers)
        self._losses: dict[int, Any] = {}
        self._gradients: list[tuple[int, torch.Tensor, frozenset[str]]] = []
        self._read_at = self._lost = -1
        self._read(0)

    def loss(self, step: int, value: Any) -> None:
        """Kept where it lies until something is fetched anyway. Raises UsageError where a later one was given."""
        if step <= self._lost:
            raise UsageError(f"the loss of update {step} came after that of update {self._lost}")
        self._losses[step] = value
        self._lost = step

    def before(self, step: int, scale: torch.Tensor | None) -> None:
        """Gradients that update `step` is about to use, times `scale` where a scaler has left it on them."""
        if step % stride(step) == 0 or reads(self.every, step):
            self._gradients.append((step, self.chain.gradients(scale), self.chain.missing()))
        if reads(self.every, step + 1):
            self.chain.weights.hold()

    def after(self, step: int) -> None:
        """The model when `step` updates are done."""
        if reads(self.every, step):
            self.journal.add("delta", step, self.chain.steps())
            self._read(step)
        elif self.chain.device.type == "cpu":  # elsewhere it would wait for the device
            self._settle()

    def end(self, step: int) -> None:
        """What is still to be read."""
        if self._read_at != step:
            self._read(step)
        self._settle()

    def _read(self, step: int) -> None:
        """Activations at the weights as they are; whatever waited on the device is fetched."""
        self._settle()
        self._read_at = step
        for probe, table in self.chain.activations(step).items():
            self.journal.add(probe, step, dict(zip(table.sites, table.values[-1].tolist(), strict=True)))

    def _settle(self) -> None:
        """Fetch losses and gradients from the device, in the order of their updates."""
        losses, self._losses = self._losses, {}
        for step, value in losses.items():
            self.journal.add("loss", step, {"train": float(value)})
        waiting, self._gradients = self._gradients, []
        if waiting:
            rows = torch.stack([norms for _, norms, _ in waiting]).tolist()
            for (step, _, missing), row in zip(waiting, rows, strict=True):
                self.journal.add("gradient", step, dict(zip(self.chain.groups, row, strict=True)), missing)

    def facts(self, name: str, steps: int, optimizer: torch.optim.Optimizer | None, notes: Sequence[str]) -> Facts:
        """What is known after so many updates. A training has no factory, depth, seed or first loss."""
        chain, lost = self.chain, self.journal.alarms.told.get("finite")
        return Facts(
            factory=name,
            depth=None,
            lr=0.0,
            seed=0,
            steps=steps,
            sublayers=chain.sublayers,
            how=chain.stream.how,
            notes=(*notes, *chain.stream.notes),
            model=type(chain.model).__name__,
            parameters=sum(p.numel() for p in chain.model.parameters()),
            width=chain.reader.width,
            tokens=chain.reader.tokens,
            batch=chain.batch,
            start=math.nan,
            broke=Broke(step=lost.step, where=lost.sentence) if lost else None,
            optimizer=type(optimizer).__name__ if optimizer else "none",
            rate=float(optimizer.param_groups[0].get("lr", math.nan)) if optimizer else math.nan,
        )
