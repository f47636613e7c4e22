"""A probed model trained on from where it stood before its rate was raised, until its loss says what becomes of it.

`TrainingState` holds weights, buffers and attributes of modules, what optimisers and schedulers remember, the state of
chance. What lies elsewhere, a counter in the user's own loss, is not put back.
"""

from __future__ import annotations

import copy
import math
import random
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from stabkit.own.factory import one_line
from stabkit.own.probe.built_model import BuiltModel
from stabkit.own.probe.schedule import copied, groups, put_back
from stabkit.own.sublayers import run
from stabkit.results.own import looks
from stabkit.results.own.cell import ModelCell
from stabkit.results.own.decided import known
from stabkit.results.own.decided import losses as losses_of
from stabkit.results.own.forecast import ours
from stabkit.results.records import Recorder

TOO_LARGE = (ArithmeticError, AssertionError, RuntimeError, ValueError)
"""What code raises whose numbers have grown out of what it takes: assertions that a loss is finite, arguments of
distributions, matrices that do not invert. A batch that is not there (IndexError, KeyError) is none of these."""


RESERVED = 1 / 3
"""Of a command's time: for changes."""


class TrainingState:
    """Where a training stands, to be put back once."""

    def __init__(self, made: BuiltModel) -> None:
        parts = list(made.model.modules())
        self._made = made
        self._attributes = [run.Attributes(part) for part in parts]
        self._buffers = [(part._buffers, dict(part._buffers)) for part in parts]
        self._tensors = [(own, own.detach().clone()) for own in (*made.model.parameters(), *made.model.buffers())]
        self._states = [{p: copied(state) for p, state in own.state.items()} for own in made.optimizers]
        self._groups = groups(made.optimizers)
        self._schedules = [copy.deepcopy(_memory(own)) for own in made.schedule.schedulers]
        self._chance = torch.get_rng_state(), np.random.get_state(), random.getstate()

    def put_back(self) -> None:
        """As it was."""
        for attributes in self._attributes:
            attributes.put_back()
        for buffers, held in self._buffers:
            buffers.clear()
            buffers.update(held)
        with torch.no_grad():
            for tensor, value in self._tensors:
                tensor.copy_(value)
        for optimizer, remembered in zip(self._made.optimizers, self._states, strict=True):
            optimizer.state.clear()
            optimizer.state.update(remembered)
        for scheduler, state in zip(self._made.schedule.schedulers, self._schedules, strict=True):
            scheduler.load_state_dict(state) if hasattr(scheduler, "load_state_dict") else vars(scheduler).update(state)
        put_back(self._made.optimizers, self._groups)
        torch.set_rng_state(self._chance[0])
        np.random.set_state(self._chance[1])
        random.setstate(self._chance[2])


def _memory(scheduler: Any) -> dict[str, Any]:
    """What it remembers; of one that does not say, its attributes that are plain numbers."""
    if hasattr(scheduler, "state_dict"):
        return dict(scheduler.state_dict())
    return {name: value for name, value in vars(scheduler).items() if isinstance(value, (int, float, str))}


def trained(
    made: BuiltModel,
    probed: ModelCell,
    tell: Callable[[int, float], None],
    *,
    updates: int = 0,
    until: float = math.inf,
    within: float = 0.0,
) -> ModelCell:
    """The cell with the losses of further updates: `updates` in all, or, of 0, as many as the rule of `looks` wants;
    fewer where a loss is no number or there are no more batches, which is a note, or where the clock passes `until`
    (seconds since 1970), `within` seconds of a command, of which RESERVED is left where it seems to fail."""
    losses, notes = losses_of(probed), probed.facts.notes
    given, rule, recorder, reserved = known(probed), ours().looks, Recorder(), 0.0
    most, over = updates or looks.LAST, False
    while len(losses) < most:
        if len(losses) >= (made.objective.batches() or most):
            notes = (*notes, f"its {len(losses)} batches were used up: it was trained no further")
            break
        if over := time.time() > until - reserved:
            break
        for optimizer in made.optimizers:
            optimizer.zero_grad(set_to_none=True)
        try:
            loss = made.objective.at(made.model, len(losses) + 1)
            value = float(loss.detach())
        except (*TOO_LARGE, LookupError, StopIteration) as error:
            if isinstance(error, torch.OutOfMemoryError):
                raise
            at = f"update {len(losses) + 1} raised {one_line(error)}: it was trained no further"
            notes, value = (*notes, at), math.nan
            if not isinstance(error, TOO_LARGE):  # there are no more batches
                break
        recorder.add("trained", len(losses), ("train",), [value])
        losses.append(value)
        tell(len(losses), value)
        if not math.isfinite(value):
            break
        loss.backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
        for optimizer in made.optimizers:
            optimizer.step()
        made.schedule.step()
        if not updates and given is not None and len(losses) % looks.TEN == 0 and len(losses) >= looks.FIRST:
            found = rule.decide(looks.tens(losses), given)
            reserved = RESERVED * within * ((found.probability or 0.0) < 0.5)
            if looks.stops(found):
                break
    facts = replace(probed.facts, notes=notes, within=within if over else probed.facts.within)
    return replace(probed, facts=facts, records={**probed.records, **recorder.tables()})
