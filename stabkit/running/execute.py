"""A request executed: train what is missing, draw surfaces; a listener follows the progress.

Signals are the caller's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from stabkit.errors import StoreError
from stabkit.results.run import Run
from stabkit.results.surface import Surface, SurfaceSpec
from stabkit.running import cost, runs, surfaces, texts
from stabkit.running.executors.base import Lost, Tell
from stabkit.running.plan import Plan, complete
from stabkit.running.request import Request, space
from stabkit.spec import RunSpec
from stabkit.storage import index
from stabkit.storage.index import ListedRun
from stabkit.storage.jobs import Context
from stabkit.storage.store import Store, disk

MANY = 16
"""Stored runs from which on reading them takes long enough to be announced."""


class Listener(Protocol):
    """Follows the progress; the command line's shows it (`cli/progress.py`)."""

    def planned(self, plan: Plan[Any, Any]) -> None:
        """What is there already, what is missing, and what was found corrupt."""

    def making(self, what: str) -> None:
        """Before something that takes seconds: reading many runs, making what all runs then read."""

    def training(
        self, plan: Plan[RunSpec, Run], workers: int
    ) -> AbstractContextManager[tuple[Tell, Callable[[RunSpec, Run | Lost], None]]]:
        """Around the training: what to call at an event of a worker, and when a run has ended."""

    def measuring(self, plan: Plan[Any, Any]) -> AbstractContextManager[tuple[Tell, Callable[[str], None]]]:
        """Likewise around a second measurement: at an event, and when a job has ended."""


@dataclass(frozen=True, slots=True)
class RequestResult:
    """What a request left: its runs in its own order, those without a result and why, its surfaces."""

    runs: list[Run]
    failed: list[tuple[RunSpec, str]]
    surfaces: list[Surface]


def run(request: Request, store: Store, listener: Listener, *, retry_failed: bool = False) -> RequestResult:
    """Everything that the request asks for and the store lacks."""
    specs = request.specs
    if (stored := sum(spec.run_id in store for spec in specs)) >= MANY:
        listener.making(f"reading {stored} stored runs")
    context: Context = {**_everywhere(request), "checkpoint_every": request.checkpoint_every}
    planned = runs.planned(specs, store, context, retry_failed=retry_failed)
    listener.planned(planned)
    space(sum(map(disk, planned.missing)), request.out)
    texts.keep(planned.missing, request.corpus, request.out, listener.making)
    with listener.training(planned, request.workers) as (tell, ended):
        done = complete(planned, request.execute, tell, ended=ended)
    if len(done.results) >= MANY:  # what the next listing would have to read again
        index.keep(store, (index.known(store) | {run.run_id: ListedRun.of(run) for run in done.results}).values())
    wanted = surfaces.specs(done.results, request.surfaces) if request.surfaces else []
    drawn = draw(request, wanted, listener) if wanted else []
    return RequestResult(done.results, [(spec, reason.text) for spec, reason in done.lost], drawn)


def draw(request: Request, wanted: Sequence[SurfaceSpec], listener: Listener) -> list[Surface]:
    """Every surface that is asked for, stored before or drawn now; raises StoreError where one cannot be made."""
    together = 1 if request.device == "cpu" else surfaces.TOGETHER
    planned = surfaces.planned(wanted, request.out, {**_everywhere(request), "together": together})
    listener.planned(planned)
    if planned.missing:
        left = (
            surfaces.left(planned.missing, {one.run_id: cost.forward(one) for one in request.specs}) / request.workers
        )
        listener.making(f"surfaces: {cost.span(left)} on {request.workers} worker{'s' * (request.workers != 1)}")
    with listener.measuring(planned) as (tell, ended):
        done = complete(planned, request.execute, tell, job_done=lambda job: ended(job["id"]))
    for spec, reason in done.lost:
        raise StoreError(f"{spec.surface_id}: {reason.text}; finished tiles are kept: run the command again")
    return done.results


def _everywhere(request: Request) -> Context:
    """What every job holds, whatever its kind."""
    return {
        "corpus": request.corpus,
        "device": request.device,
        "kernels": request.kernels,
        "texts": dict(request.texts),
    }
