"""The rate over the updates of a probe: the factory's own scheduler, a linear warm-up, or none."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.optim.lr_scheduler import LambdaLR, ReduceLROnPlateau

from stabkit.errors import UsageError
from stabkit.own.chain import updates

AHEAD = 4000
"""Updates that a scheduler is played ahead, to see where its rate is highest."""
HELD = ("base_lrs", "max_lrs", "eta_min", "min_lrs")
"""Attributes of torch's schedulers that hold rates."""
GROUP = ("lr", "initial_lr", "max_lr", "min_lr")
"""… and keys of an optimiser's groups."""

Optimizers = Sequence[torch.optim.Optimizer]


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """What steps after every update."""

    schedulers: tuple[Any, ...]
    notes: tuple[str, ...] = ()
    warmup: int | None = None
    """Of `--warmup`; None where the scheduler is the factory's own."""

    @classmethod
    def of(cls, given: Sequence[Any], optimizers: Optimizers, warmup: int | None, name: str) -> Schedule:
        """Of a factory's schedulers, or of a warm-up; raises UsageError for both."""
        if given and warmup is not None:
            raise UsageError(f"{name}: --warmup is for a factory without a scheduler of its own, and it has one")
        kept = tuple(own for own in given if not isinstance(own, ReduceLROnPlateau))
        left = f"{len(given) - len(kept)} ReduceLROnPlateau, which no probe steps" if len(kept) < len(given) else ""
        if given:
            return cls(schedulers=kept, notes=(left,) if left else ())
        count = warmup or 0
        ramp = tuple(LambdaLR(own, lambda t: min(1.0, (t + 1) / count)) for own in optimizers) if count else ()
        return cls(schedulers=ramp, warmup=count)

    def step(self) -> None:
        """After an update."""
        for scheduler in self.schedulers:
            scheduler.step()

    def ahead(self, optimizers: Optimizers, taken: int, seen: Sequence[float]) -> tuple[float, int]:
        """(the highest rate, the update that is first made at it; 0 for the first of all): of the rates `seen` at
        updates so far and of those that come. The schedulers are at their end then: for a model that is done with."""
        rates = list(seen)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of steps without an update, and of schedules that are over
            try:
                for _ in range(AHEAD if self.schedulers else 0):
                    self.step()
                    rates.append(updates.rate(optimizers))
            except Exception:  # OneCycleLR at its end, a user's own
                pass
        finite = [rate for rate in rates if math.isfinite(rate)]
        if not finite:
            return math.nan, 0
        highest = max(finite)
        first = next(i for i, rate in enumerate(rates) if rate >= highest * (1 - 1e-9))
        return highest, first + 1 if first else 0


def peak(optimizers: Optimizers) -> float:
    """The rate of the first group of the first, as it was before a scheduler took it down; NaN where it has none."""
    group = optimizers[0].param_groups[0]
    return float(group.get("initial_lr", group.get("lr", math.nan)))


def scale(optimizers: Optimizers, schedulers: Sequence[Any], factor: float) -> None:
    """Multiply every rate, in the optimisers' groups and in what the schedulers remember of them."""
    for group in (group for optimizer in optimizers for group in optimizer.param_groups):
        for key in GROUP:
            if isinstance(group.get(key), (int, float)):
                group[key] = float(group[key]) * factor
    for scheduler in _all(schedulers):
        for attribute in HELD:
            held = getattr(scheduler, attribute, None)
            if isinstance(held, list):
                setattr(scheduler, attribute, [rate * factor for rate in held])
            elif isinstance(held, float):
                setattr(scheduler, attribute, held * factor)


def _all(schedulers: Sequence[Any]) -> Iterator[Any]:
    """Those, and what chained ones hold."""
    for scheduler in schedulers:
        yield scheduler
        yield from _all(getattr(scheduler, "_schedulers", ()))
