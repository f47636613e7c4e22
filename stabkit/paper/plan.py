"""What an item costs beyond what the store holds, and which items fit a budget: the cheapest evidence first.

Runs are shared between items, so an item's cost is that of the runs that neither the store nor an item planned before
it has. `pace` corrects the estimate by what the runs in the store really took on this machine.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from stabkit import cost
from stabkit.errors import UsageError
from stabkit.flags import Request
from stabkit.paper.items import Item
from stabkit.spec import RunSpec
from stabkit.store import Run

TRANSLATION_STEPS = 60
"""What translating the test set costs, in training updates of 512 tokens; roughly, at any depth."""
POINT_STEPS = 1.0
"""What a point of a surface costs, in training updates of 512 tokens: two validation batches forward."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """An item with its commands read."""

    item: Item
    requests: tuple[Request, ...]

    def specs(self) -> list[RunSpec]:
        """Every run of its commands once."""
        return list({spec.run_id: spec for request in self.requests for spec in request.specs()}.values())


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """An item's place in the plan."""

    asked: Asked
    missing: int
    """Runs to train, beyond the store and the items before."""
    seconds: float
    """On all workers."""
    fits: bool


def seconds(asked: Asked, held: Collection[str], pace: float) -> float:
    """What is left of an item, on all workers; `held`: the ids of the runs, with `+` those translated."""
    total = 0.0
    for request in asked.requests:
        mine = 0.0
        for spec in request.specs():
            mine += cost.seconds(spec) if spec.run_id not in held else 0.0
            step = 2e-9 * cost.parameters(spec) * 512 * 3 / cost.GIGAFLOPS
            if request.translations and f"{spec.run_id}+" not in held:
                mine += TRANSLATION_STEPS * step
            if request.surfaces and f"{spec.run_id}*{asked.item.key}" not in held:
                mine += points(request, len(request.grids[0].methods)) * POINT_STEPS * step
        total += mine / request.workers
    return total * pace


def points(request: Request, methods: int) -> int:
    """Points of the surfaces around one run of a landscape."""
    wanted = request.surfaces
    if wanted is None:
        return 0
    random = methods * (
        wanted.points**2 * bool(wanted.direction_seeds) + wanted.cut_points * len(wanted.direction_seeds)
    )
    return random + (wanted.points**2 if wanted.path != "none" else 0)


def results(asked: Asked) -> set[str]:
    """What `seconds` calls held once an item is done."""
    found = set()
    for request in asked.requests:
        for spec in request.specs():
            found.add(spec.run_id)
            if request.translations:
                found.add(f"{spec.run_id}+")
            if request.surfaces:
                found.add(f"{spec.run_id}*{asked.item.key}")
    return found


def pace(runs: Sequence[Run]) -> float:
    """How much longer than estimated the stored runs took: a median; 1 where there are none long enough to tell."""
    ratios = [
        float(wall) / cost.seconds(run.spec)
        for run in runs
        if isinstance(wall := run.environment.get("wall_seconds"), (int, float))
        and run.outcome["steps"] == run.spec.train.steps
        and cost.seconds(run.spec) >= 2
    ]
    return statistics.median(ratios) if ratios else 1.0


def plan(items: Sequence[Asked], held: Collection[str], budget: float | None, pace: float = 1.0) -> list[Step]:
    """The items in the order in which they are to run, those that do not fit last.

    Again and again the item that adds the least is taken, as long as the budget holds all that was taken. Raises
    UsageError when not even the cheapest fits.
    """
    have = set(held)
    left, steps, spent = list(items), list[Step](), 0.0
    while left:
        costs = {asked.item.key: seconds(asked, have, pace) for asked in left}
        asked = min(left, key=lambda one: costs[one.item.key])
        left.remove(asked)
        need = costs[asked.item.key]
        fits = budget is None or spent + need <= budget
        if fits:
            missing = sum(spec.run_id not in have for spec in asked.specs())
            spent += need
            have |= results(asked)
        else:
            missing = sum(spec.run_id not in have for spec in asked.specs())
        steps.append(Step(asked=asked, missing=missing, seconds=need, fits=fits))
    if steps and not any(step.fits for step in steps):
        cheapest = steps[0]
        raise UsageError(
            f"--budget: nothing fits; the cheapest item, {cheapest.asked.item.key}, needs about "
            f"{duration(cheapest.seconds)}: give --budget {rounded(cheapest.seconds)} or more"
        )
    return steps


def rounded(need: float) -> str:
    """A budget that holds so many seconds: `45s`, `3m`, `2h`."""
    for unit, size in (("s", 1.0), ("m", 60.0), ("h", 3600.0)):
        if need <= 90 * size or unit == "h":
            return f"{int(need / size) + 1}{unit}"
    raise AssertionError


def duration(need: float) -> str:
    """`40 s`, `12 min`, `1.5 h`."""
    if need < 90:
        return f"{need:.0f} s"
    return f"{need / 60:.0f} min" if need < 5400 else f"{need / 3600:.1f} h"


def affordable(step: Step, held: Collection[str], pace: float, left: float | None) -> bool:
    """Whether an item still fits what is left of the budget, by what runs have taken so far."""
    return left is None or seconds(step.asked, held, pace) <= left


Ask = Callable[[Item], Asked]
