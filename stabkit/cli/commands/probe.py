"""`stabkit probe`: what is asked, read; the user's model probed in workers; a table, a page, an exit code."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from stabkit.cli import console, parse_machine, ranges
from stabkit.cli.progress import progress
from stabkit.cli.signals import Signals
from stabkit.errors import FailedRuns, Unstable, UsageError
from stabkit.report import json_document
from stabkit.running import plan_probes
from stabkit.running.executors import EXECUTORS, Place
from stabkit.running.executors.base import Tell
from stabkit.running.plan_probes import Asked, Done
from stabkit.storage.store import Store

MOST = 400
"""Cells of one command."""


def read(params: Mapping[str, Any]) -> tuple[Asked, Place]:
    """What is asked, and where it runs."""
    text = {name: str(value) for name, value in params.items()}
    depths: tuple[int | None, ...] = (None,)
    if text["depths"]:
        depths = ranges.wholes("--depths", text["depths"], 1, 10_000)
    asked = Asked(
        factory=text["factory"],
        here=os.getcwd(),
        depths=depths,
        seeds=ranges.wholes("--seeds", text["seeds"], 0, 2**31),
        lrs=ranges.reals("--lr", text["lr"], 1e-12, 1e30) if text["lr"] else (0.0,),
        steps=ranges.whole("--steps", text["steps"], 1, 10_000),
        blocks=text["blocks"],
        fresh=bool(params["fresh"]),
        out=parse_machine.output(text["out"]),
    )
    if (count := len(asked.jobs())) > MOST:
        raise UsageError(f"that is {count} runs of your model; {MOST} at most: fewer --depths, --seeds or --lr")
    _, place = parse_machine.executor({**text, "executor": "processes", "scheduler": ""})
    workers = min(parse_machine.workers(place.workers, "cpu"), len(asked.jobs()))
    return asked, Place(workers=workers, run_timeout=place.run_timeout)


def probe(params: Mapping[str, Any], command: str) -> None:
    """Probe, show, write the page; raises Unstable where a link fails, FailedRuns where a depth has no result."""
    asked, place = read(params)
    quiet, json = bool(params["quiet"]), bool(params["json"])
    store = Store(asked.out)
    with store.writing(), Signals(command):
        with _shown(len(asked.jobs()), quiet) as (tell, finished):
            done = plan_probes.run(asked, lambda jobs, tell: EXECUTORS["processes"](jobs, tell, place), tell, finished)
        if not done.cells:
            first = done.failed[0]
            log = f"; the whole traceback: {first.log}" if first.log else ""
            raise UsageError(f"{asked.factory} gave no result at any depth: {first.reason}{log}")
        plan_probes.check(done.cells)
        from stabkit.report import probe as page  # pandas and matplotlib

        found = page.judged(done)
        path = page.write(found, done, asked, command)
    if json:
        console.document(json_document.text({"schema": json_document.SCHEMA, **page.body(found, done, asked, path)}))
    else:
        _table(page, found, done)
        console.say(f"report: {path}")
    _end(found.worst.word, page.answer(found), done, params)


def _end(word: str, answer: str, done: Done, params: Mapping[str, Any]) -> None:
    """The exit code: 3 before 7, 7 for a failure and with --strict for what cannot be told."""
    if done.failed:
        first = done.failed[0]
        where = f"depth {first.depth}" if first.depth is not None else "the model"
        log = f"; the whole traceback: {first.log}" if first.log else ""
        raise FailedRuns(f"{where}, seed {first.seed} has no result: {first.reason}{log}")
    if not params["no_fail"] and (word == "fail" or (params["strict"] and word == "cannot tell")):
        raise Unstable(answer)


@contextmanager
def _shown(count: int, quiet: bool) -> Iterator[tuple[Tell, Callable[[str, str], None]]]:
    with progress(count, float(count), quiet) as bars:
        yield bars.event, lambda name, how: bars.finished(name, how, 1.0)


def _table(page: Any, found: Any, done: Done) -> None:
    """The sentence, and the links of every rate."""
    console.paragraph(page.answer(found))
    console.say()
    for row in page.rates(found):
        console.table(
            f"The chain at {row['name']}: {row['word']}",
            ("link", "verdict", "with depth", *row["depths"]),
            [(link["name"], link["verdict"], link["exponent"], *link["values"]) for link in row["links"]],
        )
    for note in page.notes(found.cells):
        console.say(f"note: {note}")
    if done.reused:
        console.say(f"{done.reused} of {len(found.cells)} from the shelf; --fresh probes them again")
