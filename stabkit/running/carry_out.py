"""Carrying out a request: plan, train what is missing, translate, draw surfaces; whoever listens is told on the way.

The store's lock and the signals are the caller's: a command that carries out several requests holds them once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from stabkit.results.surface import SurfaceSpec
from stabkit.running import plan_runs, plan_surfaces, plan_translations, texts
from stabkit.running.executors.base import Lost, Tell
from stabkit.running.request import Request, space
from stabkit.spec import RunSpec
from stabkit.storage import size
from stabkit.storage.store import Run, Store
from stabkit.storage.surfaces import Surface, SurfaceShelf
from stabkit.storage.translations import TranslationShelf

MANY = 16
"""Stored runs from which on reading them takes long enough to be told of."""
Plan = plan_runs.Plan | plan_translations.Plan | plan_surfaces.Plan


class Listener(Protocol):
    """Who is told how far the work is; the command line's shows it (`cli/progress.py`)."""

    def planned(self, plan: Plan) -> None:
        """What is there already, what is missing, and what was found corrupt."""

    def making(self, what: str) -> None:
        """Before something that takes seconds: reading many runs, making what all runs then read."""

    def training(
        self, plan: plan_runs.Plan, store: Store, workers: int
    ) -> AbstractContextManager[tuple[Tell, Callable[[RunSpec, str | Lost], None]]]:
        """Around the training: what to call at an event of a worker, and when a run has ended."""

    def measuring(
        self, plan: plan_translations.Plan | plan_surfaces.Plan
    ) -> AbstractContextManager[tuple[Tell, Callable[[str], None]]]:
        """Likewise around a second measurement: at an event, and when a job has ended."""


@dataclass(frozen=True, slots=True)
class Done:
    """What a request left: its runs in its own order, those without a result and why, those whose translation was asked
    for and lost and why, its surfaces."""

    runs: list[Run]
    failed: list[tuple[RunSpec, str]]
    untranslated: list[tuple[RunSpec, str]]
    surfaces: list[Surface]


def out(request: Request, store: Store, listener: Listener, *, retry_failed: bool = False) -> Done:
    """Everything that the request asks for and the store lacks; raises what `plan_runs.run` raises."""
    store.sweep_partial()
    specs = request.specs()
    if (stored := sum(spec.run_id in store for spec in specs)) >= MANY:
        listener.making(f"reading {stored} stored runs")
    planned = plan_runs.plan(specs, store, retry_failed=retry_failed)
    listener.planned(planned)
    space(sum(map(size.disk, planned.missing)), request.out)
    texts.keep(planned.missing, request.corpus, request.out, listener.making)
    with listener.training(planned, store, request.workers) as (tell, finished):
        context = {**_everywhere(request), "checkpoint_every": request.checkpoint_every}
        done = plan_runs.run(specs, planned, store, request.execute, context, tell, finished)
    lost = translate(request, done.runs, listener)
    untranslated = [(run.spec, f"not translated: {lost[run.run_id]}") for run in done.runs if run.run_id in lost]
    asked = plan_surfaces.specs(done.runs, request.surfaces) if request.surfaces else []
    return Done(done.runs, done.failed, untranslated, surfaces(request, asked, listener) if asked else [])


def translate(request: Request, runs: Sequence[Run], listener: Listener) -> dict[str, str]:
    """The held-out sentences in the words of every run that has not translated them yet, where the request asks for
    them; what was lost, and why."""
    if request.translations is None:
        return {}
    shelf = TranslationShelf(request.out)
    shelf.sweep_partial()
    context = {**_everywhere(request), "out": str(request.out)}
    planned = plan_translations.plan(plan_translations.specs(runs, request.translations), shelf, context)
    listener.planned(planned)
    with listener.measuring(planned) as (tell, finished):
        return plan_translations.run(planned, request.execute, tell, finished)


def surfaces(request: Request, asked: Sequence[SurfaceSpec], listener: Listener) -> list[Surface]:
    """Every surface that is asked for: those on the shelf, and those that are drawn now."""
    shelf = SurfaceShelf(request.out)
    together = 1 if request.device == "cpu" else plan_surfaces.TOGETHER
    context = {**_everywhere(request), "out": str(request.out), "together": together}
    shelf.sweep_partial()
    planned = plan_surfaces.plan(asked, shelf, context)
    listener.planned(planned)
    with listener.measuring(planned) as (tell, finished):
        return [*planned.ready, *plan_surfaces.run(planned, shelf, request.execute, tell, finished)]


def _everywhere(request: Request) -> dict[str, Any]:
    """What every job holds, whatever its kind."""
    return {"corpus": request.corpus, "device": request.device, "texts": dict(request.texts)}
