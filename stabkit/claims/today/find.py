"""Numbers that the claims of today's methods are tested with: of each run its profile (`results/profile.py`), seed by
seed against another method's, or a line over all depths."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

from stabkit.claims.base import ClaimPart, Measurement, Spot, Threshold, power_of_n
from stabkit.claims.evidence import ClaimCell, alike, cells, fails, fates, trains
from stabkit.claims.exponents import NEARLY
from stabkit.figures.shared.comparison import Condition, setting
from stabkit.methods import label
from stabkit.results.line import exponent
from stabkit.results.profile import Profile
from stabkit.storage.store import Run

Find = Callable[[Sequence[Run]], list[Measurement]]
LEAST_DEEP = 6
"""Layers from which on there is a depth to speak of."""


def of(number: Callable[[Profile], float]) -> Callable[[Run], float]:
    """A number of a run's profile; NaN of a run without."""
    return lambda run: number(run.profile) if run.profile else math.nan


def deep(runs: Sequence[Run], *methods: str) -> Iterator[ClaimCell]:
    """The cells of LEAST_DEEP layers and more that have all of these methods."""
    for cell in cells(runs, blocks=True):
        if cell.layers >= LEAST_DEEP and set(methods) <= set(cell.runs):
            yield cell


def against(method: str, *others: str, number: Callable[[Profile], float], parts: bool = False) -> Find:
    """A method's number over that of another, at the depths that have both and where the method trains in every seed; a
    part of the claim for each other."""

    def find(runs: Sequence[Run]) -> list[Measurement]:
        return [
            cell.measured(
                cell.ratio(method, other, of(number)),
                method,
                other,
                part=than(other) if parts else None,
            )
            for other in others
            for cell in deep(runs, method, other)
            if all(map(trains, cell.of(method)))
        ]

    return find


def than(method: str) -> ClaimPart:
    """`than Pre-LN’s`: the part of a claim that compares with this method."""
    return ClaimPart(method, f"than {label(method, {})}’s")


def growth(method: str, *limits: tuple[ClaimPart, Callable[[Profile], float], Threshold]) -> Find:
    """How the variance of a method's states grows over depth: a number and a limit for each part of the claim."""

    def find(runs: Sequence[Run]) -> list[Measurement]:
        return [
            cell.measured(cell.values(method, of(number)), method, part=part, threshold=threshold, beside=part.text)
            for part, number, threshold in limits
            for cell in deep(runs, method)
            if all(map(trains, cell.of(method)))
        ]

    return find


def upper_over_lower(seen: Profile) -> float:
    """What the variance of the states grows by in the upper half of the layers over what it does in the lower: 1 of a
    straight line, 3 of a square. NaN where it does not grow."""
    lower, upper = seen.stream_half**2 - 1, seen.stream**2 - seen.stream_half**2
    return upper / lower if lower > 0 and upper > 0 else math.nan


def of_an_exponential(seen: Profile) -> float:
    """The same over what an exponential between the same ends gives, the square root of all its growth."""
    return upper_over_lower(seen) / seen.stream


def angle(seen: Profile) -> float:
    """Between what enters a layer and what leaves it, mean over the upper half: arccos of the mean cosine."""
    return math.acos(max(-1.0, min(1.0, seen.cosine_deep)))


def where_it_fails(method: str, other: str) -> Find:
    """Where the other fails in every seed: whether the method trains."""

    def find(runs: Sequence[Run]) -> list[Measurement]:
        measurements = []
        for cell in deep(runs, method, other):
            if all(map(fails, cell.of(other))):
                shares = cell.share(lambda mine, theirs: trains(mine), method, other)
                measurements.append(cell.measured(shares, method, other, beside=fates(cell, method, other)))
        return measurements

    return find


def nats_beside(method: str, other: str) -> Find:
    """The method's loss less the other's, where both train."""

    def find(runs: Sequence[Run]) -> list[Measurement]:
        measurements = []
        for cell in deep(runs, method, other):
            mine, theirs = (cell.values(one, of(lambda seen: seen.loss)) for one in (method, other))
            both = [seed for seed in cell.seeds(method, other) if trains(cell.runs[other][seed])]
            values = {seed: mine[seed] - theirs[seed] for seed in both if seed in mine and seed in theirs}
            measurements.append(cell.measured(values, method, other))
        return measurements

    return find


def flat(method: str, number: Callable[[Run], float], ceiling: float = math.inf) -> Find:
    """How far the exponent of a method's number in the depth lies from 0: one line through all runs of a setting, with
    its 95 % interval. Where a number is beyond `ceiling`·√(2d) it can hardly grow: that it does not decides nothing."""

    def find(runs: Sequence[Run]) -> list[Measurement]:
        held: dict[Condition, list[Run]] = {}
        for entry in alike(runs):
            if entry.variant == method:
                held.setdefault(entry.condition, []).append(entry.run)
        return [found for apart, own in held.items() if (found := _line(apart.text, own, number, ceiling))]

    return find


def _line(apart: str, members: Sequence[Run], number: Callable[[Run], float], ceiling: float) -> Measurement | None:
    points = [(layers(run), value) for run in members if 0 < (value := number(run)) < math.inf]
    line = exponent(points)
    if line is None:
        return None
    p, low, high = line
    bound = ceiling * math.sqrt(2 * members[0].spec.model.hidden)
    saturated = max(value for _, value in points) > bound
    most = max(abs(low), abs(high))
    least = 0.0 if low <= 0 <= high else min(abs(low), abs(high))
    return Measurement(
        where=(Spot(f"{min(points)[0]}-{max(points)[0]}", f"{min(points)[0]}–{max(points)[0]} layers"),),
        apart=apart,
        condition=setting(members[0].spec),
        steps=min(run.spec.expected_steps for run in members),
        values={run.spec.seed: abs(p) for run in members},
        interval=(least, most),
        beside=power_of_n(p),
        beyond="‖ΔF‖ is saturated at some of these depths, at this rate" if saturated and least <= NEARLY else "",
    )


def layers(run: Run) -> int:
    """Of the deeper stack."""
    return max(run.spec.model.encoder_layers, run.spec.model.decoder_layers)


def first_update(run: Run) -> float:
    """‖ΔF‖ after update 1."""
    return run.measured.update_first if run.measured else math.nan
