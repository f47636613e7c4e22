"""A few updates of a user's model, and the chain read between them.

Step t means after t updates; every series has step 0. Activations are read on a batch of their own, the loss's at step
0, in eval mode, in an eager forward, at the steps of `readings`; losses and gradients at every step, on the batch of
the update that comes next, after the last update once more without one. No hook stands in a training forward, so that
training is what it is without us.

    ramp_…        after these updates RAMP more, the rate rising geometrically from the highest of the schedule to TOP
                  times that: what is near its edge breaks early. Where the schedule has yet to rise, RISE before that
                  lead up to its highest and HOLD stay there. Losses, gradients, and the scores at every EVERY-th of the
                  last RAMP
    loss          before the update, in the mode that the factory left the model in, `train`
    update, layer_update, stream, branch, cosine, token_cosine    `chain/reader.py`
    gradient      ‖∂L/∂θ_i‖, `outside` what belongs to no sub-layer
    delta         ‖θ_t − θ_{t−1}‖, `@relative` over ‖θ_{t−1}‖, `@start` ‖θ_t − θ_0‖
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from stabkit.errors import UsageError
from stabkit.own.chain import updates
from stabkit.own.chain.gradients import (
    Groups,
    Weights,
    absent,
    arrived,
    by_group,
    flat,
    gradient_squares,
    groups_of,
    mesh_of,
    sizes_of,
    sublayers,
    summed,
)
from stabkit.own.chain.reader import Reader, lost, masks
from stabkit.own.factory import one_line
from stabkit.own.probe.built_model import BuiltModel
from stabkit.own.probe.level import Targets
from stabkit.own.probe.onward import TOO_LARGE, TrainingState
from stabkit.own.probe.schedule import Peak, Ramp, Rates, Schedule, ramp, rates_of
from stabkit.own.sublayers import reading, run
from stabkit.own.sublayers.anatomy import and_more, most_alike
from stabkit.own.sublayers.memory import digest
from stabkit.own.sublayers.reading import ResidualStream, States, logits
from stabkit.results.own.cell import Broke, Facts, ModelCell, Sublayer
from stabkit.results.own.guess import Guess
from stabkit.results.own.measured import EVERY, RAMP
from stabkit.results.records import Recorder, Table


@dataclass(frozen=True, kw_only=True)
class ProbeRecord:
    """What the updates left."""

    records: Mapping[str, Table]
    stream: ResidualStream
    width: int
    tokens: int
    """Of the batch, padding left out."""
    batch: str
    """Digest of what the model was called with."""
    broke: Broke | None
    sublayers: tuple[Sublayer, ...]
    guess: Guess | None
    dtype: str
    unreached: str
    """Matrices of sub-layers that no gradient but 0 ever arrived at."""
    unreached_share: float
    """Of the sub-layers with matrices."""
    rate: float
    """The highest of the schedule; NaN without one."""
    warmup: int
    """The update that is first made at it; 0 for the first of all."""
    drawn: float
    """How large matrices were drawn."""
    frequencies: float | None
    """The loss of who knows nothing of the input; None where that is not known."""
    regression: bool
    """Whether that is the best constant's."""
    notes: tuple[str, ...] = ()


def size(weight: torch.Tensor) -> float:
    """How large a matrix is drawn: σ·√((rows + columns)/2), 1 for Xavier's; NaN of what is none. Kaiming's, orthogonal
    ones, torch's own and N(0, 0.02²) at usual widths have at most 1.5."""
    if weight.dim() != 2 or weight.numel() < 2:
        return math.nan
    return float(weight.detach().float().std()) * math.sqrt(sum(weight.shape) / 2)


def usual_size(weights: Iterable[torch.Tensor]) -> float:
    """The median over those that are matrices; 0 where none is, or where it is not finite."""
    known = [one for weight in weights if not math.isnan(one := size(weight))]
    middle = statistics.median(known) if known else 0.0
    return middle if math.isfinite(middle) else 0.0


def readings(steps: int) -> frozenset[int]:
    """0, powers of two, the last two: where activations and the weights' steps are read."""
    powers = {2**i for i in range(steps.bit_length()) if 2**i <= steps}
    return frozenset({0, *powers, max(0, steps - 1), steps})


def record(
    made: BuiltModel,
    steps: int,
    pattern: str = "",
    tell: Callable[[int, float], None] | None = None,
    *,
    ramped: bool = False,
) -> ProbeRecord:
    """`steps` updates of the model, recorded; with `ramped` also those of the ramp, which a forecast needs, where
    each has a batch of its own and there is a rate to raise; afterwards the model stands where it stood before the
    ramp. It ends early where the loss is not finite. `tell(step, loss)`."""
    with run.untouched(made.model):
        stream = reading.found(made.model, made.call, pattern)
    training = _Training(made, stream, tell)
    drawn = usual_size(p for own in stream.sublayers for p in training.groups[own.name])
    usual, beyond = Recorder(), Recorder()
    finite = training.update(usual, 0, steps, readings(steps), made.schedule)
    kept = TrainingState(made) if ramped and finite else None
    peak = made.schedule.ahead(made.optimizers, training.rates)
    if kept is not None and made.fresh and peak.rate > 0:
        training.climb(beyond, steps, peak)
    unreached, share = _unreached(made.model, stream, training.groups, training.reached)
    reader = training.reader
    if kept is not None:
        kept.put_back()
    return ProbeRecord(
        records={
            f"{phase}{name}": table
            for phase, recorder in (("", usual), ("ramp_", beyond))
            for name, table in recorder.tables().items()
        },
        stream=stream,
        width=reader.width,
        tokens=reader.tokens,
        batch=digest((made.call.args, dict(made.call.kwargs))),
        broke=training.broke,
        sublayers=sublayers(stream, training.groups),
        guess=reader.guess,
        dtype=reader.dtype,
        unreached=f"{len(unreached)} matrices ({and_more(unreached)})" if unreached else "",
        unreached_share=share,
        rate=peak.rate,
        warmup=peak.update,
        drawn=drawn,
        frequencies=made.objective.frequencies if training.targets is None else training.targets.level,
        regression=training.targets is not None and training.targets.regression,
        notes=(*training.notes, *_idle(made.model, training), *_asked_ahead(made, training)),
    )


class _Training:
    """A model in training, and what reads it."""

    def __init__(self, made: BuiltModel, stream: ResidualStream, tell: Callable[[int, float], None] | None) -> None:
        self.made, self.stream, self.tell = made, stream, tell
        self.groups = groups_of(made.model, stream)
        self.reader = Reader(stream, masks(made.model, made.call), made.model)
        self.weights = Weights(self.groups)
        self.reached = torch.zeros(len(flat(self.groups)), dtype=torch.bool)
        """Of the parameters, whether a gradient ever arrived."""
        self.real = torch.zeros_like(self.reached)
        """… and more than rounding."""
        self.sizes = sizes_of(self.groups)
        self.broke: Broke | None = None
        """The first number of the first phase that was lost."""
        self.rates: list[Rates] = []
        """Of every update, and of the one to come."""
        self.notes: tuple[str, ...] = ()
        self.targets = Targets() if made.objective.frequencies is None else None
        """What the user's loss is called with."""
        self._taken, self._loss = 0, math.nan

    def climb(self, recorder: Recorder, step: int, peak: Peak) -> None:
        """The ramp, recorded from this step on. What the user's code raises on it because numbers grow large
        (TOO_LARGE) is its end, as a loss is that is no number, and a note; all else is an error of its own."""
        rates = ramp(peak)
        last = step + len(rates)
        read = frozenset(range(last - RAMP, last + 1, EVERY))
        try:
            self.update(
                recorder, step, last, read, Schedule(schedulers=(Ramp(self.made.optimizers, rates),)), scores_only=True
            )
        except TOO_LARGE as error:
            if isinstance(error, torch.OutOfMemoryError):
                raise
            table = recorder.tables().get("loss")
            at = step if table is None else int(table.steps[-1]) + 1
            recorder.add("loss", at, ("train",), [math.nan])
            self.notes = (f"while the rate rose, update {at + 1} raised {one_line(error)}: nothing is read after that",)

    def update(
        self,
        recorder: Recorder,
        first: int,
        last: int,
        read: frozenset[int],
        schedule: Schedule,
        *,
        scores_only: bool = False,
    ) -> bool:
        """Updates `first` + 1 to `last`, recorded; whether the loss was finite to the end. At the steps of `read`
        everything is read, or, with `scores_only`, the scores."""
        made = self.made
        handles = [own.register_step_post_hook(self._stepped) for own in made.optimizers]
        try:
            for step in range(first, last + 1):
                finite = self._gradient(recorder, step, read, scores_only=scores_only)
                if step == last or not finite:
                    return finite
                for optimizer in made.optimizers:
                    optimizer.step()
                schedule.step()
                if self._taken != len(handles):
                    taken = f"{self._taken} optimiser steps were taken in one update"
                    raise UsageError(f"{taken}; the loss must not step the optimizer")
        finally:
            for handle in handles:
                handle.remove()
        return True

    def _gradient(self, recorder: Recorder, step: int, read: frozenset[int], *, scores_only: bool) -> bool:
        """Everything at θ_step, and the gradient of the update that comes next; whether its loss is finite."""
        made, groups = self.made, self.groups
        states = self._states(recorder, step) if step in read and not scores_only else None
        if states is not None:
            moved = self.weights.moved()
            names = tuple(name + mark for mark in moved for name in groups)
            recorder.add("delta", step, names, [value for part in moved.values() for value in part.tolist()])
        elif step in read:
            self.reader.scores(recorder, step, logits(run.returned(made.model, made.call)))
        if step + 1 in read and not scores_only:
            self.weights.hold()
        for optimizer in made.optimizers:
            optimizer.zero_grad(set_to_none=True)
        self._taken = 0
        with self.targets or nullcontext():
            loss = made.objective.at(made.model, step + 1)
        self._loss = float(loss.detach())
        if self.targets is not None:
            self.targets.ended(self._loss)
        loss.backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
        recorder.add("loss", step, ("train",), [self._loss])
        self.rates.append(rates_of(made.optimizers))
        if states is None and not scores_only and not math.isfinite(self._loss):
            states = self._states(recorder, step)
        squares = summed(gradient_squares(flat(groups), mesh_of(groups)), mesh_of(groups)).cpu()
        self.reached |= ~(squares <= 0)
        self.real |= arrived(squares, groups, self.sizes)
        recorder.add("gradient", step, tuple(groups), by_group(squares, groups).sqrt().tolist())
        if self.tell and not scores_only:
            self.tell(step, self._loss)
        if self.broke is None and not scores_only:
            self.broke = self._lost(recorder, step, states, squares)
        return math.isfinite(self._loss)

    def _states(self, recorder: Recorder, step: int) -> States:
        with run.untouched(self.made.model):
            states = self.stream.read(self.made.model, self.made.call)
        self.reader.read(recorder, step, states)
        return states

    def _lost(self, recorder: Recorder, step: int, states: States | None, squares: torch.Tensor) -> Broke | None:
        """Where a number was lost at this step, and how much is lost with it; None where all are there."""
        gone = lost(recorder.tables(), step, absent(squares, self.groups))
        if gone is None:
            return None
        for name, own in self.made.model.named_parameters() if not step else ():
            if bad := int((~own.isfinite()).sum()):
                detail = f"{bad} of {own.numel()} numbers"
                return Broke(step=0, where=f"parameter {name}", detail=detail, parameter=True)
        probe, site = gone
        gradients = int((~squares.isfinite()).sum())
        parts = [
            self.reader.rows(states, site) if probe == "stream" and states is not None else "",
            f"the loss is {self._loss:.3g}" if math.isfinite(self._loss) else "",
            f"{gradients} of {len(squares)} gradients are not finite" if gradients else "",
        ]
        where = "the loss" if probe == "loss" else f"{probe} of {site}"
        return Broke(step=step, where=where, detail="; ".join(filter(None, parts)))

    def _stepped(self, *seen: object) -> None:
        self._taken += 1


def cell(made: BuiltModel, recorded: ProbeRecord, **asked: Any) -> ModelCell:
    """What was recorded, as results know it; `asked`: factory, depth, lr, seed, steps and change."""
    fields = (
        (
            recorded,
            "sublayers width tokens batch broke rate guess dtype unreached unreached_share warmup drawn frequencies "
            "regression",
        ),
        (recorded.stream, "how normed unregistered bounded"),
        (made, "start fresh changed factors normed_sums"),
        (made.objective, "entropy"),
    )
    facts = Facts(
        **asked,
        **{name: getattr(value, name) for value, names in fields for name in names.split()},
        notes=(*made.notes, *recorded.stream.notes, *recorded.notes),
        model=type(made.model).__name__,
        parameters=sum(p.numel() for p in made.model.parameters()),
        optimizer=updates.name(made.optimizers),
        optimizers=tuple(type(own).__name__ for own in made.optimizers),
    )
    return ModelCell(facts, recorded.records)


def _idle(model: nn.Module, training: _Training) -> Iterator[str]:
    """Of matrices anywhere that nothing but rounding arrived at."""
    known = {id(p): name for name, p in model.named_parameters()}
    wide = [
        (known[id(p)], bool(own)) for p, own in zip(flat(training.groups), training.real, strict=True) if p.dim() > 1
    ]
    if idle := most_alike([name for name, real in wide if not real], [name for name, _ in wide]):
        yield f"no gradient but rounding reached {len(idle)} trainable matrices ({and_more(idle)})"


def _asked_ahead(made: BuiltModel, training: _Training) -> Iterator[str]:
    """Where a loss asks for the next token, and the model sees it."""
    shown = run.tokens(made.call)
    if training.targets is not None and shown is not None and training.targets.next_of(shown):
        if run.looks_ahead(made.model, made.call):
            yield "the model sees the tokens that its loss asks it for: is its mask the wrong way round?"


def _unreached(
    model: nn.Module, stream: ResidualStream, groups: Groups, reached: torch.Tensor
) -> tuple[list[str], float]:
    """(matrices of sub-layers that no gradient but 0 arrived at, the share of sub-layers that have one of those), of
    (parameters,) whether any did."""
    known = {id(p): name for name, p in model.named_parameters()}
    silent = {id(p) for p, has in zip(flat(groups), reached.tolist(), strict=True) if not has}
    matrices = [[p for p in groups[own.name] if p.dim() > 1] for own in stream.sublayers]
    having = [own for own in matrices if own]
    without = [[known[id(p)] for p in own if id(p) in silent] for own in having]
    return [name for own in without for name in own], sum(map(bool, without)) / len(having) if having else 0.0
