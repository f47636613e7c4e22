"""What is recorded around each update of a model that is watched, once the batch it is read on is known; and after
which updates activations and steps are read."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import torch
from torch import nn

from stabkit.own.chain import updates
from stabkit.own.chain.gradients import absent, arrived, by_group, sizes_of
from stabkit.own.first_look import first_look
from stabkit.own.watch.chain import GradientReading, WatchedChain
from stabkit.own.watch.inputs import Losses, WatchedBatch
from stabkit.own.watch.journal import Journal
from stabkit.own.watch.still import Still
from stabkit.results.own.alarm import Alarm
from stabkit.results.own.cell import Broke, Facts
from stabkit.results.own.forecast import TESTED, USUAL
from stabkit.words import scientific, short

Row = tuple[str, int, Mapping[str, float], frozenset[str]]
"""(probe, step, values, whom no gradient reached)."""
NOBODY: frozenset[str] = frozenset()
DENSE = 16
"""Updates that are all read: where the chain of DeepNet §2 begins."""
MOST_ROWS = 4096
TOGETHER = 64
MOVES = (
    "your forward draws from something that is not the model's to put back (a generator, a counter, a hook), or its "
    "kernels are not deterministic: two readings at equal weights differ, so a reading may change your training"
)


def reads(every: str | int, step: int) -> bool:
    """`log`: 0 to 16, then the powers of √2, rounded up; a number: every so many."""
    if isinstance(every, int):
        return step % every == 0
    if step <= DENSE:
        return True
    power = math.floor(2 * math.log2(step) + 1e-9)
    return step in (math.ceil(2 ** (power / 2) - 1e-9), math.ceil(2 ** ((power - 1) / 2) - 1e-9))


def meets(every: str | int, step: int) -> bool:
    """Where processes that share a model fetch what they hold together."""
    return reads(every, step) or step % TOGETHER == 0


def stride(step: int) -> int:
    """Updates from one kept gradient to the next: every one of the first 4,096, then half as many an octave."""
    return 1 if step < MOST_ROWS else 2 ** (step // MOST_ROWS).bit_length()


class Recording:
    """Of one watch; `begin` reads the model as it is."""

    def __init__(
        self,
        model: nn.Module,
        batch: WatchedBatch,
        journal: Journal,
        losses: Losses,
        optimizers: Sequence[torch.optim.Optimizer],
        *,
        every: str | int,
        blocks: str,
        start: bool,
        anyway: bool,
    ) -> None:
        """`anyway`: read activations although two readings at equal weights differ."""
        self.chain = WatchedChain(model, batch, optimizers, blocks, start)
        self.journal, self.losses, self.every = journal, losses, every
        self._anyway, self._repeats = anyway, True
        self.optimizers, self.rate = tuple(optimizers), updates.rate(optimizers)
        self._gradients: list[GradientReading] = []
        self._reading: GradientReading | None = None
        self.notes = list(updates.notes(optimizers))
        self._read_at = self._before = -1
        self._moved: torch.Tensor | None = None
        """(parameters,) ‖Δθ‖² of the update that was just read …"""
        self._left: list[tuple[int, torch.Tensor]] = []
        """… and, before the next, how much of it is left; on the device."""
        self._last = -1, torch.empty(0)
        lists = {name for name, part in model.named_modules() if isinstance(part, nn.ModuleList)}
        self.still = Still(self.chain.stream.kinds, lists)
        if not optimizers:  # then an update is told of when it is done
            self.chain.weights.hold()

    def steps_by(self, step: int, optimizers: Sequence[torch.optim.Optimizer]) -> None:
        """From now on, after `step` updates, these step."""
        was, rate = updates.rate(self.optimizers), updates.rate(optimizers)
        alarms, names = self.journal.alarms, updates.name(optimizers)
        self.journal.warn_of(alarms.replaced(step, names, was, rate, empty=updates.empty(optimizers)))
        self.optimizers = self.chain.optimizers = tuple(optimizers)
        alarms.rate, alarms.usual = math.nan, USUAL.get(updates.name(self.optimizers[:1]), math.nan)
        self.chain.forget_places()

    def begin(self, step: int = 0) -> None:
        """The first reading, after so many updates."""
        rows = self._read(step)
        self._repeats = self.chain.mesh is not None or self.chain.repeats()
        usual = USUAL.get(updates.name(self.optimizers[:1]), math.nan)
        self.journal.begin(self.chain.sublayers, self.chain.reader.guess, usual, anew=updates.empty(self.optimizers))
        for remark in first_look(self.chain.model, self.optimizers) if self.chain.mesh is None else ():
            link = "owned" if remark.topic == "optimizer" else "finite"
            said = f"{remark.sentence}; {remark.remedy}"
            self.journal.warn_of(Alarm(step=step, link=link, sentence=said, numbers={}, names=frozenset(remark.names)))
        self._keep(rows)
        for said in self.chain.owned():
            self.journal.warn_of(Alarm(step=step, link="owned", sentence=said, numbers={}))
        if not self._repeats:
            said = MOVES if self._anyway else f"{MOVES}; activations are read no more (anyway=True reads them)"
            self.journal.warn_of(Alarm(step=step, link="chance", sentence=said, numbers={}))

    def before(self, step: int, optimizer: torch.optim.Optimizer | None) -> None:
        """Before the first step that this optimiser makes in update `step`: the gradients that it is about to use."""
        if step != self._before:
            self._before, self._reading = step, None
            if self._moved is not None:
                self._left.append((step, self.chain.left_of(self._moved)))
                self._moved = None
            if self.chain.changed(whole=reads(self.every, step)):
                said = f"from update {step} on, the model has other parameters or trains others"
                self.notes.append(f"{said}; ‖θ_t − θ_0‖ is measured from that update")
                self.journal.alarms.sublayers = self.chain.sublayers
            if step % stride(step) == 0 or reads(self.every, step):
                self._see_rate(step)
                self._reading = GradientReading(step, self.chain.groups)
            if self.optimizers and reads(self.every, step + 1):
                self.chain.weights.hold()
        if self._reading is not None:
            self.chain.read_gradients(self._reading, optimizer)

    def _see_rate(self, step: int) -> None:
        """Keep the highest, and warn of one beyond those of all tested models."""
        alarms = self.journal.alarms
        rate = alarms.rate = max(updates.rate(self.optimizers), alarms.rate)  # NaN at first
        if "rate" in alarms.raised or not rate > TESTED[1] * alarms.usual:
            return
        times = f"{short(rate / alarms.usual)} times the usual {scientific(alarms.usual)}"
        said = f"the rate is {scientific(rate)}, {times}; tested models had at most {TESTED[1]:g} times it"
        self.journal.warn_of(
            Alarm(step=step, link="rate", sentence=said, numbers={"rate": rate, "usual": alarms.usual})
        )

    def after(self, step: int) -> None:
        """The model when `step` updates are done."""
        chain = self.chain
        if self._reading is not None:
            self._gradients.append(self._reading)
            self._reading = None
        if reads(self.every, step):
            rows = self._waiting()
            try:
                moved, squares = chain.steps()
                self._moved = squares if self.optimizers and chain.mesh is None else None
                rows.append(("delta", step, moved, NOBODY))
                rows += self._read(step)
            finally:
                self._keep(rows)
            left, self._left = self._left, []
            for at, share in left:
                self.journal.warn_of(self.journal.alarms.rewritten(at, float(share)))
            for alarm in self._still(step, squares.cpu()):
                self.journal.warn_of(alarm)
        elif meets(self.every, step) if chain.mesh is not None else chain.device.type == "cpu" or self.journal.due:
            self._keep(self._waiting())
        if not self.optimizers and reads(self.every, step + 1):
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
        if not (self._repeats or self._anyway):
            return []
        tables = self.chain.activations(step).items()
        return [
            (probe, step, dict(zip(table.sites, table.values[-1].tolist(), strict=True)), NOBODY)
            for probe, table in tables
        ]

    def _waiting(self) -> list[Row]:
        """Losses and gradients, fetched from the device, in the order of their updates."""
        rows: list[Row] = [("loss", step, {"train": value}, NOBODY) for step, value in self.losses.taken().items()]
        waiting, self._gradients = self._gradients, []
        for reading, squares in zip(waiting, self.chain.squares(waiting), strict=True):
            self._last = reading.step, squares
            if not any(float(lost) for lost in reading.lost):
                norms = dict(zip(reading.groups, by_group(squares, reading.groups).sqrt().tolist(), strict=True))
                rows.append(("gradient", reading.step, norms, absent(squares, reading.groups)))
        return rows

    def _still(self, step: int, moved: torch.Tensor) -> Iterator[Alarm]:
        """Of the update just done, whose gradients were fetched last."""
        before, gradients = self._last
        if before == step - 1 and len(gradients) == len(moved):
            chain = self.chain
            yield from self.still.see(
                step,
                chain.sublayers,
                chain.names,
                gradients,
                moved,
                chain.causes,
                set(chain.unstepped),
                arrived(gradients, chain.groups, sizes_of(chain.groups)),
            )

    def facts(self, name: str, steps: int, notes: Sequence[str]) -> Facts:
        """What is known after so many updates. A training has no factory, depth, seed or first loss."""
        chain, lost = self.chain, self.journal.alarms.raised.get("finite")
        return Facts(
            factory=name,
            depth=None,
            lr=0.0,
            seed=0,
            steps=steps,
            sublayers=chain.sublayers,
            how=chain.stream.how,
            notes=(
                *notes,
                *self.notes,
                *self.still.notes,
                *chain.stream.notes,
                *filter(None, [self.journal.alarms.promise]),
            ),
            model=type(chain.model).__name__,
            parameters=sum(p.numel() for p in chain.model.parameters()),
            width=chain.reader.width,
            tokens=chain.reader.tokens,
            batch=chain.digest,
            start=math.nan,
            broke=Broke(step=lost.step, where=lost.sentence) if lost else None,
            optimizer=updates.name(self.optimizers),
            rate=self.rate,
            guess=chain.reader.guess,
            normed=chain.stream.normed,
            dtype=chain.reader.dtype,
        )
