"""`stabkit probe`: what is asked, read; the user's model probed in workers; a table, a page, an exit code."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from stabkit.cli import console, ranges
from stabkit.cli.parsing import machine
from stabkit.cli.progress import progress
from stabkit.cli.signals import Signals
from stabkit.errors import FailedRuns, Unstable, UsageError
from stabkit.report import json_document
from stabkit.results.own import series
from stabkit.results.own.cell import ModelCell
from stabkit.results.own.judged import Judged, judged
from stabkit.results.own.verdict import Verdict
from stabkit.running import probes
from stabkit.running.executors import EXECUTORS, ExecutorOptions
from stabkit.running.executors.base import Lost, Tell
from stabkit.running.plan import Done
from stabkit.running.probes import ProbedCell, ProbeRequest, ProbeSpec
from stabkit.storage.store import Store

MOST = 400
"""Cells of one command."""


def read(params: Mapping[str, Any]) -> tuple[ProbeRequest, ExecutorOptions]:
    """What is asked, and where it runs."""
    text = {name: str(value) for name, value in params.items()}
    depths: tuple[int | None, ...] = (None,)
    if text["depths"]:
        depths = ranges.wholes("--depths", text["depths"], 1, 10_000)
    asked = ProbeRequest(
        factory=text["factory"],
        here=os.getcwd(),
        depths=depths,
        seeds=ranges.wholes("--seeds", text["seeds"], 0, 2**31),
        lrs=ranges.reals("--lr", text["lr"], 1e-12, 1e30) if text["lr"] else (0.0,),
        steps=ranges.whole("--steps", text["steps"], 1, 10_000),
        blocks=text["blocks"],
        fresh=bool(params["fresh"]),
        out=machine.output(text["out"]),
    )
    if (count := len(asked.specs())) > MOST:
        raise UsageError(f"that is {count} runs of your model; {MOST} at most: fewer --depths, --seeds or --lr")
    _, place = machine.executor({**text, "executor": "processes", "scheduler": ""})
    workers = min(machine.workers(place.workers, "cpu"), len(asked.specs()))
    return asked, ExecutorOptions(workers=workers, run_timeout=place.run_timeout)


def probe(params: Mapping[str, Any], command: str) -> None:
    """Probe, show, write the page; raises Unstable where a link fails, FailedRuns where a depth has no result."""
    asked, place = read(params)
    quiet, json = bool(params["quiet"]), bool(params["json"])
    store = Store(asked.out)
    with store.writing(), Signals(command):
        with _shown(len(asked.specs()), quiet) as (tell, finished):
            done = probes.run(asked, lambda jobs, tell: EXECUTORS["processes"](jobs, tell, place), tell, finished)
        if not done.results:
            _, first = done.lost[0]
            log = f"; the whole traceback: {first.log}" if first.log else ""
            raise UsageError(f"{asked.factory} gave no result at any depth: {first.reason}{log}")
        series.refuse(done.results)
        from stabkit.report.own import probe as page  # pandas and matplotlib

        found = judged(done.results)
        path = page.write(found, done, asked, command)
    if json:
        console.document(json_document.text({"schema": json_document.SCHEMA, **page.body(found, done, asked, path)}))
    else:
        _table(page, found, done, quiet)
        console.say(f"report: {path}")
    _end(found.worst, done, params)


def _end(worst: Verdict, done: Done[ProbeSpec, ModelCell], params: Mapping[str, Any]) -> None:
    """The exit code: 3 before 7, 7 for a failure and with --strict for what cannot be told."""
    if done.lost:
        spec, first = done.lost[0]
        where = f"depth {spec.depth}" if spec.depth is not None else "the model"
        log = f"; the whole traceback: {first.log}" if first.log else ""
        raise FailedRuns(f"{where}, seed {spec.seed} has no result: {first.reason}{log}")
    word = worst.word
    if not params["no_fail"] and (word == "fail" or (params["strict"] and word == "cannot tell")):
        links = " and ".join(name for name, link in worst.links.items() if link.verdict == word)
        raise Unstable(f"{links}: {word}; --no-fail ends with 0")


@contextmanager
def _shown(count: int, quiet: bool) -> Iterator[tuple[Tell, Callable[[ProbeSpec, ProbedCell | Lost], None]]]:
    reasons: set[str] = set()
    with progress(count, float(count), quiet) as bars:

        def finished(spec: ProbeSpec, ending: ProbedCell | Lost) -> None:
            if isinstance(ending, ProbedCell):
                line = "reused" if ending.reused else "probed"
            else:
                line = "no result again" if ending.reason in reasons else f"no result: {ending.reason}"
                reasons.add(ending.reason)
            bars.finished(spec.name, line, 1.0)

        yield bars.event, finished


def _table(page: ModuleType, found: Judged, done: Done[ProbeSpec, ModelCell], quiet: bool) -> None:
    """The sentence, and the links of every rate."""
    console.paragraph(page.answer(found))
    console.say()
    for row in page.rates(found):
        console.table(
            f"The chain at {row['name']}: {row['word']}",
            ("link", "verdict", "with depth", *row["depths"]),
            [(link["name"], link["verdict"], link["exponent"], *link["values"]) for link in row["links"]],
        )
        units = (f"{link['name']}: {link['unit']}" for link in row["links"] if link["unit"])
        console.paragraph(f"{'; '.join(units)}. Geometric means over seeds.")
    for note in () if quiet else page.notes(found.cells):
        console.paragraph(f"note: {note}")
    if found.worst.word == "fail" and len(found.verdicts) == 1 and not quiet:
        console.say("note: whether the rate breaks it or the depth: --lr with several, like 1e-4,3e-4,1e-3")
    if done.reused and not quiet:
        console.say(f"{done.reused} of {len(found.cells)} from the shelf; --fresh probes them again")
