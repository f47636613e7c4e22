"""What is recorded around each update of a model that is watched, once the batch it is read on is known."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import torch
from torch import nn

from stabkit.own.watch.chain import WatchedChain
from stabkit.own.watch.inputs import WatchedBatch
from stabkit.own.watch.journal import Journal
from stabkit.own.watch.losses import Losses
from stabkit.own.watch.schedule import meets, reads, stride
from stabkit.results.own.cell import Broke, Facts

Row = tuple[str, int, Mapping[str, float], frozenset[str]]
"""(probe, step, values, whom no gradient reached)."""
Gradient = tuple[int, torch.Tensor, frozenset[str], torch.Tensor | None]
"""(update, squares, whom none reached, whether a scaler found what is not finite)."""
NOBODY: frozenset[str] = frozenset()


class Recording:
    """Of one watch; `begin` reads the model as it is."""

    def __init__(
        self,
        model: nn.Module,
        batch: WatchedBatch,
        journal: Journal,
        losses: Losses,
        optimizer: torch.optim.Optimizer | None,
        *,
        every: str | int,
        blocks: str,
        start: bool,
    ) -> None:
        self.chain = WatchedChain(model, batch, blocks, start)
        self.journal, self.losses, self.every = journal, losses, every
        self.optimizer = optimizer
        self.rate = float(optimizer.param_groups[0].get("lr", math.nan)) if optimizer else math.nan
        self._gradients: list[Gradient] = []
        self.notes: list[str] = []
        self._read_at = self._before = -1
        if optimizer is None:  # then an update is told of when it is done
            self.chain.weights.hold()

    def begin(self) -> None:
        """The first reading."""
        self.journal.begin(self.chain.sublayers)
        self._keep(self._read(0))

    def before(self, step: int) -> None:
        """Gradients that update `step` is about to use, at the first time that they are told of."""
        if step == self._before:  # an optimiser that calls its closure again
            return
        self._before = step
        if self.chain.changed(whole=reads(self.every, step)):
            said = f"from update {step} on other parameters are trained or stand in the model"
            self.notes.append(f"{said}; ‖θ_t − θ_0‖ is measured from there")
            self.journal.alarms.sublayers = self.chain.sublayers
        if step % stride(step) == 0 or reads(self.every, step):
            scale = getattr(self.optimizer, "grad_scale", None)  # of a fused optimiser, which unscales in its own step
            lost = getattr(self.optimizer, "found_inf", None)  # … and which then does not make it
            self._gradients.append((step, self.chain.gradients(scale), self.chain.missing(), lost))
        if self.optimizer is not None and reads(self.every, step + 1):
            self.chain.weights.hold()

    def after(self, step: int) -> None:
        """The model when `step` updates are done."""
        chain = self.chain
        if reads(self.every, step):
            rows = self._waiting()
            try:
                rows.append(("delta", step, chain.steps(), NOBODY))
                rows += self._read(step)
            finally:
                self._keep(rows)
        elif meets(self.every, step) if chain.mesh is not None else chain.device.type == "cpu" or self.journal.due:
            self._keep(self._waiting())
        if self.optimizer is None and reads(self.every, step + 1):
            chain.weights.hold()

    def end(self, step: int) -> None:
        """What is still to be read."""
        self._keep([*self._waiting(), *([] if self._read_at == step else self._read(step))])

    def settle(self) -> None:
        """Keep what waits on the device."""
        self._keep(self._waiting())

    def _keep(self, rows: Sequence[Row]) -> None:
        """After all that is done together with other processes: what fails here leaves none of them waiting."""
        for row in rows:
            self.journal.add(*row)

    def _read(self, step: int) -> list[Row]:
        """Activations at the weights as they are."""
        self._read_at = step
        tables = self.chain.activations(step).items()
        return [
            (probe, step, dict(zip(table.sites, table.values[-1].tolist(), strict=True)), NOBODY)
            for probe, table in tables
        ]

    def _waiting(self) -> list[Row]:
        """Losses and gradients, fetched from the device, in the order of their updates."""
        rows: list[Row] = [("loss", step, {"train": value}, NOBODY) for step, value in self.losses.taken().items()]
        waiting, self._gradients = self._gradients, []
        if waiting:
            norms = self.chain.norms([squares for _, squares, *_ in waiting])
            for (step, _, missing, lost), row in zip(waiting, norms, strict=True):
                if lost is None or not float(lost):
                    rows.append(("gradient", step, dict(zip(self.chain.groups, row, strict=True)), missing))
        return rows

    def facts(self, name: str, steps: int, notes: Sequence[str]) -> Facts:
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
            notes=(*notes, *self.notes, *chain.stream.notes),
            model=type(chain.model).__name__,
            parameters=sum(p.numel() for p in chain.model.parameters()),
            width=chain.reader.width,
            tokens=chain.reader.tokens,
            batch=chain.digest,
            start=math.nan,
            broke=Broke(step=lost.step, where=lost.sentence) if lost else None,
            optimizer=type(self.optimizer).__name__ if self.optimizer else "none",
            rate=self.rate,
        )
