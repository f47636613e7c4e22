"""`stabkit transfer`: search, one page, one table, an exit code."""

from __future__ import annotations

from typing import NotRequired, TypedDict

from stabkit import api
from stabkit.cli import console
from stabkit.cli.command import Invocation
from stabkit.cli.commands import dry_run, train
from stabkit.cli.progress import Screen
from stabkit.errors import FailedRuns, Unstable
from stabkit.options import transfer as options
from stabkit.options.commands import TransferOptions
from stabkit.report import json_document
from stabkit.report.json_document import Document
from stabkit.report.result import TransferResult
from stabkit.results.transfer import HighestJson, TransferJson
from stabkit.running import cost, transfer


class LostRunJson(TypedDict):
    """A run that has no result: the search at its size ended there."""

    run: str
    reason: str


class TransferDocument(Document):
    """`stabkit transfer` of several methods, or with `--highest`."""

    report: str
    """The page's path."""
    answer: str
    cases: list[TransferJson] | list[HighestJson]
    left: int
    """Runs that come next, where the budget is used up."""
    notes: list[str]
    failed: list[LostRunJson]


class OneTransferDocument(TransferDocument, TransferJson):
    """`stabkit transfer` of one method or model: its case once more, key by key."""


AnyTransferDocument = OneTransferDocument | TransferDocument
"""`stabkit transfer`."""


class TransferDryRunDocument(Document):
    """`stabkit transfer --dry-run`."""

    runs: int
    """About how many."""
    rates: list[float]
    depths: NotRequired[list[int]]
    widths: NotRequired[list[int]]
    seeds: list[int]


def carried(invocation: Invocation) -> None:
    """`transfer`: the plan, or the search, its page and its table; raises Unstable for `drifts` with --strict."""
    if invocation.flag("print_config"):
        train.print_config(invocation.params)
        return
    train.check(invocation)
    if invocation.flag("dry_run"):
        _plan(invocation)
        return
    result: TransferResult = train.followed(api.transfer, invocation, rounds=True)
    searched, path = result.searched, result.page
    if invocation.flag("json"):
        console.document(json_document.text(_document(result)))
    else:
        _table(result)
        console.say(f"report: {path}")
    if searched.failed:
        raise FailedRuns(f"{len(searched.failed)} runs have no result; the search at their sizes stopped there")
    drifting = [case.label for case in searched.found if case.verdict == "drifts"]
    if invocation.flag("strict_drift") and drifting:
        raise Unstable(f"the best rate of {', '.join(drifting)} drifts; without --strict the exit code is 0")


def _document(result: TransferResult) -> AnyTransferDocument:
    searched = result.searched
    cases = [case.to_json() for case in searched.found]
    body: TransferDocument = {
        "schema": json_document.SCHEMA,
        "report": str(result.page),
        "answer": result.verdict,
        "cases": [case.rates_json() for case in searched.found] if searched.plan.highest else cases,
        "left": searched.left,
        "notes": list(searched.notes),
        "failed": [{"run": run, "reason": reason} for run, reason in searched.failed],
    }
    return {**body, **cases[0]} if len(cases) == 1 and not searched.plan.highest else body


def _plan(invocation: Invocation) -> None:
    """`--dry-run`: how many runs, about, and of built-in methods how long."""
    given = TransferOptions(**invocation.given)
    if given.factory:
        plan, span = options.of_factory(given).plan, ""
    else:
        screen = Screen(quiet=invocation.flag("quiet"), command=train.again())
        asked = options.of_methods(given, screen.making)
        dry_run.clocked(screen)
        plan = asked.plan
        one = sum(map(cost.seconds, asked.cells.values())) / len(plan.seeds)
        each = one * transfer.runs_a_size(plan) / asked.request.place.workers
        span = f", {cost.span(each + cost.COMMAND)}"
    count = len(plan.cases) * len(plan.sizes) * transfer.runs_a_size(plan)
    if invocation.flag("json"):
        body: TransferDryRunDocument = {
            "schema": json_document.SCHEMA,
            "runs": count,
            "rates": list(plan.rungs),
            "seeds": list(plan.seeds),
        }
        body["depths" if plan.axis == "depth" else "widths"] = list(plan.sizes)
        console.document(json_document.text(body))
    else:
        ends = f"{plan.rungs[0]:g} to {plan.rungs[-1]:g}"
        console.say(f"about {count} runs of {plan.steps} updates{span}; rates from {ends}")


def _table(result: TransferResult) -> None:
    """The sentence, a row a case and size, what is predicted."""
    from stabkit.report import transfer as page

    searched = result.searched
    axis = searched.plan.axis
    rows, heads = page.valleys(searched), page.valley_heads(searched)
    console.table(f"By {axis}", ("", axis, *heads), [(row.label, row.size, *row.cells) for row in rows])
    if not searched.plan.highest:
        console.table(
            f"Over {axis}",
            ("", *page.CASE_HEADS),
            [(row.label, row.drift, row.lost, row.share, row.verdict) for row in page.cases(searched)],
        )
    if predicted := page.predictions(searched):
        sizes = [f"at {size}" for size in searched.plan.predict]
        console.table("Predicted by that law, not tried", ("", *sizes), [(label, *rates) for label, rates in predicted])
    console.say()
    console.paragraph(result.verdict)
    for sentence in page.sentences(searched):
        console.paragraph(sentence)
    for note in searched.notes:
        console.warn(note)
    if searched.left:
        console.say(f"the budget is used up; {searched.left} runs are next; the same command continues")
