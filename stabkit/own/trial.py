"""What a worker does for one rate tried on a user's model: equal updates, and the loss on batches that none is made on.

{"kind": "trial", "id": NAME, "factory": "package.module:function", "here": DIR, "depth": 12 | null, "width": 64 | null,
 "smallest": [DEPTH, WIDTH], "seed": 0, "lr": 0.001, "warmup": null, "steps": 300, "out": DIR}

`lr` is the rate of the first group of the factory's optimiser at its smallest size; every rate of every size is in the
factory's own proportion to it. The user's code runs here and nowhere else. The answer is JSON: {"folder": TRIAL_ID,
"reused": …}, or {"failed": …} (`job.answered`).
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from stabkit.own.chain import updates
from stabkit.own.factory import one_line
from stabkit.own.probe import followed
from stabkit.own.probe.built_model import BuiltModel, make, seeded
from stabkit.own.probe.job import answered, forked, key, once, reporter, where
from stabkit.own.probe.onward import TOO_LARGE
from stabkit.own.probe.schedule import peak
from stabkit.own.sublayers import run
from stabkit.results.own.trial import TRIAL_VERSION, ModelTrial
from stabkit.storage import trials
from stabkit.storage.jobs import Event, Job, asked
from stabkit.storage.shelf import Shelf
from stabkit.storage.trials import TRIAL

HELD_OUT = 16
"""Batches that the loss is read on: those of the steps after the last update's."""
SOURCE = 0
"""Of the batches of a factory without a loss: every seed learns the same."""
NUMERIC = (ArithmeticError, torch.linalg.LinAlgError)  # type: ignore[attr-defined]  # it is there
"""What code raises on numbers alone."""
RAISED = 1.5
"""A loss, or the norm of all parameters, this many times its first has grown."""
TRAINED_ON = "the loss is read on the training batches: {}"

Tell = Callable[[Event], None]


def trial(job: Job, tell: Tell) -> tuple[str, str]:
    """Do one job. Raises UsageError for what would be as wrong at any size."""
    shelf = Shelf(TRIAL, Path(job["out"]))
    return answered(job, shelf.log(job["id"]), lambda function: _tried(job, function, shelf, tell))


def _tried(job: Job, function: Callable[..., Any], shelf: Shelf[ModelTrial], tell: Tell) -> dict[str, Any]:
    begin = time.monotonic()
    as_is = _built(job, function)
    weights = followed.weights(as_is.model)
    made, last = followed.counted(as_is)
    start, size = held_out(made, job["steps"]), _size(made)
    names = ("factory", "depth", "width", "smallest", "seed", "lr", "warmup", "steps")
    plays = [repr(getattr(scheduler, "state_dict", dict)()) for scheduler in made.schedule.schedulers]
    trial_id = key(job, made, [asked(job, *names), TRIAL_VERSION, repr(start), plays])
    with shelf.hold(trial_id, job.get("over", "")):
        if shelf.load_if_sound(trial_id) is not None and followed.same(shelf.environment(trial_id), made):
            return {"folder": trial_id, "reused": True}
        if trial_id in shelf:
            shelf.quarantine(trial_id)  # kept: what is recorded now takes its place
        result = _updated(job, made, start, size, tell)
        beside = followed.beside(made, last(), shelf.out)
        if note := once(function, job, made, weights):
            result = replace(result, notes=(*result.notes, note))
        shelf.commit(trial_id, trials.to_files(result, beside | where(begin)))
    return {"folder": trial_id, "reused": False}


def _updated(job: Job, made: BuiltModel, start: float, size: float, tell: Tell) -> ModelTrial:
    """Equal updates, and what they left; `size` is of the parameters before."""
    losses, note = updated(made, job["steps"], reporter(job, tell))
    whole = len(losses) == job["steps"] and math.isfinite(losses[-1])
    try:
        loss = held_out(made, job["steps"]) if whole else math.inf
    except TOO_LARGE as error:
        if not _of_numbers(error, losses[0], losses[-1], size, _size(made)):
            raise
        loss = math.inf
    count = made.objective.batches()
    seen = f"there are {count}" if 0 < count <= job["steps"] + HELD_OUT else "" if made.fresh else "there is one"
    return ModelTrial(
        **asked(job, "factory", "depth", "width", "lr", "seed", "steps"),
        made=len(losses),
        start=start,
        loss=loss if math.isfinite(loss) else math.inf,
        losses=tuple(losses),
        frequencies=made.objective.frequencies,
        fresh=not seen,
        model=type(made.model).__name__,
        parameters=sum(p.numel() for p in made.model.parameters()),
        optimizer=updates.name(made.optimizers),
        notes=tuple(filter(None, [note, TRAINED_ON.format(seen) if seen else ""])),
    )


def _built(job: Job, function: Callable[..., Any]) -> BuiltModel:
    """The model, its rates in proportion to those of the smallest size."""
    base, (depth, width) = 0.0, job["smallest"]
    if (depth, width) != (job["depth"], job["width"]):

        def rate() -> float:
            return peak(make(function, job["factory"], depth, job["seed"], 0.0, width=width, source=SOURCE).optimizers)

        base = forked(rate)  # the factory's first call here is that of the size that is tried
    return make(
        function,
        job["factory"],
        job["depth"],
        job["seed"],
        job["lr"],
        job["warmup"],
        job["width"],
        base=base if base > 0 else 0.0,
        source=SOURCE,
    )


def updated(made: BuiltModel, steps: int, tell: Callable[[int, float], None]) -> tuple[list[float], str]:
    """(the loss of every update, a note): as many updates as are asked for, or until one's loss is no number, or the
    user's code raises because numbers have grown; what it raises while they have not is its own fault, and goes on."""
    losses, before = list[float](), _size(made)
    for step in range(1, steps + 1):
        for optimizer in made.optimizers:
            optimizer.zero_grad(set_to_none=True)
        try:
            loss = made.objective.at(made.model, step)
            losses.append(float(loss.detach()))
            if not math.isfinite(losses[-1]):
                return losses, ""
            loss.backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
            for optimizer in made.optimizers:
                optimizer.step()
        except TOO_LARGE as error:
            if step == 1 or not _of_numbers(error, losses[0], losses[-1], before, _size(made)):
                raise
            note = f"update {step} raised {one_line(error)}: its loss counts as not finite"
            return [*losses[: step - 1], math.nan], note
        made.schedule.step()
        tell(step, losses[-1])
    return losses, ""


def _of_numbers(error: BaseException, first: float, loss: float, before: float, size: float) -> bool:
    """Whether what the user's code raised says that numbers have grown, by the loss and the parameters' norm, each
    next to its first; else it is the code's own fault."""
    if isinstance(error, torch.OutOfMemoryError):
        return False
    return isinstance(error, NUMERIC) or not (loss <= RAISED * first and size <= RAISED * before)


def _size(made: BuiltModel) -> float:
    """The norm of all parameters together."""
    return math.hypot(*(float(p.detach().norm()) for p in made.model.parameters()))


def held_out(made: BuiltModel, steps: int) -> float:
    """Mean loss over the HELD batches after the updates', in eval mode. Where there is one batch it is that one."""
    count = HELD_OUT if made.fresh else 1
    with run.untouched(made.model), torch.no_grad():
        seeded(0)
        made.model.eval()
        return statistics.fmean(float(made.objective.at(made.model, steps + 1 + i)) for i in range(count))
