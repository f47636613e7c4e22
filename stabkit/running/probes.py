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

from stabkit.errors import FailedRuns
from stabkit.results.own.cell import ModelCell
from stabkit.results.own.cure import CHANGES, Cure, cure, together
from stabkit.results.own.judged import Judged, least_likely
from stabkit.results.own.measured import UPDATES
from stabkit.running import plan
from stabkit.running.executors.base import Lost, Tell
from stabkit.running.plan import CommandAttempts, Done, Map, Work
from stabkit.storage.jobs import Job
from stabkit.storage.probed import PROBE
from stabkit.storage.shelf import Shelf


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

    @property
    def name(self) -> str:
        """`gpt-12L-d64-lr0.001-s0`."""
        depth, lr = "" if self.depth is None else f"{self.depth}L", f"lr{self.lr:g}" if self.lr else ""
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
    cure_time: float = 0.0
    """Seconds for trying changes; 0: as long again as the probe took."""
    changes: tuple[str, ...] = ("",)
    widths: tuple[int | None, ...] = (None,)
    """Of a factory(depth, width)."""

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

    def job(self, spec: ProbeSpec) -> Job:
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
            "ramped": self.steps == UPDATES and spec.depth == max(self.depths, key=lambda depth: depth or 0),
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


def run(request: ProbeRequest, execute: Map, probing: Probing) -> Done[ProbeSpec, ModelCell]:
    """Probe every cell: one of the shallowest, which answers soonest, then the deepest first, which take longest.
    Raises UsageError for what would be as wrong at any depth."""
    shelf = Shelf(PROBE, request.out)
    specs = request.specs()

    work: Work[ProbeSpec, ProbedCell] = Work(
        kind="probe",
        again="probed again",
        shelf=None,
        name=lambda spec: spec.name,
        jobs=lambda spec: [request.job(spec)],
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


def cured(found: Judged, request: ProbeRequest, execute: Map, limit: float, probing: Probing) -> Judged:
    """What was judged, with the changes that were tried for `limit` seconds on the seed that is least likely to
    train."""
    seed = least_likely(found)
    tried, untried = cures(request, found.worst.lr, seed, execute, limit, probing)
    on = seed if len(request.seeds) > 1 else None
    wanted = time_for_all(limit, len(tried), untried)
    return replace(found, cures=tuple(tried), tried_on=on, untried=untried, wanted=wanted)


def cures(
    request: ProbeRequest, lr: float, seed: int, execute: Map, limit: float, probing: Probing
) -> tuple[list[Cure], int]:
    """Changes tried at the deepest depth, one rate and one seed, cheapest first, as long as `limit` seconds last, until
    one is enough in every seed; where none is, two together. And how many there was no time for. What finds nothing to
    change, has no result, or comes after the one that is enough is left out."""
    begin = time.monotonic()
    keys, others = [change.key for change in CHANGES], tuple(own for own in request.seeds if own != seed)
    tried: dict[str, list[ModelCell]] = {}
    made: dict[str, Cure] = {}

    def probe(seeds: tuple[int, ...], wanted: Sequence[str]) -> list[str]:
        """Which there was no time for, or no need yet."""
        left = limit - (0.0 if seeds == others else time.monotonic() - begin)  # a look at other seeds has its own time
        with probing(len(seeds) * len(wanted)) as shown:
            waiting = _tried(request, lr, seeds, tuple(wanted), execute, left, shown, tried)
        made.update({key: cure(tried[key]) for key in wanted if key in tried})
        return waiting

    def enough() -> bool:
        """Whether one is, in every seed."""
        for key in [key for key in made if made[key].word == "likely trains"]:
            if others and made[key].seeds == 1:
                probe(others, [key])
            if made[key].word == "likely trains":
                return True
        return False

    waiting, found = keys, False
    while waiting and not found and time.monotonic() - begin < limit:
        before, waiting = waiting, probe((seed,), waiting)
        found = enough()
        if waiting == before:
            break
    pair = together({key: (own.word, own.probability or 0.0) for key, own in made.items()})
    if not found and pair and not waiting and time.monotonic() - begin < limit:
        probe((seed,), [pair])
        found = enough()
    listed = [made[key] for key in dict.fromkeys((*keys, *made)) if key in made]
    if not found:
        return listed, len(waiting)
    last = next(i for i, own in enumerate(listed) if own.word == "likely trains")
    return listed[: last + 1], 0  # which later ones were ready by then is a matter of timing


def time_for_all(limit: float, tried: int, left: int) -> int:
    """Seconds for all changes, by how many were `tried` in `limit` seconds and a fifth more, in half minutes; 0 where
    none is left, or none was tried."""
    return 30 * math.ceil(1.2 * limit * (1 + left / tried) / 30) if left and tried else 0


def _tried(
    request: ProbeRequest,
    lr: float,
    seeds: tuple[int, ...],
    keys: tuple[str, ...],
    execute: Map,
    limit: float,
    shown: tuple[Tell, Callable[[ProbeSpec, ProbedCell | Lost], None]],
    tried: dict[str, list[ModelCell]],
) -> list[str]:
    """Probe these changes, whose cells are added to `tried`, until the time is up or the first that is enough is known;
    returns those that were left."""
    deepest = max(request.depths, key=lambda depth: depth or 0)
    asked = replace(request, depths=(deepest,), seeds=seeds, lrs=(lr,), changes=keys)
    specs = {spec.name: spec for spec in asked.specs()}
    shelf, (tell, ended) = Shelf(PROBE, request.out), shown
    begin = time.monotonic()
    waiting = dict.fromkeys(spec.change for spec in specs.values())
    jobs, attempts = [asked.job(spec) for spec in specs.values()], CommandAttempts("error", "died", "timeout")
    with closing(plan.settled(jobs, execute, tell, attempts, patience=max(limit, 0.0))) as answers:
        for job, answer in answers:
            ending = answer if isinstance(answer, Lost) else _read(shelf, answer)
            ended(specs[job["id"]], ending)
            waiting.pop(job["change"], None)
            if isinstance(ending, ProbedCell):
                tried.setdefault(job["change"], []).append(ending.cell)
            stored = isinstance(ending, ProbedCell) and ending.reused  # costs nothing, and is shown again
            if len(seeds) == 1 and _enough(keys, waiting, tried):
                break
            if time.monotonic() - begin > limit and not stored:
                break
    return list(waiting)


def _enough(keys: Sequence[str], waiting: Collection[str], tried: Mapping[str, list[ModelCell]]) -> bool:
    """Whether the first change that makes a model likely to train is known: every one before it has ended."""
    ended = itertools.takewhile(lambda key: key not in waiting, keys)
    return any(key in tried and cure(tried[key]).word == "likely trains" for key in ended)


def _read(shelf: Shelf[ModelCell], answer: str) -> ProbedCell | Lost:
    said = json.loads(answer)
    if "failed" in said:
        return Lost("error", said["failed"], log=said.get("log", ""))
    return ProbedCell(shelf.load(said["folder"]), bool(said["reused"]))
