"""A few updates of a user's model, and the chain read between them.

Step t means after t updates; every series has step 0. Activations are read on a batch of their own, the loss's at step
0, in eval mode, in an eager forward, at the steps of `readings`; losses and gradients at every step, on the batch of
the update that comes next, after the last update once more without one. No hook stands in a training forward, so that
training is what it is without us.

    peak_…        where the schedule still rises after these updates: AT_PEAK more at its highest rate, likewise
    stress_…      then AT_PEAK more at TOO_HIGH times the highest rate: what is near its edge breaks at once
    again         from step LATE on: the loss of the update's own batch `before` and `after` it
    loss          before the update, in the mode that the factory left the model in, `train`
    update, layer_update, stream, branch, cosine, token_cosine    `chain/reader.py`
    gradient      ‖∂L/∂θ_i‖, `outside` what belongs to no sub-layer
    delta         ‖θ_t − θ_{t−1}‖, `@relative` over ‖θ_{t−1}‖, `@start` ‖θ_t − θ_0‖
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import nn

from stabkit.errors import UsageError
from stabkit.own.chain import updates
from stabkit.own.chain.gradients import (
    Groups,
    Weights,
    absent,
    by_group,
    flat,
    gradient_squares,
    groups_of,
    mesh_of,
    sublayers,
    summed,
)
from stabkit.own.chain.reader import Reader, lost, masks
from stabkit.own.probe.built_model import Made
from stabkit.own.probe.schedule import set_rates
from stabkit.own.sublayers import reading, run
from stabkit.own.sublayers.anatomy import and_more
from stabkit.own.sublayers.memory import digest
from stabkit.own.sublayers.reading import ResidualStream, States
from stabkit.results.own.cell import Broke, Facts, ModelCell, Sublayer
from stabkit.results.own.guess import Guess
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


LATE = 8
"""Updates after which a batch is looked at again: the first are large in every model."""


TOO_HIGH = 3.0
"""Times the highest rate at which the model is trained for AT_PEAK updates at the end: what is near its edge breaks."""
AT_PEAK, RISEN = 8, 1.5
"""Updates at the highest rate of a schedule that is to rise by more than RISEN yet: what a warm-up leads up to."""


def readings(steps: int) -> frozenset[int]:
    """0, powers of two, the last two: where activations and the weights' steps are read."""
    powers = {2**i for i in range(steps.bit_length()) if 2**i <= steps}
    return frozenset({0, *powers, max(0, steps - 1), steps})


def record(
    made: Made,
    steps: int,
    pattern: str = "",
    tell: Callable[[int, float], None] | None = None,
    *,
    stressed: bool = False,
) -> ProbeRecord:
    """`steps` updates of the model, recorded; with `stressed` also those at the highest rate and beyond it, which a
    forecast needs. It ends early where the loss is not finite. `tell(step, loss)`."""
    with run.untouched(made.model):
        stream = reading.found(made.model, made.call, pattern)
    groups = groups_of(made.model, stream)
    reader = Reader(stream, masks(made.model, made.call), made.model)
    recorder = Recorder()
    weights = Weights(groups)
    sites = tuple(groups)

    reached = torch.zeros(len(flat(groups)), dtype=torch.bool)
    broke: Broke | None = None
    taken, value = 0, math.nan
    rates: list[float] = []

    def stepped(*seen: object) -> None:
        nonlocal taken
        taken += 1

    def look(recorder: Recorder, step: int) -> States:
        with run.untouched(made.model):
            states = stream.read(made.model, made.call)
        reader.read(recorder, step, states)
        return states

    def again(step: int) -> float:
        with run.untouched(made.model), torch.no_grad():
            return float(made.objective.at(made.model, step))

    def updated(recorder: Recorder, first: int, last: int, read: frozenset[int]) -> bool:
        """Updates `first` + 1 to `last`; whether the loss was finite to the end."""
        nonlocal reached, broke, value, taken
        for step in range(first, last + 1):
            if step in read:
                states = look(recorder, step)
                if step >= max(LATE, first + 1):
                    recorder.add("again", step, ("before", "after"), [value, again(step)])
                moved = weights.moved()
                names = tuple(name + mark for mark in moved for name in sites)
                recorder.add("delta", step, names, [value for part in moved.values() for value in part.tolist()])
            if step + 1 in read:
                weights.hold()
            for optimizer in made.optimizers:
                optimizer.zero_grad(set_to_none=True)
            taken = 0
            loss = made.objective.at(made.model, step + 1)
            value = float(loss.detach())
            loss.backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
            recorder.add("loss", step, ("train",), [value])
            rates.append(updates.rate(made.optimizers))
            if not math.isfinite(value) and step not in read:
                states = look(recorder, step)
            squares = summed(gradient_squares(flat(groups), mesh_of(groups)), mesh_of(groups)).cpu()
            reached |= ~(squares <= 0)
            recorder.add("gradient", step, sites, by_group(squares, groups).sqrt().tolist())
            if tell:
                tell(step, value)
            missing = absent(squares, groups)
            if broke is None and last == steps and (gone := lost(recorder.tables(), step, missing)) is not None:
                broke = _broke(step, *gone, reader, states, squares, value)
            if step == last or not math.isfinite(value):
                return math.isfinite(value)
            for optimizer in made.optimizers:
                optimizer.step()
            made.schedule.step()
            if taken != len(handles):
                raise UsageError(f"{taken} optimiser steps were taken in one update; the loss is not to step itself")
        return True

    handles = [optimizer.register_step_post_hook(stepped) for optimizer in made.optimizers]
    peak, stress = Recorder(), Recorder()
    try:
        finite = updated(recorder, 0, steps, readings(steps))
        now = rates[-1]
        rate, warmup, highest = made.schedule.ahead(made.optimizers, rates)
        at = steps
        finite = finite and stressed
        if finite and rate > RISEN * now:
            set_rates(made.optimizers, highest)
            finite, at = updated(peak, at, at + AT_PEAK, frozenset({at + AT_PEAK - 1, at + AT_PEAK})), at + AT_PEAK
        if finite:
            set_rates(made.optimizers, [[TOO_HIGH * own for own in group] for group in highest])
            updated(stress, at, at + AT_PEAK, frozenset({at + AT_PEAK - 1, at + AT_PEAK}))
    finally:
        for handle in handles:
            handle.remove()
    unreached, share = _unreached(made.model, stream, groups, reached)
    return ProbeRecord(
        records={
            **recorder.tables(),
            **{f"peak_{name}": table for name, table in peak.tables().items()},
            **{f"stress_{name}": table for name, table in stress.tables().items()},
        },
        stream=stream,
        width=reader.width,
        tokens=reader.tokens,
        batch=digest((made.call.args, dict(made.call.kwargs))),
        broke=broke,
        sublayers=sublayers(stream, groups),
        guess=reader.guess,
        dtype=reader.dtype,
        unreached=f"{len(unreached)} matrices ({and_more(unreached)})" if unreached else "",
        unreached_share=share,
        rate=rate,
        warmup=warmup,
    )


def cell(
    made: Made,
    recorded: ProbeRecord,
    *,
    factory: str,
    depth: int | None,
    lr: float,
    seed: int,
    steps: int,
    change: str = "",
) -> ModelCell:
    """What was recorded, as results know it."""
    return ModelCell(
        Facts(
            factory=factory,
            depth=depth,
            lr=lr,
            seed=seed,
            steps=steps,
            sublayers=recorded.sublayers,
            how=recorded.stream.how,
            notes=(*made.notes, *recorded.stream.notes),
            model=type(made.model).__name__,
            parameters=sum(p.numel() for p in made.model.parameters()),
            width=recorded.width,
            tokens=recorded.tokens,
            batch=recorded.batch,
            start=made.start,
            broke=recorded.broke,
            optimizer=updates.name(made.optimizers),
            rate=recorded.rate,
            guess=recorded.guess,
            normed=recorded.stream.normed,
            dtype=recorded.dtype,
            unreached=recorded.unreached,
            unreached_share=recorded.unreached_share,
            unregistered=recorded.stream.unregistered,
            fresh=made.fresh,
            warmup=recorded.warmup,
            frequencies=made.objective.frequencies,
            change=change,
            changed=made.changed,
            bounded=recorded.stream.bounded,
        ),
        recorded.records,
    )


def _broke(
    step: int, probe: str, site: str, reader: Reader, states: States, squares: torch.Tensor, loss: float
) -> Broke:
    """Where the first number was lost, and how much is lost with it."""
    gradients = int((~squares.isfinite()).sum())
    parts = [
        reader.rows(states, site) if probe == "stream" else "",
        f"the loss is {loss:.3g}" if math.isfinite(loss) else "",
        f"{gradients} of {len(squares)} gradients are not finite" if gradients else "",
    ]
    where = "the loss" if probe == "loss" else f"{probe} of {site}"
    return Broke(step=step, where=where, detail="; ".join(filter(None, parts)))


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
