"""What is recorded around each update of a model that is watched, once the batch it is read on is known."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import nn

from stabkit.errors import UsageError
from stabkit.own.sublayers.run import Call
from stabkit.own.watch.chain import Chain
from stabkit.own.watch.journal import Journal
from stabkit.own.watch.schedule import reads, stride
from stabkit.results.own.cell import Broke, Facts

Row = tuple[str, int, Mapping[str, float], frozenset[str]]
"""(probe, step, values, whom no gradient reached)."""
NOBODY: frozenset[str] = frozenset()


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
        self._keep(self._read(0))

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
            self._keep([*self._waiting(), ("delta", step, self.chain.steps(), NOBODY), *self._read(step)])
        elif self.chain.device.type == "cpu" and self.chain.mesh is None:  # else it would wait for others
            self._keep(self._waiting())

    def end(self, step: int) -> None:
        """What is still to be read."""
        self._keep([*self._waiting(), *([] if self._read_at == step else self._read(step))])

    def _keep(self, rows: Sequence[Row]) -> None:
        """After all that is done together with other processes: what fails here leaves none of them waiting."""
        for row in rows:
            self.journal.add(*row)

    def _read(self, step: int) -> list[Row]:
        """Activations at the weights as they are."""
        self._read_at = step
        tables = self.chain.activations(step).items()
        return [
            (probe, step, dict(zip(own.sites, own.values[-1].tolist(), strict=True)), NOBODY) for probe, own in tables
        ]

    def _waiting(self) -> list[Row]:
        """Losses and gradients, fetched from the device, in the order of their updates."""
        losses, self._losses = self._losses, {}
        waiting, self._gradients = self._gradients, []
        rows: list[Row] = [("loss", step, {"train": float(value)}, NOBODY) for step, value in losses.items()]
        if waiting:
            norms = self.chain.norms([squares for _, squares, _ in waiting])
            for (step, _, missing), own in zip(waiting, norms, strict=True):
                rows.append(("gradient", step, dict(zip(self.chain.groups, own, strict=True)), missing))
        return rows

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
