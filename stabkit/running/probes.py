"""A user's model over depths as work: a job a cell. The user's code runs in the workers alone. Never imports torch.

What is stored only a worker can tell, for its key holds the weights that the factory makes.
"""

from __future__ import annotations

import itertools
import json
import math
import re
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from stabkit.errors import FailedRuns
from stabkit.results.own.cell import ModelCell
from stabkit.results.own.cure import cure, first_tried
from stabkit.results.own.decided import decided
from stabkit.results.own.judged import Judged
from stabkit.results.own.measured import UPDATES
from stabkit.results.own.widths import over_widths
from stabkit.running import plan
from stabkit.running.executors.base import Lost, Tell
from stabkit.running.plan import CommandAttempts, Done, Map, Work
from stabkit.storage.jobs import Event, Job
from stabkit.storage.probed import PROBE
from stabkit.storage.shelf import Shelf

Train = Literal["no", "undecided", "passing", "always"]
"""Which models a worker trains on after their probe (`own/probe/job.py`)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ProbeSpec:
    """One cell."""

    factory: str
    depth: int | None
    """None: the factory takes none."""
    lr: float
    """0: its optimiser's own."""
    seed: int
    change: str = ""
    """What is changed to try a cure."""
    width: int | None = None
    """None: the factory's own."""
    times: float = 1.0
    """What every rate is multiplied by."""

    @property
    def name(self) -> str:
        """`gpt-12L-d64-lr0.001x4-s0`."""
        depth, lr = "" if self.depth is None else f"{self.depth}L", f"lr{self.lr:g}" if self.lr else ""
        lr += f"x{self.times:g}" if self.times != 1.0 else ""
        width = f"d{self.width}" if self.width else ""
        change = re.sub(r"[^\w-]", "", self.change.replace("/", "-over-").replace("*", "-times-"))
        words = (self.factory.rpartition(":")[2], depth, width, lr, f"s{self.seed}", change)
        return "-".join(word for word in words if word)


@dataclass(frozen=True, kw_only=True, slots=True)
class ProbeRequest:
    """What `stabkit probe` was asked for."""

    factory: str
    here: str
    """The directory that the command was started in: the factory's module may stand there."""
    depths: tuple[int | None, ...]
    """(None,) where the factory takes no depth."""
    seeds: tuple[int, ...]
    lrs: tuple[float, ...]
    """(0.0,) for its optimiser's own."""
    warmup: int | None
    """Updates over which the rate rises; None for the factory's own scheduler, or none."""
    steps: int
    blocks: str
    fresh: bool
    out: Path
    time: float = 120.0
    """Seconds for training on, and for changes."""
    quick: bool = False
    """Whether nothing is trained on, and no change is tried."""
    changes: tuple[str, ...] = ("",)
    widths: tuple[int | None, ...] = (None,)
    """Of a factory(depth, width)."""
    predict: tuple[int, ...] = ()
    """Widths to say what is expected of."""

    def specs(self) -> list[ProbeSpec]:
        """By depth, rate, seed and change."""
        return [
            ProbeSpec(factory=self.factory, depth=depth, lr=lr, seed=seed, change=change, width=width)
            for depth in sorted(self.depths, key=lambda depth: depth or 0)
            for width in self.widths
            for lr in self.lrs
            for seed in self.seeds
            for change in self.changes
        ]

    def job(self, spec: ProbeSpec, train: Train, until: float) -> Job:
        """What a worker is given."""
        return {
            "kind": "probe",
            "id": spec.name,
            "factory": spec.factory,
            "here": self.here,
            "depth": spec.depth,
            "width": spec.width,
            "seed": spec.seed,
            "lr": spec.lr,
            "warmup": self.warmup,
            "steps": self.steps,
            "blocks": self.blocks,
            "change": spec.change,
            "ramped": self.steps == UPDATES,
            "train": train,
            "until": until,
            "seconds": self.time,
            "times": spec.times,
            "out": str(self.out),
            "fresh": self.fresh,
        }


@dataclass(frozen=True, slots=True)
class ProbedCell:
    """A cell, and whether it was stored before."""

    cell: ModelCell
    reused: bool


Probing = Callable[[int], AbstractContextManager[tuple[Tell, Callable[[ProbeSpec, ProbedCell | Lost], None]]]]
"""What shows the cells of a probe."""
START, LAYER = 5.0, 0.12
"""Seconds until a worker is at work, and of a layer of a small model (`benchmarks/probe_cost.py`)."""


def seconds(request: ProbeRequest, workers: int) -> float:
    """Of the probes alone, roughly: nothing is known of the model before a worker has built it."""
    layers = [float(spec.depth or 12) for spec in replace(request, seeds=request.seeds[:1]).specs()]
    return START + LAYER * max(max(layers), sum(layers) / workers)


def run(request: ProbeRequest, execute: Map, until: float, probing: Probing) -> Done[ProbeSpec, ModelCell]:
    """Probe every depth and rate with the first seed, and train on what that does not decide; where the word is not
    firm then, likewise with the other seeds. Raises UsageError for what would be as wrong at any depth."""
    first = replace(request, seeds=request.seeds[:1])
    done = _probed(request, first.specs(), execute, until, probing)
    open_ = {(cell.facts.depth, cell.facts.lr) for cell in done.results if not decided(cell).firm}
    others = replace(request, seeds=request.seeds[1:]).specs()
    more = [spec for spec in others if (spec.depth, spec.lr) in open_]
    if not more or time.time() > until:
        return done
    return done.and_(_probed(request, more, execute, until, probing))


def over(request: ProbeRequest, execute: Map, until: float, probing: Probing) -> Done[ProbeSpec, ModelCell]:
    """Every width, with the other seeds their sizes alone; then multiples of its rate with the first seed, round by
    round, until the highest that trains is known at each, or the time is over. Raises as `run`."""
    first = replace(request, seeds=request.seeds[:1]).specs()
    done = _probed(request, first, execute, until, probing)
    lost = {spec for spec, _ in done.lost}
    at = {cell.facts.width: spec for spec, cell in zip([s for s in first if s not in lost], done.results, strict=True)}
    if others := replace(request, seeds=request.seeds[1:]).specs():
        done = done.and_(_probed(request, others, execute, until, probing, "no"))
    while request.steps == UPDATES and time.time() < until and len(at) > 1:
        rows = over_widths(done.results, request.seeds[0]).rows
        wanted = {row.width: k for row in rows if (k := row.next_multiple) is not None}
        more = [spec for width, k in wanted.items() if (spec := replace(at[width], times=k)) not in lost]
        if not more:
            break
        found = _probed(request, more, execute, until, probing)
        lost |= {spec for spec, _ in found.lost}
        done = done.and_(found)
    return done


def _probed(
    request: ProbeRequest,
    specs: list[ProbeSpec],
    execute: Map,
    until: float,
    probing: Probing,
    which: Train | None = None,
) -> Done[ProbeSpec, ModelCell]:
    """These cells: one of the shallowest first, which answers soonest, then the deepest, which take longest."""
    shelf, which = Shelf(PROBE, request.out), which or train(request)
    work: Work[ProbeSpec, ProbedCell] = Work(
        kind="probe",
        again="probed again",
        shelf=None,
        name=lambda spec: spec.name,
        jobs=lambda spec: [request.job(spec, which, until)],
        result=lambda spec, answer: _read(shelf, answer),
        attempts=CommandAttempts("timeout"),  # what hung once hangs again
        seconds=lambda spec: math.inf if spec is specs[0] else float(spec.depth or 0),
    )
    with probing(len(specs)) as (tell, ended):
        done = plan.complete(plan.plan(specs, work), execute, tell, ended=ended)
    cells = [probed.cell for probed in done.results]
    alike = request.widths == (None,) and len({cell.digest for cell in cells}) < len(cells)  # a width may be ignored
    if len(cells) + len(done.lost) != len(specs) or alike:
        raise FailedRuns(f"{len(specs)} runs were requested, {len(cells)} came back; does the factory fork?")
    order = {spec.name: i for i, spec in enumerate(specs)}
    lost = sorted(done.lost, key=lambda pair: order[pair[0].name])
    return Done(results=cells, lost=lost, reused=sum(probed.reused for probed in done.results))


def train(request: ProbeRequest) -> Train:
    """Nothing where there is no forecast to begin with."""
    return "no" if request.quick or request.steps != UPDATES else "undecided"


ENOUGH = 2
"""Changes that are seen to train."""


def changed(found: Judged, request: ProbeRequest, execute: Map, until: float, probing: Probing) -> Judged:
    """What was judged, with changes that were tried on the deepest model at the worst rate and seed, in the order that
    the link which breaks gives: those that pass the forecast are trained, the model as it is beside them, until ENOUGH
    are seen to train or the clock says `until`."""
    deepest = found.worst.depths[-1]
    place = deepest.depth, found.worst.lr, deepest.seed
    at = next(cell for cell in found.cells if (cell.facts.depth, cell.facts.lr, cell.seed) == place)
    keys = first_tried(found.worst, [at])
    if time.time() > until:
        return replace(found, untried=len(keys), time=request.time)
    asked = replace(request, depths=(at.facts.depth,), seeds=(at.seed,), lrs=(at.facts.lr,), changes=("", *keys))
    specs = {spec.name: spec for spec in asked.specs()}
    jobs = [asked.job(spec, "always" if not spec.change else "passing", until) for spec in specs.values()]
    waiting, cells = dict.fromkeys(asked.changes), dict[str, ModelCell]()
    shelf, attempts = Shelf(PROBE, request.out), CommandAttempts("error", "died", "timeout")
    training = set[str]()  # these end by themselves when the time is over, with what was seen so far
    with probing(len(jobs)) as (tell, ended):

        def heard(event: Event) -> None:
            if event.get("steps", 0) > UPDATES:
                training.add(event["id"])
            tell(event)

        patience = max(until - time.time(), 0.0)
        with closing(plan.settled(jobs, execute, heard, attempts, patience=patience)) as answers:
            for job, answer in answers:
                training.discard(job["id"])
                ending = answer if isinstance(answer, Lost) else _read(shelf, answer)
                ended(specs[job["id"]], ending)
                waiting.pop(job["change"], None)
                if isinstance(ending, ProbedCell):
                    cells[job["change"]] = ending.cell
                stored = isinstance(ending, ProbedCell) and ending.reused  # costs nothing, and is shown again
                over = time.time() > until and not stored and not training
                if over or _enough(asked.changes, waiting, cells):
                    break
    tried = list(itertools.takewhile(lambda key: key not in waiting, keys)) if "" not in waiting else keys
    all_ = [cure(cells[key], cells.get("")) for key in tried if key in cells]
    before = itertools.accumulate((one.trains for one in all_), initial=0)
    cures = tuple(one for one, seen in zip(all_, before, strict=False) if seen < ENOUGH)  # later ones: by timing alone
    shown = ("", *(one.change for one in cures))
    beside = tuple((key, cells[key]) for key in shown if key in cells and "trained" in cells[key].records)
    left = 0 if sum(one.trains for one in cures) >= ENOUGH else len([key for key in waiting if key])
    return replace(found, cures=cures, untried=left, time=request.time, beside=beside)


def _enough(keys: Sequence[str], waiting: Collection[str], cells: Mapping[str, ModelCell]) -> bool:
    """Whether ENOUGH are seen to train among those before the first that has not ended."""
    ended = itertools.takewhile(lambda key: key not in waiting, keys)
    return sum(cure(cells[key]).trains for key in ended if key and key in cells) >= ENOUGH


def _read(shelf: Shelf[ModelCell], answer: str) -> ProbedCell | Lost:
    said = json.loads(answer)
    if "failed" in said:
        return Lost("error", said["failed"], log=said.get("log", ""))
    return ProbedCell(shelf.load(said["folder"]), bool(said["reused"]))
