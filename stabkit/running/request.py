"""What a command was asked for, as a value: runs, where they run, what is measured beside; and what it would cost.

`options/` makes it from options, `execute.py` executes it.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from stabkit.errors import StoreError, UsageError
from stabkit.running import cost
from stabkit.running.executors import EXECUTORS, ExecutorOptions
from stabkit.running.executors.base import Answer, Tell
from stabkit.running.grouping import grouped
from stabkit.running.plan import Map
from stabkit.running.surfaces import SurfaceRequest
from stabkit.spec import Kernels, RunSpec
from stabkit.storage.jobs import Job
from stabkit.storage.store import disk

MANY_RUNS = 2_000
HERE = ("processes", "inline")
"""Executors of this machine."""
LONG_SECONDS = 48 * 3600.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Budget:
    """What all runs of a request would take, were none of them stored."""

    runs: int
    """Those that grids share counted in each."""
    workers: int
    seconds: float
    """On all workers."""
    memory: int
    disk: int

    def __str__(self) -> str:
        """`36 runs, about 0.5 hours on 2 workers, 0.8 GB of memory`."""
        hours, memory = f"{self.seconds / 3600:.2g} hours", f"{self.memory / 1e9:.1f} GB of memory"
        return f"{self.runs} runs, about {hours} on {self.workers} workers, {memory}"


class TooManyRuns(UsageError):
    """A grid that looks like a typo; `budget` is what it would cost."""

    def __init__(self, budget: Budget) -> None:
        super().__init__(f"this grid is large: {budget}; --dry-run shows its cost, --yes runs it")
        self.budget = budget


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """What a command was asked for."""

    specs: tuple[RunSpec, ...]
    """Every run once, in the order of the report; `running.grid` makes them."""
    budget: Budget
    out: Path
    device: str
    """Where the model runs: `cpu`, `cuda:1`, `mps`. The spec keeps its kind alone."""
    kernels: Kernels
    """Which path sub-layers take on a CPU; no spec keeps it, a run's environment says which it was."""
    corpus: dict[str, str] | None
    """{"directory": DIR} of parallel text, or None for the synthetic task."""
    checkpoint_every: int | None
    """Updates; None: what suits each run."""
    executor: str
    place: ExecutorOptions
    surfaces: SurfaceRequest | None = None
    """What is drawn around the runs; None: nothing."""
    texts: Mapping[str, str] = field(default_factory=dict)
    """{sha256: text} of the files of methods and probes that the command named."""
    files: Mapping[str, str] = field(default_factory=dict)
    """{path: sha256} of them, as they were when they were read."""
    together: int = 1
    """Runs of one shape that a worker trains at once."""
    notes: tuple[str, ...] = ()
    """What was left out of it, and why."""

    @property
    def workers(self) -> int:
        """As many processes as there is work for."""
        return min(self.place.workers, len(self.specs))

    def execute(self, jobs: Sequence[Job], tell: Tell) -> Generator[Answer, None, None]:
        """Jobs by the executor asked for, on its workers, this shard's first."""
        jobs = self.place.shard.order(jobs)
        if self.together == 1:
            return EXECUTORS[self.executor](jobs, tell, self.place)
        limit = self.place.run_timeout
        place = replace(self.place, run_timeout=limit and limit * self.together)
        execute: Map = partial(EXECUTORS[self.executor], where=place)
        return grouped(execute, self.together, place.workers)(jobs, tell)

    def of(self, specs: Sequence[RunSpec]) -> Request:
        """The same for these runs alone."""
        once = tuple({spec.run_id: spec for spec in specs}.values())
        return replace(self, specs=once, budget=price([(1, spec) for spec in once], self.place.workers))


def price(alike: Sequence[tuple[int, RunSpec]], workers: int) -> Budget:
    """The budget of runs of which so many cost what one does."""
    runs = sum(count for count, _ in alike)
    workers = min(workers, runs)
    return Budget(
        runs=runs,
        workers=workers,
        seconds=sum(count * cost.seconds(spec) for count, spec in alike) / max(workers, 1),
        memory=workers * max((cost.memory(spec) for _, spec in alike), default=0),
        disk=sum(count * disk(spec) for count, spec in alike),
    )


def check(request: Request) -> None:
    """Refuse what looks like a typo: too many runs, too long, too large for this machine."""
    budget = request.budget
    if budget.runs > MANY_RUNS:
        raise TooManyRuns(budget)
    if budget.seconds > LONG_SECONDS:
        raise UsageError(f"this grid is long: {budget}; --dry-run shows its cost, --yes runs it")
    here = request.executor in HERE and request.device == "cpu"
    if here and budget.memory * request.together > (have := _memory()):
        raise UsageError(
            f"this grid is too large for the {have / 1e9:.1f} GB of memory here: {budget}; "
            "use fewer --workers, smaller --max-tokens or --depths, or --yes"
        )


def space(need: int, out: Path) -> None:
    """Refuse a sweep that the disk cannot hold."""
    there = next(p for p in (out, *out.parents) if p.exists())
    free = shutil.disk_usage(there).free
    if need > free:
        has, needs = f"{free / 1e6:.0f} MB free", f"about {need / 1e6:.0f} MB"
        raise StoreError(f"{there} has {has}, these runs need {needs}; free some space or name another --out")


def _memory() -> float:
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (ValueError, OSError, AttributeError):
        return float("inf")
