"""Which rung of a ladder of rates to try next, by training, and what the rungs tried show. Two searches:

Halving, for the highest rate that trains: begin in the middle, go up where a run trains and down where it does not,
until the highest rung that trains and the one above it, which does not, are known. That a rate below one that trains
trains too is taken for granted.

Outward, for the lowest loss: from one rung on down until a rate trains, then the rungs next to the one of the lowest
loss, until it lies between two of a higher loss.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

LARGE = 0.1
"""Rates from here on are written out."""


@dataclass(frozen=True, slots=True)
class BestRate:
    """What is known of the rate of the lowest loss."""

    rate: float
    loss: float
    known: bool
    """Whether both rungs next to it have a higher loss, or it is at an end of the ladder."""


def best(rungs: Sequence[float], losses: Mapping[float, float]) -> BestRate | None:
    """The rung of the lowest loss so far; None where no rung tried has a loss that is a number."""
    tried = {rate: loss for rate, loss in losses.items() if math.isfinite(loss)}
    if not tried:
        return None
    rate = min(sorted(tried), key=tried.__getitem__)
    return BestRate(rate, tried[rate], next_lower(rungs, losses) is None)


def next_lower(rungs: Sequence[float], losses: Mapping[float, float]) -> float | None:
    """The rung to try next for the lowest loss, an untried one next to the best; None where both are tried."""
    tried = {rate: loss for rate, loss in losses.items() if math.isfinite(loss)}
    if not tried:
        return None
    lowest = rungs.index(min(sorted(tried), key=tried.__getitem__))
    neighbours = [rungs[i] for i in (lowest + 1, lowest - 1) if 0 <= i < len(rungs)]
    return next((rate for rate in neighbours if rate not in losses), None)


def next_outward(
    rungs: Sequence[float], losses: Mapping[float, float], trains: Mapping[float, bool], first: float
) -> float | None:
    """The rung to try next for the lowest loss, from `first` on: down until one trains, for rates that do not lie on a
    plateau whose lowest loss is chance; then next to the best of those that train. None where both neighbours of it are
    tried, or no rate down to the lowest trains."""
    if not losses:
        return first
    if not any(trains.values()):
        lower = [rate for rate in rungs if rate < min(losses)]
        return lower[-1] if lower else None
    held = {rate: loss if trains[rate] else math.inf for rate, loss in losses.items()}
    return next_lower(rungs, held)


def written(rate: float) -> str:
    """`4e-3`, `0.256`."""
    return f"{rate:g}" if rate >= LARGE else f"{float(f'{rate:.1e}'.split('e')[0]):g}e{math.floor(math.log10(rate))}"


def next_rung(rungs: Sequence[float], trains: Mapping[float, bool]) -> float | None:
    """The rate to try next; None where the limit is known, or lies beyond an end of the ladder."""
    low = max((i for i, rate in enumerate(rungs) if trains.get(rate, False)), default=-1)
    high = min((i for i, rate in enumerate(rungs) if i > low and not trains.get(rate, True)), default=len(rungs))
    return rungs[(low + high) // 2] if high - low > 1 else None
