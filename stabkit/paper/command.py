"""`stabkit paper`: list the items, plan them within a budget, run them, write one page.

Everything that an item leaves is in the store before the next begins, so that a command that was interrupted goes on
where it stopped, and the page can be written anew at any time.
"""

from __future__ import annotations

import dataclasses
import hashlib
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stabkit import carry, console, document, flags, listing, machine
from stabkit import options as tables
from stabkit.errors import FailedRuns, Interrupted, StabkitError, UsageError, nearest
from stabkit.paper import plan as plans
from stabkit.paper.items import BY_KEY, ITEMS, NOT_HERE, Item
from stabkit.paper.plan import Asked, Step
from stabkit.request import Request, check
from stabkit.signals import Signals
from stabkit.spec import RunSpec
from stabkit.store import Run, Store
from stabkit.surface.shelf import Surface

if TYPE_CHECKING:
    from stabkit.claims import Finding

PASSED = (
    *("data", "source", "target", "vocab", "workers", "device", "checkpoint_every", "run_timeout", "executor"),
    *("scheduler", "out"),
)
"""Options of `paper` that its items' commands take over as they are."""
REPLACED = ("depths", "steps", "seeds")
"""Options of `paper` that replace those of its items' commands: a smaller, or a larger, version of all."""


@dataclass(frozen=True, kw_only=True)
class Part:
    """An item as it was run: what its section of the page is made of."""

    item: Item
    commands: tuple[str, ...]
    instead: str = ""
    """`--depths 2 --steps 3` where they replaced the item's own; else nothing."""
    notes: tuple[str, ...] = ()
    """What its commands left out, and why."""
    stopped: str = ""
    """Why it was not run to its end; else nothing."""
    runs: Sequence[Run] = ()
    failed: Sequence[tuple[RunSpec, str]] = ()
    surfaces: Sequence[Surface] = ()

    @cached_property
    def findings(self) -> dict[str, Finding]:
        """Its claims and those beside them, judged on its own runs."""
        from stabkit.claims import findings

        asked = (*self.item.claims, *self.item.beside)
        return {one.claim.key: one for one in findings(self.runs, self.surfaces) if one.claim.key in asked}

    @cached_property
    def section(self) -> Mapping[str, Any]:
        """What the page shows of it; drawn once, for the page is written anew after every item."""
        from stabkit.report.paper import section

        return section(self)

    def judged(self) -> list[Finding]:
        """The claims that are the item's own."""
        return [self.findings[key] for key in self.item.claims]


def ls(*, json: bool) -> None:
    """`paper ls`."""
    if json:
        rows = [dataclasses.asdict(item) for item in ITEMS]
        body = {"items": rows, "not_here": [{"what": what, "why": why} for what, why in NOT_HERE]}
        console.document(document.text({"schema": document.SCHEMA, **body}))
        return
    for paper in dict.fromkeys(item.paper for item in ITEMS):
        listed = [(item.key, item.name, item.title) for item in ITEMS if item.paper == paper]
        console.table(paper, ("item", "", ""), listed)
        console.say()
    console.say("What no small machine can rerun, even in shape:")
    for what, why in NOT_HERE:
        console.paragraph(f"- {what}: {why}", "  ")


def wanted(names: Sequence[str]) -> list[Item]:
    """The items named; `all` is every one. Raises UsageError with the nearest name."""
    found: dict[str, Item] = {}
    for name in names:
        if name == "all":
            found |= BY_KEY
        elif name in BY_KEY:
            found[name] = BY_KEY[name]
        else:
            raise UsageError(
                f"{name!r} is no item{nearest(name, ['all', *BY_KEY]) or ';'} `stabkit paper ls` lists them"
            )
    return list(found.values())


def budget(text: str) -> float | None:
    """`45m`, `2h`, `90s` as seconds; None for no limit."""
    if not text:
        return None
    found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)(s|m|min|h)", text.strip())
    if not found or float(found[1]) <= 0:
        raise UsageError(f"--budget takes a time such as 90s, 45m or 2h; got {text!r}")
    return float(found[1]) * {"s": 1, "m": 60, "min": 60, "h": 3600}[found[2]]


def ask(item: Item, params: Mapping[str, Any]) -> tuple[Asked, Part]:
    """An item's commands as requests, and its part of the page before anything has run.

    Raises UsageError or CorpusError as the commands themselves would.
    """
    requests, lines, notes = list[Request](), list[str](), list[str]()
    for text in item.commands:
        command, options = tables.words(text)
        options |= {name: params[name] for name in PASSED}
        options |= {name: params[name] for name in REPLACED if params[name]}
        request = getattr(flags, command)({**options, "given": set()})
        if not params["yes"]:
            check(request)
        requests.append(request)
        notes += request.notes
        lines.append(f"stabkit {tables.line(command, options)}")
    instead = " ".join(f"--{name} {params[name]}" for name in REPLACED if params[name])
    return plans.asked(item, requests), Part(item=item, commands=tuple(lines), instead=instead, notes=tuple(notes))


def run(params: Mapping[str, Any], command: str) -> None:
    """`paper ITEM…`: plan, run, one page, written anew after every item."""
    limit = budget(str(params["budget"]))
    asked: dict[str, tuple[Asked, Part]] = {}
    refused: list[Part] = []
    for item in wanted(params["items"]):
        try:
            asked[item.key] = ask(item, params)
        except StabkitError as error:
            if len(params["items"]) == 1 and params["items"] != ["all"]:
                raise
            refused.append(Part(item=item, commands=(), stopped=str(error)))
            refusal = error
    if not asked:
        raise refusal
    store = Store(machine.output(str(params["out"])))
    stored = listing.find(store, [])
    steps = plans.plan([one for one, _ in asked.values()], held(store, asked.values()), limit, plans.pace(stored))
    if params["dry_run"]:
        show(steps, refused, limit, json=params["json"])
        return
    quiet = params["quiet"]
    for part in refused:
        console.warn(f"{part.item.key} is left out: {part.stopped}")
    begin = time.monotonic()
    parts, beyond = list(refused), [step for step in steps if not step.fits]
    path = store.out / "reports" / _name(params)
    with store.writing(), Signals(command):
        pending = [step for step in steps if step.fits]
        while pending:
            step = pending.pop(0)
            left = None if limit is None else limit - (time.monotonic() - begin)
            if len(parts) > len(refused) and left is not None:
                pace = plans.pace([*stored, *(one for part in parts for one in part.runs)])
                if plans.seconds(step.asked, held(store, asked.values()), pace) > left:
                    beyond.append(step)
                    continue
            if not quiet:
                console.note(f"{step.asked.item.key}: {step.asked.item.title}")
            parts.append(_run(step.asked, asked[step.asked.item.key][1], store, params, quiet=quiet))
            page(parts, [*pending, *beyond], path, command)  # whole at any moment, should this be the last
        page(parts, beyond, path, command)
    if params["json"]:
        console.document(_document(parts, beyond, path))
    else:
        _verdicts(parts, beyond)
        console.say(f"report: {path}")
    failed = {spec.run_id for part in parts for spec, _ in part.failed}
    stopped = [part.item.key for part in parts if part.stopped and part not in refused]
    if failed or stopped:
        words = [f"{len(failed)} runs have no result"] * bool(failed) + [f"{key} did not end" for key in stopped]
        raise FailedRuns(f"{', '.join(words)}; the report says why; --retry-failed tries again what failed three times")


def held(store: Store, asked: Iterable[tuple[Asked, Part]]) -> set[str]:
    """What the store has of these items' work, by the keys of `plan.Asked.work`: runs and translations by their ids;
    surfaces, whose ids are known only when their runs are there, by how these begin."""
    from stabkit.quality.shelf import Shelf as Translations
    from stabkit.surface.shelf import Shelf

    there = {*store.ids(), *(name.rpartition("-")[0] for name in Translations(store.out).ids())}
    drawn = {re.sub(r"-[a-z]+-[0-9a-f]{12}$", "", name) for name in Shelf(store.out).ids()}
    keys = {key for one, _ in asked for key in one.work}
    return {key for key in keys if key in there or ("*" in key and key.partition("*")[0][:-13] in drawn)}


def _run(asked: Asked, part: Part, store: Store, params: Mapping[str, Any], *, quiet: bool) -> Part:
    """Run an item's commands; what one leaves the others do not train again. What goes wrong ends the item alone."""
    runs: dict[str, Run] = {}
    failed: list[tuple[RunSpec, str]] = []
    surfaces: list[Surface] = []
    stopped = ""
    for request in asked.requests:
        try:
            done = carry.out(request, store, quiet=quiet, retry_failed=bool(params["retry_failed"]))
        except Interrupted:
            raise
        except StabkitError as error:
            console.warn(f"{asked.item.key} stops here: {error}")
            stopped = str(error)
            break
        runs |= {one.run_id: one for one in done.runs}
        failed += [*done.failed, *done.untranslated]
        surfaces += done.surfaces
    return dataclasses.replace(
        part, runs=tuple(runs.values()), failed=tuple(failed), surfaces=tuple(surfaces), stopped=stopped
    )


def page(parts: Sequence[Part], beyond: Sequence[Step], path: Path, command: str) -> Path:
    """One self-contained page of all parts."""
    from stabkit.folder import write_file
    from stabkit.report.paper import render

    ordered = sorted(parts, key=lambda part: ITEMS.index(part.item))
    left = [(step.asked.item, console.duration(step.seconds)) for step in beyond]
    write_file(path, render(ordered, left, command).encode())
    return path


def show(steps: Sequence[Step], refused: Sequence[Part], limit: float | None, *, json: bool) -> None:
    """`--dry-run`: the plan, and what is left out of it."""
    for part in refused:
        console.warn(f"{part.item.key} is left out: {part.stopped}")
    if json:
        rows = [
            {"item": s.asked.item.key, "runs": s.missing, "seconds": round(s.seconds, 1), "fits": s.fits} for s in steps
        ]
        console.document(document.text({"schema": document.SCHEMA, "plan": rows, "budget_seconds": limit}))
        return
    rows_ = [
        (s.asked.item.key, f"{s.asked.item.paper} {s.asked.item.name}", s.missing, console.duration(s.seconds))
        for s in steps
        if s.fits
    ]
    console.table("The plan, cheapest first; runs that items share are counted once", ("", "", "runs", "time"), rows_)
    total = sum(s.seconds for s in steps if s.fits)
    console.say(f"{len(rows_)} of {len(steps)} items, about {console.duration(total)}")
    for s in steps:
        if not s.fits:
            console.say(f"beyond the budget: {s.asked.item.key}, {console.duration(s.seconds)} more")


def _verdicts(parts: Sequence[Part], beyond: Sequence[Step]) -> None:
    rows = []
    for part in sorted(parts, key=lambda part: ITEMS.index(part.item)):
        found = part.judged()
        count = {verdict: sum(one.verdict == verdict for one in found) for verdict in ("holds", "fails", "untested")}
        words = ", ".join(f"{number} {verdict}" for verdict, number in count.items() if number)
        rows.append((part.item.key, part.item.title, f"stopped; {words}" if part.stopped else words))
    console.table("What became of the papers' claims", ("", "", "claims"), rows)
    for step in beyond:
        console.say(f"not run, beyond the budget: {step.asked.item.key} ({console.duration(step.seconds)})")


def _document(parts: Sequence[Part], beyond: Sequence[Step], path: Path) -> str:
    rows = [
        {
            "item": part.item.key,
            "commands": part.commands,
            "runs": [one.run_id for one in part.runs],
            "failed": [spec.run_id for spec, _ in part.failed],
            "stopped": part.stopped,
            "claims": [document.claim(found) for found in part.judged()],
            "beside": [document.claim(part.findings[key]) for key in part.item.beside],
        }
        for part in parts
    ]
    left = [step.asked.item.key for step in beyond]
    return document.text({"schema": document.SCHEMA, "report": str(path), "items": rows, "beyond_the_budget": left})


def _name(params: Mapping[str, Any]) -> str:
    """The name of the page: it belongs to the items, to what replaces their settings and to the text."""
    told = [*params["items"], *(f"{name}={params[name]}" for name in (*REPLACED, "data", "source", "target", "vocab"))]
    first = params["items"][0] if len(params["items"]) == 1 else "items"
    return f"paper-{first}-{hashlib.sha256(chr(10).join(told).encode()).hexdigest()[:8]}.html"
