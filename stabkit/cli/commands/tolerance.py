"""`stabkit tolerance`: read the options, search, one page, one table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from stabkit import methods
from stabkit.cli import console
from stabkit.cli.commands import dry_run, train
from stabkit.cli.options import TRAINING
from stabkit.cli.parsing import grids
from stabkit.cli.progress import Screen
from stabkit.cli.signals import Signals
from stabkit.errors import FailedRuns
from stabkit.report import json_document
from stabkit.results.forecast.measured import UPDATES
from stabkit.results.tolerance import Exponent, Tolerance, exponents
from stabkit.running import cost, request, runs, tolerance
from stabkit.running.request import Request
from stabkit.storage.store import Store


def read(options: Mapping[str, Any]) -> Request:
    """The request whose cells are searched: a sweep's, without warm-up; the rates are the search's own."""
    own = {"steps": str(UPDATES), "warmup": "0", "yes": True, "dry_run": False}  # what is checked is its first round
    return grids.sweep({**{name: default for name, (_, default) in TRAINING.items()}, **options, **own})


def tolerated(params: Mapping[str, Any]) -> None:
    """`tolerance`: the plan, or the search, its page and its table."""
    if params["print_config"]:
        train.print_config(params)
        return
    asked = read({**params, "given": set()})
    for note in asked.notes:
        console.warn(note)
    coarse = asked.of(tolerance.first_round(asked))
    if params["dry_run"]:
        _plan(asked, coarse, json=bool(params["json"]))
        return
    if not params["yes"]:
        request.check(coarse)
    store, command = Store(asked.out), train.again()
    with store.writing(), Signals(command):
        screen = Screen(quiet=bool(params["quiet"]), rounds=True)
        found = tolerance.search(asked, methods.label_of, store, screen, retry_failed=bool(params["retry_failed"]))
        from stabkit.report import tolerance as page  # pandas and matplotlib

        path = page.write(found, asked, command)
    fits = [one for axis in ("depth", "width") for one in exponents(found.found, axis)]
    if params["json"]:
        body = {
            "schema": json_document.SCHEMA,
            "report": str(path),
            "answer": page.answer(found.found, fits),
            "tolerance": [one.to_json() for one in found.found],
            "exponents": [one.to_json() for one in fits],
            "runs": [json_document.series(run) for run in found.runs],
            "failed": [{**json_document.facts(spec), "reason": reason} for spec, reason in found.failed],
        }
        console.document(json_document.text(body))
    else:
        _table(found.found, fits, page.answer(found.found, fits))
        console.say(f"report: {path}")
    if found.failed:
        raise FailedRuns(f"{len(found.failed)} runs have no result; the search of their cells ended there")


def _plan(asked: Request, coarse: Request, *, json: bool) -> None:
    """`--dry-run`: the coarse grid, which is certain, and about what the search takes beyond it."""
    specs, store = coarse.specs, Store(asked.out)
    planned = runs.planned(specs, store, repair=False)
    pace = cost.pace(runs.timed(planned, store))
    dry_run.plan(specs, planned, coarse.workers, pace, asked.texts, json=json)
    if not json:
        cells = tolerance.cells_of(asked)
        more = tolerance.BEYOND * pace * sum(map(cost.seconds, cells)) / asked.place.workers
        console.say(f"then about {tolerance.BEYOND * len(cells)} runs between these rates, {cost.span(more)}")


def _table(found: Sequence[Tolerance], fits: Sequence[Exponent], answer: str) -> None:
    console.paragraph(answer)
    console.say()
    from stabkit.report.tolerance import cells

    heads, rows = cells(found)
    console.table(
        "The highest rate whose forecast is likely trains, without warm-up",
        ("", *heads),
        [(label, *texts) for _, label, texts in rows],
    )
    for fit in fits:
        name = "N" if fit.axis == "depth" else "d"
        console.say(f"{fit.label}: η* ∝ {name}^−{fit.p:.2f} ({fit.low:.2f} to {fit.high:.2f} over {fit.seeds} seeds)")
