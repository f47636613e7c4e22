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

    schedulers: tuple[Any, ...] = ()
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, given: Sequence[Any], optimizers: Optimizers, warmup: int | None, name: str) -> Schedule:
        """Of a factory's schedulers, or of a warm-up; raises UsageError for both."""
        if given and warmup is not None:
            raise UsageError(f"{name}: --warmup is for a factory without a scheduler of its own, and it has one")
        kept = tuple(own for own in given if not isinstance(own, ReduceLROnPlateau))
        left = f"{len(given) - len(kept)} ReduceLROnPlateau, which no probe steps" if len(kept) < len(given) else ""
        if given or not warmup:
            return cls(schedulers=kept, notes=(left,) if left else ())
        return cls(schedulers=tuple(LambdaLR(own, lambda t: min(1.0, (t + 1) / warmup)) for own in optimizers))

    def step(self) -> None:
        """After an update."""
        for scheduler in self.schedulers:
            scheduler.step()

    def ahead(self, optimizers: Optimizers, seen: Sequence[float]) -> Peak:
        """Where its rate is highest: among the rates `seen` at updates so far, the last of them the one to come, and
        those that follow. The schedulers are at their end then, and are not to be stepped any more."""
        rates, groups = list(seen), [rates_of(optimizers)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of steps without an update
            try:
                for _ in range(AHEAD if self.schedulers else 0):
                    self.step()
                    rates.append(updates.rate(optimizers))
                    groups.append(rates_of(optimizers))
            except Exception:  # a schedule that is over (OneCycleLR raises), or ends in its own way: no rate follows
                pass
        highest = max((rate for rate in rates if math.isfinite(rate)), default=math.nan)
        at = next((i for i, rate in enumerate(rates) if rate >= highest * (1 - 1e-9)), 0)
        return Peak(highest, at + 1 if at else 0, groups[max(0, at + 1 - len(seen))])


@dataclass(frozen=True)
class Peak:
    """The highest rate of a schedule."""

    rate: float
    """Of the first group of the first optimiser; NaN where it has none."""
    update: int
    """The update that is first made at it; 0 for the first of all."""
    groups: Sequence[Sequence[float]]
    """Those of every optimiser's groups then, or from now on where it lies behind."""


def rates_of(optimizers: Optimizers) -> list[list[float]]:
    """Of every optimiser's groups; NaN where one has none."""
    return [[updates.group_rate(group) for group in own.param_groups] for own in optimizers]


class Ramp:
    """Steps as a scheduler does: rates as `rates_of` gives them times one factor after the other, the first from the
    beginning. A group without a rate is left alone."""

    def __init__(self, optimizers: Optimizers, groups: Sequence[Sequence[float]], factors: Sequence[float]) -> None:
        self._optimizers, self._groups, self._factors = optimizers, groups, iter(factors)
        self.step()

    def step(self) -> None:
        """On to the next factor; the last one stays."""
        if (factor := next(self._factors, None)) is None:
            return
        for optimizer, own in zip(self._optimizers, self._groups, strict=True):
            for group, rate in zip(optimizer.param_groups, own, strict=True):
                if math.isfinite(rate):
                    group["lr"] = factor * rate


def peak(optimizers: Optimizers) -> float:
    """The rate of the first group of the first, as it was before a scheduler took it down; NaN where it has none."""
    group = optimizers[0].param_groups[0]
    return float(group["initial_lr"]) if "initial_lr" in group else updates.group_rate(group)


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
