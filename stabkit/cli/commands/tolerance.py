"""`stabkit tolerance`: search, one page, one table."""

from __future__ import annotations

from collections.abc import Sequence

from stabkit import api
from stabkit.cli import console
from stabkit.cli.command import Invocation
from stabkit.cli.commands import dry_run, train
from stabkit.cli.progress import Screen
from stabkit.errors import FailedRuns
from stabkit.report import json_document
from stabkit.report.json_document import Document, FactsOfRun, RunJson
from stabkit.report.result import ToleranceResult
from stabkit.results.forecast.measured import UPDATES
from stabkit.results.tolerance import Exponent, ExponentJson, Tolerance, ToleranceJson
from stabkit.running import cost, tolerance


class FailedOfSearch(FactsOfRun):
    """A run that has no result: the search of its cell ended there."""

    reason: str


class ToleranceDocument(Document):
    """`stabkit tolerance`."""

    report: str
    """The page's path."""
    answer: str
    tolerance: list[ToleranceJson]
    exponents: list[ExponentJson]
    runs: list[RunJson]
    failed: list[FailedOfSearch]


def tolerated(invocation: Invocation) -> None:
    """`tolerance`: the plan, or the search, its page and its table."""
    if invocation.flag("print_config"):
        train.print_config(invocation.params)
        return
    train.check(invocation)
    if invocation.flag("dry_run"):
        _plan(invocation)
        return
    result: ToleranceResult = train.followed(api.tolerance, invocation, rounds=True)
    searched, path = result.searched, result.page
    if invocation.flag("json"):
        body: ToleranceDocument = {
            "schema": json_document.SCHEMA,
            "report": str(path),
            "answer": result.verdict,
            "tolerance": [limit.to_json() for limit in searched.found],
            "exponents": [fit.to_json() for fit in result.fits],
            "runs": [json_document.series(run) for run in searched.runs],
            "failed": [{**json_document.facts(spec), "reason": reason} for spec, reason in searched.failed],
        }
        console.document(json_document.text(body))
    else:
        _table(searched.found, result.fits, result.verdict)
        from stabkit.report.tolerance import WORTH, caveat  # matplotlib, which a thread imports meanwhile

        if forecast := all(run.spec.train.steps == UPDATES for run in searched.runs):
            console.paragraph(f"{caveat(searched.runs)} This is a forecast: {WORTH}.".strip())
        console.say(f"report: {path}")
        text = any(run.spec.task.source for run in searched.runs)
        if forecast and (following := train.after_tolerance(invocation.params, searched.found, text=text)):
            console.say(f"next: {following}")
    if searched.failed:
        raise FailedRuns(f"{len(searched.failed)} runs have no result; the search in their cells stopped there")


def _plan(invocation: Invocation) -> None:
    """`--dry-run`: the coarse grid, which is certain, and about what the search takes beyond it."""
    asked = api.request("tolerance", invocation.given, Screen(quiet=invocation.flag("quiet")).making)
    for note in asked.notes:
        console.warn(note)
    coarse, json = asked.of(tolerance.first_round(asked)), invocation.flag("json")
    plan, workers, pace = train.planned(coarse)
    dry_run.plan(coarse.specs, plan, workers, pace, asked.texts, json=json)
    if not json:
        cells = tolerance.cells_of(asked)
        more = tolerance.BEYOND * pace * sum(map(cost.seconds, cells)) / asked.place.workers
        console.say(f"then about {tolerance.BEYOND * len(cells)} runs between these rates, {cost.span(more)}")


def _table(tolerances: Sequence[Tolerance], fits: Sequence[Exponent], answer: str) -> None:
    from stabkit.report.tolerance import cells

    heads, rows = cells(tolerances)
    console.table(
        "Highest rate that passes, without warm-up",
        ("", *heads),
        [(label, *texts) for _, label, texts in rows],
    )
    for fit in fits:
        name = "N" if fit.axis == "depth" else "d"
        console.say(f"{fit.label}: η* ∝ {name}^−{fit.p:.2f} ({fit.low:.2f} to {fit.high:.2f} over {fit.seeds} seeds)")
    console.say()
    console.paragraph(answer)
