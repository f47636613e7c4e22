"""What the commands that train share: print the configuration, show the plan, or train, render and print."""

from __future__ import annotations

import importlib
import shlex
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import typer

from stabkit.cli import config, console
from stabkit.cli.commands import dry_run, following
from stabkit.cli.parsing import own
from stabkit.cli.progress import Screen
from stabkit.cli.signals import Signals
from stabkit.errors import FailedRuns
from stabkit.report import json_document
from stabkit.running import cost, execute, runs
from stabkit.running import request as requests
from stabkit.running.request import Request, TooManyRuns
from stabkit.storage.store import Run, Store


def train(ctx: typer.Context, read: Callable[[Mapping[str, Any]], Request]) -> None:
    """Print the configuration, or `read` the options as a request and carry it out."""
    params = ctx.params
    if params["print_config"]:
        print_config(params)
        return
    given = {name for name in params if ctx.get_parameter_source(name).name != "DEFAULT"}  # type: ignore[union-attr]
    typed = {name for name in given if ctx.get_parameter_source(name).name == "COMMANDLINE"}  # type: ignore[union-attr]
    try:
        asked = read({**params, "given": given, "typed": typed})
    except TooManyRuns as error:
        if not params["dry_run"]:
            raise
        dry_run.budget(error.budget, json=params["json"])  # of a huge grid the cost alone
        return
    for note in asked.notes:
        console.warn(note)
    if params["dry_run"]:
        show(asked, json=params["json"])
    else:
        then = partial(following.after, str(ctx.info_name), params)
        flags = {name: params[name] for name in ("json", "quiet", "yes", "retry_failed")}
        run(asked, str(ctx.info_name), again(), then, **flags)


def print_config(params: Mapping[str, Any]) -> None:
    """`--print-config`: what `--config` reads."""
    aside = ("config", "print_config", "dry_run", "json", "quiet", "retry_failed", "yes", "items")
    console.document(config.write({name: value for name, value in params.items() if name not in aside}))


def show(request: Request, *, json: bool) -> None:
    """`--dry-run`: what would run and what it would cost."""
    store = Store(request.out)
    planned = runs.planned(request.specs, store, repair=False)
    pace = cost.pace(runs.timed(planned, store))
    dry_run.plan(request.specs, planned, request.workers, pace, request.texts, json=json)


def run(
    request: Request,
    name: str,
    command: str,
    then: Callable[[Sequence[Run]], str],
    *,
    json: bool,
    quiet: bool,
    yes: bool,
    retry_failed: bool,
) -> None:
    """Train what is missing, measure what is asked for, render, print. `name` is the command's, `command` how it was
    typed; `then` says what to type next."""
    if not yes:
        requests.check(request)
    store = Store(request.out)
    page_maker = threading.Thread(target=importlib.import_module, args=("stabkit.report.html",), daemon=True)
    with store.writing(), Signals(command):
        screen = Screen(quiet=quiet, meanwhile=page_maker.start)
        done = execute.run(request, store, screen, retry_failed=retry_failed)
        from stabkit.cli import tables  # pandas and matplotlib: imported by the thread while the runs train
        from stabkit.report import files
        from stabkit.report.summary import summarise

        summary = summarise(done.runs, done.failed, done.surfaces)
        path = store.out / "reports" / files.page_name(name, request.specs, done.surfaces)
        page = files.write_page(summary, path, command)
    for line in own.changed(request.files):
        console.warn(line)
    if json:
        console.document(json_document.sweep(summary, page))
    else:
        tables.slopes(done.runs)
        tables.verdict(summary)
        tables.quality(done.runs)
        tables.roughness(done.runs, done.surfaces)
        tables.claims(summary.claims)
        tables.last(summary, page, then(done.runs))
    for spec, reason in done.untranslated:
        console.warn(f"{spec.run_id} is {reason}")
    if done.untranslated:
        raise FailedRuns(
            f"{len(done.untranslated)} of {len(done.runs)} runs were not translated; the report is without"
        )
    if done.failed:
        raise FailedRuns(
            f"{len(done.failed)} of {len(request.specs)} runs have no result; the report says why; the same command "
            "with --retry-failed tries them again"
        )


def again() -> str:
    """The command as it can be typed again."""
    return shlex.join(["stabkit", *sys.argv[1:]])
