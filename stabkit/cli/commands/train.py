"""What the commands that train share: print the configuration, show the plan, or call the API and print; and the next
command worth typing."""

from __future__ import annotations

import importlib
import inspect
import shlex
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from stabkit.cli import config, console
from stabkit.cli.command import Invocation
from stabkit.cli.commands import dry_run
from stabkit.cli.progress import Screen
from stabkit.cli.signals import Signals
from stabkit.errors import FailedRuns, UsageError
from stabkit.methods import label_of, own
from stabkit.options import lines, model, ranges, requests
from stabkit.options.commands import COMMANDS, OPTIONS
from stabkit.report import json_document
from stabkit.report.result import SweepResult
from stabkit.results.forecast.model import HORIZON
from stabkit.results.run import Run
from stabkit.running import cost, runs, surfaces
from stabkit.running.request import TooManyRuns
from stabkit.spec import SHORTEST_JUDGED
from stabkit.storage.store import Store

ASIDE = ("yes", "retry_failed")
"""Options of one call alone."""
OF_A_STEP = ("optimizer", "steps", "warmup", "lr", "dtype")
"""What makes a sweep one of single steps."""


def train(invocation: Invocation, function: Callable[..., Any]) -> None:
    """Print the configuration, show the plan, or call the API's function and print what it returns."""
    if invocation.flag("print_config"):
        print_config(invocation.params)
        return
    check(invocation)
    if invocation.flag("dry_run"):
        plan(invocation)
        return
    result: SweepResult = followed(function, invocation)
    show(result, lambda runs: after(invocation.command, invocation.params, runs), json=invocation.flag("json"))


def check(invocation: Invocation) -> None:
    """Refuse what only the command line can: a file of the user's own that it does not name itself, and with a recipe
    of each method's own a setting that was given although it is the default (another, the API refuses)."""
    for name in ("models", "model", "probes"):
        if name in invocation.given and name not in invocation.typed:
            for item in ranges.names(f"--{name}", invocation.given[name]):
                if file := own.parts(item):
                    raise UsageError(f"{file[0]}: a file is run only if the command line names it")
    if invocation.params.get("recipe") == "paper":
        defaults = COMMANDS[invocation.command]
        given = invocation.given.items()
        model.own_recipe({name: value for name, value in given if value == ranges.text(defaults[name])})


def followed(function: Callable[..., Any], invocation: Invocation, *, rounds: bool = False) -> Any:
    """What the API's function returns, its progress shown; a signal ends it with the command to go on with."""
    seeds = invocation.given.get("seeds")
    if str(seeds).isascii() and str(seeds).isdecimal() and int(str(seeds)) > 1 and not invocation.flag("quiet"):
        console.warn(f"one seed: {seeds}; {seeds} seeds: 0..{int(str(seeds)) - 1}")
    maker = threading.Thread(target=importlib.import_module, args=("stabkit.report.html",), daemon=True)
    meanwhile = (lambda: None) if rounds else maker.start
    screen = Screen(quiet=invocation.flag("quiet"), command=again(), meanwhile=meanwhile, rounds=rounds)
    with Signals(screen.command):
        result = inspect.unwrap(function)(OPTIONS[invocation.command](**invocation.given), screen)
        _ = result.page  # written while a signal still has its words
    return result


def print_config(params: Mapping[str, Any]) -> None:
    """`--print-config`: what `--config` reads."""
    aside = (
        *("config", "print_config", "dry_run", "json", "quiet", "retry_failed", "yes", "items"),
        *("factory", "strict", "strict_drift"),  # what stands on the command line alone
    )
    console.document(config.write({name: value for name, value in params.items() if name not in aside}))


def plan(invocation: Invocation) -> None:
    """`--dry-run`: what would run and what it would cost; of a huge grid the cost alone."""
    json = invocation.flag("json")
    options = {name: value for name, value in invocation.given.items() if name != "yes"}
    screen = Screen(quiet=invocation.flag("quiet"), command=again())
    try:
        asked = requests.request_of(invocation.command, options, screen.making)
    except TooManyRuns as error:
        dry_run.budget(error.budget, json=json)
        return
    for note in asked.notes:
        console.warn(note)
    dry_run.clocked(screen)
    missing, workers = runs.planned(asked.specs, Store(asked.out), repair=False), asked.workers
    pace = cost.pace(list(missing.ready.values()))
    compared = len(set(map(label_of, asked.specs)))
    drawn = pace * sum(surfaces.seconds(spec, asked.surfaces, compared) for spec in asked.specs) / workers
    dry_run.plan(asked.specs, missing, workers, pace, asked.texts, drawn, json=json)


def show(result: SweepResult, then: Callable[[Sequence[Run]], str], *, json: bool) -> None:
    """Tables and the page, or the JSON document; `then` says what to type next. Raises FailedRuns."""
    from stabkit.cli import tables  # pandas and matplotlib: imported by a thread while the runs train

    trained, summary = result.trained, result.summary
    if json:
        from stabkit.report import sweep_document  # likewise

        console.document(json_document.text(sweep_document.sweep(summary, result.page)))
    else:
        tables.slopes(trained.runs)
        tables.verdict(summary)
        tables.last(summary, result.page, then(trained.runs))
    if trained.failed:
        raise FailedRuns(
            f"{len(trained.failed)} of {len(result.specs)} runs have no result; the report says why; the same command "
            "with --retry-failed retries them"
        )


def again() -> str:
    """The command as it can be typed again, with what it prints left to the reader."""
    return shlex.join(["stabkit", *(word for word in sys.argv[1:] if word != "--json")])


def after(command: str, params: Mapping[str, Any], runs: Sequence[Run]) -> str:
    """`stabkit sweep --depths 6,18 --steps 250 --warmup 0`: of runs too short to judge, their verdicts; of some that
    end near the line twice their updates; of judged ones their highest stable rates; of an ablation the loss around
    its weights, of a surface the factors; of single steps the sweep of the same methods. All that the two share is
    taken over. Nothing where there is nothing to go on."""
    if not runs:
        return ""
    if command in ("sweep", "ablate", "landscape") and any(run.outcome.near_line for run in runs):
        return _line(command, command, {**params, "steps": str(2 * max(run.spec.train.steps for run in runs))})
    if command == "sweep":
        if all(run.spec.single_step for run in runs):
            return _line(command, "sweep", {name: value for name, value in params.items() if name not in OF_A_STEP})
        if any(run.outcome.word != "early" for run in runs):
            return _highest(params, runs)
        steps = max(run.spec.train.steps for run in runs)
        enough = max(HORIZON["text" if run.spec.task.source else "synthetic"] for run in runs)
        longer = {"steps": str(enough if steps < enough else 4 * steps)}
        return _line(command, "sweep", {**params, **longer, **({} if params["recipe"] == "paper" else {"warmup": "0"})})
    if command == "ablate" and not str(params["model"]).startswith((".", "/")):
        return _line(command, "landscape", params, "steps", "warmup", "lr")
    if runs[0].spec.method == "deepnorm" and command == "landscape":
        return _line(command, "ablate", params)
    return ""


def _highest(params: Mapping[str, Any], runs: Sequence[Run]) -> str:
    """The search of the same methods' highest stable rates; nothing where it would vary more than depth or width."""
    if len({(run.spec.model.hidden, run.spec.train.max_tokens) for run in runs}) > 1:
        return ""
    short = min(run.spec.train.steps for run in runs) < SHORTEST_JUDGED
    left_out = ("lr", "warmup", *(("steps",) if short else ()))
    searched = {name: value for name, value in params.items() if name not in left_out}
    return _line("sweep", "transfer", {**searched, "highest": True}, "models", "depths")


def _line(before: str, then: str, options: Mapping[str, Any], *kept: str) -> str:
    """The command `then` with these options as far as it takes them; a default of the one before is no wish, where the
    other has a default of its own, but for those `kept`."""
    taken, had = COMMANDS[then], COMMANDS[before]
    wished = {
        name: value
        for name, value in options.items()
        if name in taken
        and name not in ASIDE
        and (
            name not in had or ranges.text(value) != ranges.text(had[name]) or name in kept or had[name] == taken[name]
        )
    }
    return f"stabkit {lines.line(then, wished)}"
