"""The search for the best rate of every case and size: rounds of runs, all of them side by side.

A round's runs are an ordinary request, of built-in methods (`of_methods`) or of a user's factory (`of_factory`): what
the store holds is not trained again, and what comes next follows from what was found, so that a search that was
interrupted, or ended by its budget, goes on where it stopped.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from stabkit.results.run import Run
from stabkit.results.transfer import Transfer
from stabkit.results.valley import REACH, Axis, Trial, Valley
from stabkit.running import cost, execute
from stabkit.running.request import Request
from stabkit.spec import RunSpec
from stabkit.storage.store import Store

WALK = 5
"""Runs of a seed's walk up, about."""


class Place(NamedTuple):
    """One run of the search."""

    case: str
    """A method with its options, or the factory."""
    size: int
    rung: int
    seed: int


class CaseName(NamedTuple):
    """How a case is called."""

    label: str
    method: str
    """By which it has its colour."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SearchPlan:
    """What is searched."""

    axis: Axis
    cases: Mapping[str, CaseName]
    """{case: how it is called}."""
    sizes: tuple[int, ...]
    rungs: tuple[float, ...]
    seeds: tuple[int, ...]
    steps: int
    predict: tuple[int, ...] = ()
    highest: bool = field(default=False, repr=False)
    """Whether only the highest stable rates are searched; no part of a page's name but for its first word."""

    def transfers(self, tried: Mapping[Place, Trial], lost: Collection[tuple[str, int]] = ()) -> tuple[Transfer, ...]:
        """What these trials say of every case; `lost`: (case, size) with a run that has no result."""
        return tuple(
            Transfer(
                key=case,
                label=name.label,
                method=name.method,
                axis=self.axis,
                valleys=tuple(self._valley(case, size, tried) for size in self.sizes),
                predict=self.predict,
                lost=frozenset(size for size in self.sizes if (case, size) in lost),
            )
            for case, name in self.cases.items()
        )

    def _valley(self, case: str, size: int, tried: Mapping[Place, Trial]) -> Valley:
        mine = {(p.rung, p.seed): trial for p, trial in tried.items() if (p.case, p.size) == (case, size)}
        return Valley(size=size, rungs=self.rungs, seeds=self.seeds, trials=mine, edge_only=self.highest)


@dataclass(frozen=True, kw_only=True, slots=True)
class RatesSearched:
    """What a search found."""

    plan: SearchPlan
    found: tuple[Transfer, ...]
    failed: tuple[tuple[str, str], ...]
    """(run, why it has no result); its case and size are not searched further."""
    left: int
    """Runs that were next when the budget was spent."""
    notes: tuple[str, ...] = ()
    """What was seen on the way, each once."""


class Trained(NamedTuple):
    """What a round left."""

    trials: Mapping[Place, Trial]
    failed: Sequence[tuple[str, str]]
    new: int = 0
    """Runs that were not stored before."""
    notes: Sequence[str] = ()


UNJUDGED = "an undecided run counts as training here: more --steps decide"

Train = Callable[[Sequence[Place]], Trained]
Seconds = Callable[[Sequence[Place]], float]
"""How long these will take, about."""


def search(
    plan: SearchPlan,
    train: Train,
    seconds: Seconds,
    limit: float | None,
    known: Mapping[Place, Trial] | None = None,
) -> RatesSearched:
    """Rounds until nothing is wanted, or the next would not end within `limit` seconds; one that trains something new
    is always made, so that the same command goes on. `known`: trials from elsewhere."""
    begin = time.monotonic()
    tried: dict[Place, Trial] = dict(known or {})
    lost: set[tuple[str, int]] = set()
    failed, notes = list[tuple[str, str]](), list[str]()
    new = left = 0
    while wanted := _next_places(plan, tried, lost):
        if limit is not None and new and time.monotonic() - begin + seconds(wanted) > limit:
            left = len(wanted)
            break
        done = train(wanted)
        tried |= done.trials
        failed += done.failed
        notes += done.notes
        new += done.new
        lost |= {(place.case, place.size) for place in wanted if place not in done.trials}
    return RatesSearched(
        plan=plan,
        found=plan.transfers(tried, lost),
        failed=tuple(dict(failed).items()),
        left=left,
        notes=tuple(dict.fromkeys(notes)),
    )


def runs_a_size(plan: SearchPlan) -> int:
    """About how many runs the search of a size takes: the first seed's walk, and every seed's window, or its walk."""
    return WALK * len(plan.seeds) if plan.highest else WALK + len(plan.seeds) * (2 * REACH + 1)


def _next_places(plan: SearchPlan, tried: Mapping[Place, Trial], lost: set[tuple[str, int]]) -> list[Place]:
    """The largest sizes first, which take longest."""
    wanted = [
        Place(transfer.key, size, rung, seed)
        for transfer in plan.transfers(tried, lost)
        for size, places in transfer.next_trials(len(plan.rungs) // 2).items()
        for rung, seed in places
    ]
    return sorted(wanted, key=lambda place: -place.size)


def of_methods(
    plan: SearchPlan,
    cells: Mapping[tuple[str, int, int], RunSpec],
    request: Request,
    store: Store,
    listener: execute.Listener,
    *,
    retry_failed: bool,
) -> tuple[Train, Seconds]:
    """How built-in methods are trained; `cells`: {(case, size, seed): its run at any rate}."""

    def spec(place: Place) -> RunSpec:
        cell = cells[place.case, place.size, place.seed]
        return replace(cell, train=replace(cell.train, lr=plan.rungs[place.rung]))

    def train(places: Sequence[Place]) -> Trained:
        new = sum(spec(place).run_id not in store for place in places)
        done = execute.run(request.of([spec(place) for place in places]), store, listener, retry_failed=retry_failed)
        runs = {run.run_id: run for run in done.runs}
        trials = {place: trial(runs[run_id]) for place in places if (run_id := spec(place).run_id) in runs}
        early = plan.highest and any(run.outcome.word == "early" for run in done.runs)
        failed = [(lost.run_id, reason) for lost, reason in done.failed]
        return Trained(trials, failed, new, [UNJUDGED] * early)

    def seconds(places: Sequence[Place]) -> float:
        missing = [spec(place) for place in places if spec(place).run_id not in store]
        return sum(map(cost.seconds, missing)) / request.place.workers

    return train, seconds


def trial(run: Run) -> Trial:
    """Of a stored run: its validation loss after all its updates."""
    whole = run.outcome.word != "diverged" and run.outcome.steps == run.spec.train.steps
    loss = run.outcome.validation_loss if whole else math.inf
    return Trial(loss if math.isfinite(loss) else math.inf, run.outcome.word in ("trains", "early"))
