"""Carrying out a request: plan, train what is missing, translate, draw surfaces; progress and notes on the way.

The store's lock and the signals are the caller's: a command that carries out several requests holds them once.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass

from stabkit import console, cost, landscape, present, sweep
from stabkit.quality import plan as translations
from stabkit.quality.shelf import Shelf as Translations
from stabkit.request import Request, space
from stabkit.spec import RunSpec
from stabkit.store import Run, Store
from stabkit.surface.shelf import Shelf, Surface
from stabkit.surface.spec import SurfaceSpec


@dataclass(frozen=True, slots=True)
class Done:
    """What a request left: its runs in its own order, those without a result and why, those whose translation was asked
    for and lost and why, its surfaces."""

    runs: list[Run]
    failed: list[tuple[RunSpec, str]]
    untranslated: list[tuple[RunSpec, str]]
    surfaces: list[Surface]


def out(request: Request, store: Store, *, quiet: bool, retry_failed: bool = False) -> Done:
    """Everything that the request asks for and the store lacks; raises what `sweep.run` raises."""
    store.sweep_partial()
    specs = request.specs()
    planned = sweep.plan(specs, store, retry_failed=retry_failed)
    for warning in planned.corrupt:
        console.warn(warning)
    if not quiet:
        console.note(present.reuse(planned))
    space(sum(map(cost.disk, planned.missing)), request.out)
    seconds = sum(map(cost.seconds, planned.missing))
    with console.progress(len(planned.missing), seconds / request.workers, quiet) as bars:
        done = sweep.run(
            specs,
            planned,
            store,
            request.execute,
            {"corpus": request.corpus, "device": request.device, "checkpoint_every": request.checkpoint_every},
            bars.event,
            lambda spec, answer: bars.finished(*present.finished(store, spec, answer, request.workers)),
        )
    wanted = request.translations
    lost = translate(request, wanted, done.runs, quiet=quiet) if wanted else {}
    untranslated = [(run.spec, f"not translated: {lost[run.run_id]}") for run in done.runs if run.run_id in lost]
    asked = landscape.specs(done.runs, request.surfaces) if request.surfaces else []
    return Done(done.runs, done.failed, untranslated, surfaces(request, asked, quiet=quiet) if asked else [])


def translate(request: Request, wanted: translations.Wanted, runs: Sequence[Run], *, quiet: bool) -> dict[str, str]:
    """The held-out sentences in the words of every run that has not translated them yet; what was lost, and why."""
    shelf = Translations(request.out)
    shelf.sweep_partial()
    context = {"out": str(request.out), "corpus": request.corpus, "device": request.device}
    planned = translations.plan(translations.specs(runs, wanted), shelf, context)
    for warning in planned.corrupt:
        console.warn(warning)
    if not quiet:
        console.note(f"translations: {planned.ready} on the shelf, {len(planned.jobs)} to make")
    with console.progress(len(planned.jobs), float(len(planned.jobs)), quiet or not sys.stderr.isatty()) as bars:
        return translations.run(
            planned,
            request.execute,
            bars.event,
            lambda job_id: bars.finished(job_id, "translated", 1.0),
        )


def surfaces(request: Request, asked: Sequence[SurfaceSpec], *, quiet: bool) -> list[Surface]:
    """Every surface that is asked for: those on the shelf, and those that are drawn now."""
    shelf = Shelf(request.out)
    together = 1 if request.device == "cpu" else landscape.TOGETHER
    context = {"out": str(request.out), "corpus": request.corpus, "device": request.device, "together": together}
    shelf.sweep_partial()
    planned = landscape.plan(asked, shelf, context)
    for warning in planned.corrupt:
        console.warn(warning)
    if not quiet:
        console.note(f"surfaces: {len(planned.ready)} on the shelf, {len(planned.missing)} to draw")
    with console.progress(len(planned.jobs), float(len(planned.jobs)), quiet or not sys.stderr.isatty()) as bars:
        made = landscape.run(
            planned,
            shelf,
            request.execute,
            bars.event,
            lambda job_id: bars.finished(job_id, "", 1.0),
        )
        return [*planned.ready, *made]
