"""The rate over the updates of a probe: the factory's own scheduler, a linear warm-up, or none."""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.optim.lr_scheduler import LambdaLR, ReduceLROnPlateau

from stabkit.errors import UsageError
from stabkit.own.chain import updates
from stabkit.results.own.measured import RAMP, TOP

AHEAD = 4000
"""Updates that a scheduler is played ahead, to see where its rate is highest."""
RATE_ATTRIBUTES = ("base_lrs", "max_lrs", "eta_min", "min_lrs")
"""Attributes of torch's schedulers that hold rates."""
GROUP = ("lr", "initial_lr", "max_lr", "min_lr")
"""… and keys of an optimiser's groups."""

RISE, HOLD, STILL_RISES = 12, 4, 1.5
"""Updates that lead up to the highest rate of a schedule which is to rise by more than STILL_RISES yet, and updates at
it: what a warm-up ends in."""

Optimizers = Sequence[torch.optim.Optimizer]
Rates = Sequence[Sequence[float]]
"""Of every optimiser's groups."""


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """What steps after every update."""

    schedulers: tuple[Any, ...] = ()
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, given: Sequence[Any], optimizers: Optimizers, warmup: int | None, name: str) -> Schedule:
        """Of a factory's schedulers, or of a warm-up; raises UsageError for both."""
        if given and warmup is not None:
            raise UsageError(f"{name}: --warmup is for a factory without a scheduler; this one has one")
        kept = tuple(own for own in given if not isinstance(own, ReduceLROnPlateau))
        left = (
            f"{len(given) - len(kept)} ReduceLROnPlateau, which a probe does not step" if len(kept) < len(given) else ""
        )
        if given or not warmup:
            return cls(schedulers=kept, notes=(left,) if left else ())
        return cls(schedulers=tuple(LambdaLR(own, lambda t: min(1.0, (t + 1) / warmup)) for own in optimizers))

    def step(self) -> None:
        """After an update."""
        for scheduler in self.schedulers:
            scheduler.step()

    def ahead(self, optimizers: Optimizers, seen: Sequence[Rates]) -> Peak:
        """Where the rates are highest: among those `seen` at updates so far, the last of them the one to come, and the
        ones that follow. The schedulers are at their end then, not to be stepped any more; the groups are as before."""
        held = groups(optimizers)
        rates = list(seen)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of steps without an update
            try:
                for _ in range(AHEAD if self.schedulers else 0):
                    self.step()
                    rates.append(rates_of(optimizers))
            except Exception:  # a schedule that is over (OneCycleLR raises), or ends in its own way: no rate follows
                pass
        put_back(optimizers, held)
        highest, follows = _highest(rates), _highest(rates[len(seen) - 1 :])
        now = seen[-1]
        rises = any(
            STILL_RISES * low < high for own in zip(now, follows, strict=True) for low, high in zip(*own, strict=True)
        )
        first = [own[0][0] for own in rates]
        at = next((i for i, rate in enumerate(first) if rate >= highest[0][0] * (1 - 1e-9)), 0)
        return Peak(update=at + 1 if at else 0, highest=highest, now=now, rises=rises)


@dataclass(frozen=True, kw_only=True)
class Peak:
    """The highest rates of a schedule."""

    update: int
    """The update that is first made at `rate`; 0 for the first of all."""
    highest: Rates
    """Of every group, whenever it is."""
    now: Rates
    rises: bool
    """Whether one of them is to rise by more than STILL_RISES yet."""

    @property
    def rate(self) -> float:
        """The highest of the first group of the first optimiser; NaN where it has none."""
        return self.highest[0][0]


def ramp(peak: Peak) -> list[Rates]:
    """The rates of the updates of a ramp: where they have yet to rise RISE that lead each group geometrically up to its
    highest rate and HOLD at it, then RAMP from there to TOP times it."""
    led = [_between(peak, 1 - (k + 1) / RISE) for k in range(RISE)] + HOLD * [peak.highest]
    factors = [TOP ** (k / (RAMP - 1)) for k in range(RAMP)]
    beyond = [[[factor * rate for rate in own] for own in peak.highest] for factor in factors]
    return [*(led if peak.rises else []), *beyond]


def _between(peak: Peak, way: float) -> Rates:
    """`way` 1: those of now; 0: the highest."""
    return [
        [high * (low / high) ** way if high > 0 else high for low, high in zip(*own, strict=True)]
        for own in zip(peak.now, peak.highest, strict=True)
    ]


def _highest(rates: Sequence[Rates]) -> Rates:
    """Of every group; NaN where it has none."""
    return [
        [max((one for one in group if math.isfinite(one)), default=math.nan) for group in zip(*own, strict=True)]
        for own in zip(*rates, strict=True)
    ]


def groups(optimizers: Optimizers) -> list[list[dict[str, Any]]]:
    """What the groups hold beside their parameters, of every optimiser; a rate that is a tensor is filled in place."""
    return [[_tensor_rates(group) for group in own.param_groups] for own in optimizers]


def put_back(optimizers: Optimizers, held: Sequence[Sequence[dict[str, Any]]]) -> None:
    """The groups as they were."""
    for optimizer, before in zip(optimizers, held, strict=True):
        for group, values in zip(optimizer.param_groups, before, strict=True):
            group.update(_tensor_rates(values))


def _tensor_rates(group: dict[str, Any]) -> dict[str, Any]:
    plain = {name: value for name, value in group.items() if name != "params"}
    return {name: copied(value) if isinstance(value, torch.Tensor) else value for name, value in plain.items()}


def copied(state: Any) -> Any:
    """With tensors of its own."""
    if isinstance(state, dict):
        return {name: copied(value) for name, value in state.items()}
    return state.detach().clone() if isinstance(state, torch.Tensor) else copy.deepcopy(state)


def rates_of(optimizers: Optimizers) -> Rates:
    """Of every optimiser's groups; NaN where one has none."""
    return [[updates.group_rate(group) for group in own.param_groups] for own in optimizers]


class Ramp:
    """Steps as a scheduler does: one value of `rates` after the other, the first from the beginning. A group without a
    rate is left alone."""

    def __init__(self, optimizers: Optimizers, rates: Sequence[Rates]) -> None:
        self._optimizers, self._rates = optimizers, iter(rates)
        self.step()

    def step(self) -> None:
        """On to the next; the last one stays."""
        for optimizer, own in zip(self._optimizers, next(self._rates, ()), strict=False):
            for group, rate in zip(optimizer.param_groups, own, strict=True):
                if math.isfinite(rate):
                    group["lr"] = rate


def peak(optimizers: Optimizers) -> float:
    """The rate of the first group of the first, as it was before a scheduler took it down; NaN where it has none."""
    group = optimizers[0].param_groups[0]
    return float(group["initial_lr"]) if "initial_lr" in group else updates.group_rate(group)


def scale(optimizers: Optimizers, schedulers: Sequence[Any], factor: float) -> None:
    """Multiply every rate, in the optimisers' groups and in what the schedulers remember of them."""
    for group in (group for optimizer in optimizers for group in optimizer.param_groups):
        for key in GROUP:
            if isinstance(rate := group.get(key), torch.Tensor):
                group[key] = rate * factor  # another tensor: groups may share one
            elif isinstance(rate, (int, float)):
                group[key] = float(rate) * factor
    for scheduler in _all(schedulers):
        for attribute in RATE_ATTRIBUTES:
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
