"""Rates tried on a user's model as work, a job a run; their code runs in the workers alone. Never imports torch."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from stabkit.errors import UsageError
from stabkit.results.own.trial import ModelTrial
from stabkit.results.valley import Axis
from stabkit.running import plan
from stabkit.running.executors import several
from stabkit.running.executors.base import ExecutorOptions, Lost, Tell
from stabkit.running.plan import CommandAttempts, Map, Work
from stabkit.running.transfer import Place, RatesSearched, SearchPlan, Seconds, Train, Trained, search
from stabkit.storage.jobs import Job
from stabkit.storage.shelf import Shelf
from stabkit.storage.trials import TRIAL


@dataclass(frozen=True, kw_only=True, slots=True)
class TrialSpec:
    """One run."""

    factory: str
    depth: int | None
    width: int | None
    lr: float
    seed: int
    steps: int

    @property
    def name(self) -> str:
        """`gpt-12L-d64-lr0.001-s0`."""
        depth, width = (f"{self.depth}L" if self.depth else "", f"d{self.width}" if self.width else "")
        words = (self.factory.rpartition(":")[2], depth, width, f"lr{self.lr:g}", f"s{self.seed}")
        return "-".join(filter(None, words))


@dataclass(frozen=True, kw_only=True, slots=True)
class TrialRequest:
    """What is searched of a factory."""

    factory: str
    here: str
    """The directory that the command was started in: the factory's module may stand there."""
    axis: Axis
    depth: int | None
    """Of all, where widths are searched."""
    smallest: int
    """Of the sizes: `lr` is the rate there."""
    warmup: int | None
    """Updates over which the rate rises; None for the factory's own scheduler, or none."""
    steps: int
    rungs: tuple[float, ...]
    out: Path

    def spec(self, place: Place) -> TrialSpec:
        """The run at a place."""
        depth, width = (place.size, None) if self.axis == "depth" else (self.depth, place.size)
        lr = self.rungs[place.rung]
        return TrialSpec(factory=self.factory, depth=depth, width=width, lr=lr, seed=place.seed, steps=self.steps)

    def job(self, spec: TrialSpec) -> Job:
        """What a worker is given."""
        return {
            "kind": "trial",
            "id": spec.name,
            "factory": spec.factory,
            "depth": spec.depth,
            "width": spec.width,
            "lr": spec.lr,
            "seed": spec.seed,
            "steps": spec.steps,
            "here": self.here,
            "smallest": [self.smallest, None] if self.axis == "depth" else [self.depth, self.smallest],
            "warmup": self.warmup,
            "out": str(self.out),
        }


class TriedModel(NamedTuple):
    """A trial, whether it was stored before, and how long it took."""

    trial: ModelTrial
    reused: bool
    seconds: float


LEARNT = 0.98
"""Of the loss before the first update: what has not come below it has learnt next to nothing."""
TAUGHT = "the model learns almost nothing in these updates, so results about rates are noise"

Trying = Callable[[int], AbstractContextManager[tuple[Tell, Callable[[TrialSpec, "TriedModel | Lost"], None]]]]
"""What shows the runs of a round."""


def of_factory(request: TrialRequest, execute: Map, workers: int, trying: Trying) -> tuple[Train, Seconds]:
    """How a user's model is trained at the places of a round. Raises UsageError for what would be as wrong at any
    size."""
    shelf = Shelf(TRIAL, request.out)
    took: dict[int, list[float]] = {}
    optimizers: dict[str, set[int]] = {}

    def train(places: Sequence[Place]) -> Trained:
        specs = {place: request.spec(place) for place in places}
        work: Work[TrialSpec, TriedModel] = Work(
            kind="trial",
            again="tried again",
            shelf=None,  # what is stored a worker alone can tell: its key holds the weights that the factory makes
            name=lambda spec: spec.name,
            jobs=lambda spec: [request.job(spec)],
            result=lambda spec, answer: _read(shelf, answer),
            attempts=CommandAttempts("timeout"),
            seconds=lambda spec: float((spec.depth or 1) * (spec.width or 1)),
        )
        with trying(len(specs)) as (tell, ended):
            done = plan.complete(plan.plan(list(specs.values()), work), execute, tell, ended=ended)
        by = {_at(model.trial): model for model in done.results}
        models = {place: by[_at(spec)] for place, spec in specs.items() if _at(spec) in by}
        notes = [note for model in models.values() for note in model.trial.notes]
        for place, model in models.items():
            took.setdefault(place.size, []).append(model.seconds)
            optimizers.setdefault(model.trial.optimizer, set()).add(place.size)
        if len(optimizers) > 1:
            named = [f"{name} at {', '.join(map(str, sorted(sizes)))}" for name, sizes in optimizers.items()]
            notes.append(f"the optimiser is not the same at every size: {'; '.join(named)}")
        if models and all(model.trial.loss > LEARNT * model.trial.start for model in models.values()):
            notes.append(f"no rate brought the loss below {LEARNT:.0%} of its initial value: {TAUGHT}")
        return Trained(
            trials={place: model.trial.trial for place, model in models.items()},
            failed=[(spec.name, lost.text) for spec, lost in done.lost],
            new=sum(not model.reused for model in models.values()),
            notes=notes,
        )

    def seconds(places: Sequence[Place]) -> float:
        known = [sum(took[p.size]) / len(took[p.size]) for p in places if p.size in took]
        return sum(known) / max(workers, 1)

    return train, seconds


def searched(
    plan: SearchPlan, request: TrialRequest, place: ExecutorOptions, trying: Trying, limit: float | None
) -> RatesSearched:
    """The search over a user's model, in worker processes of its own. Raises UsageError where no size has a result."""
    with several("processes", place) as execute:
        found = search(plan, *of_factory(request, execute, place.workers, trying), limit)
    if found.failed and not any(valley.trials for case in found.found for valley in case.valleys):
        raise UsageError(f"no size has a result: {found.failed[0][1]}")
    return found


def _at(run: TrialSpec | ModelTrial) -> tuple[int | None, int | None, float, int]:
    return run.depth, run.width, run.lr, run.seed


def _read(shelf: Shelf[ModelTrial], answer: str) -> TriedModel | Lost:
    said = json.loads(answer)
    if "failed" in said:
        return Lost("error", said["failed"], log=said.get("log", ""))
    name = said["folder"]
    return TriedModel(shelf.load(name), bool(said["reused"]), float(shelf.environment(name)["wall_seconds"]))
