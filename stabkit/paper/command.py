"""`stabkit paper`: list the items, plan them within a budget, run them, write one page.

Everything that an item leaves is in the store before the next begins, so that a command that was interrupted goes on
where it stopped, and the page can be written anew at any time.
"""

from __future__ import annotations

import dataclasses
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stabkit import carry, console, document, flags, listing
from stabkit import options as tables
from stabkit.errors import FailedRuns, UsageError, nearest
from stabkit.paper import plan as plans
from stabkit.paper.items import BY_KEY, ITEMS, NOT_HERE, Item
from stabkit.paper.plan import Asked, Step
from stabkit.signals import Signals
from stabkit.spec import RunSpec
from stabkit.store import Run, Store
from stabkit.surface.shelf import Surface

PASSED = (
    *("data", "source", "target", "vocab", "workers", "device", "checkpoint_every", "run_timeout", "executor"),
    *("scheduler", "out"),
)
"""Options of `paper` that its items' commands take over as they are."""
REPLACED = ("depths", "steps", "seeds")
"""Options of `paper` that replace those of its items' commands: a smaller, or a larger, version of all."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """An item as it was run: what its section of the page is made of."""

    item: Item
    commands: tuple[str, ...]
    instead: str
    """`--depths 2 --steps 3` where they replaced the item's own; else nothing."""
    runs: list[Run]
    failed: list[tuple[RunSpec, str]]
    surfaces: list[Surface]


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


def line(command: str, params: Mapping[str, Any]) -> str:
    """A command of an item with what `paper` was given: what its page prints and a reader can run."""
    added = [
        f"--{name.replace('_', '-')} {params[name]}"
        for name in PASSED
        if str(params[name]) != str(tables.TRAINING[name][1]) and name != "out"
    ]
    for name in REPLACED:
        if params[name]:
            command = re.sub(rf" --{name} \S+", "", command) + f" --{name} {params[name]}"
    return " ".join(["stabkit", command, *added])


def ask(item: Item, params: Mapping[str, Any]) -> Asked:
    """An item's commands as requests; raises UsageError as the commands themselves would."""
    requests = []
    for text in item.commands:
        command, options = tables.words(text)
        replaced = {name: params[name] for name in REPLACED if params[name]}
        given = {name: params[name] for name in PASSED}
        requests.append(getattr(flags, command)({**options, **given, **replaced, "given": set()}))
    return plans.asked(item, requests)


def run(params: Mapping[str, Any], command: str) -> None:
    """`paper ITEM…`: plan, run, one page."""
    limit = budget(str(params["budget"]))
    asked = [ask(item, params) for item in wanted(params["items"])]
    store = Store(asked[0].requests[0].out)
    stored = listing.find(store, [])
    pace = plans.pace(stored)
    steps = plans.plan(asked, held(stored, store), limit, pace)
    if params["dry_run"]:
        show(steps, limit, json=params["json"])
        return
    quiet = params["quiet"]
    if not quiet:
        for step in steps:
            if not step.fits:
                console.note(f"left out, beyond the budget: {step.asked.item.key} ({console.duration(step.seconds)})")
    begin = time.monotonic()
    parts: list[Part] = []
    out_of_time: list[Step] = []
    with store.writing(), Signals(command):
        for step in (step for step in steps if step.fits):
            left = None if limit is None else limit - (time.monotonic() - begin)
            now = listing.find(store, [])
            if parts and not plans.affordable(step, held(now, store), plans.pace(now), left):
                out_of_time.append(step)
                continue
            if not quiet:
                console.note(f"{step.asked.item.key}: {step.asked.item.title}")
            parts.append(_part(step.asked, store, params, quiet=quiet))
        beyond = [step for step in steps if not step.fits] + out_of_time
        parts.sort(key=lambda part: ITEMS.index(part.item))
        path = page(parts, beyond, store.out / "reports" / _name(params["items"]), command)
    failed = sum(len(part.failed) for part in parts)
    if params["json"]:
        console.document(_document(parts, beyond, path))
    else:
        _verdicts(parts, beyond)
        console.say(f"report: {path}")
    if failed:
        raise FailedRuns(f"{failed} runs have no result; the report says why; the same command tries them again")


def held(runs: Sequence[Run], store: Store) -> set[str]:
    """What the store has of any item, by the keys of `plan.Asked.work`; surfaces are known by how their id begins."""
    from stabkit.surface.shelf import Shelf

    drawn = {name.rpartition("-")[0] for name in Shelf(store.out).ids()}
    found = set()
    for one in runs:
        found.add(one.run_id)
        if one.translations:
            found.add(f"{one.run_id}+")
        found |= {
            f"{one.run_id}*{key}"
            for key, kind in (("fig1", "random"), ("fig5", "pca"))
            if f"{one.run_id[:-13]}-{kind}" in drawn
        }
    return found


def _part(asked: Asked, store: Store, params: Mapping[str, Any], *, quiet: bool) -> Part:
    """Run an item's commands; what one leaves the others do not train again."""
    runs: dict[str, Run] = {}
    failed: list[tuple[RunSpec, str]] = []
    surfaces: list[Surface] = []
    for request in asked.requests:
        done = carry.out(request, store, quiet=quiet, retry_failed=bool(params["retry_failed"]))
        runs |= {one.run_id: one for one in done.runs}
        failed += done.failed
        surfaces += done.surfaces
    lines = tuple(line(command, params) for command in asked.item.commands)
    instead = " ".join(f"--{name} {params[name]}" for name in REPLACED if params[name])
    return Part(
        item=asked.item, commands=lines, instead=instead, runs=list(runs.values()), failed=failed, surfaces=surfaces
    )


def page(parts: Sequence[Part], beyond: Sequence[Step], path: Path, command: str) -> Path:
    """One self-contained page of all parts."""
    from stabkit.folder import write_file
    from stabkit.report.paper import render

    write_file(path, render(parts, [(s.asked.item, console.duration(s.seconds)) for s in beyond], command).encode())
    return path


def show(steps: Sequence[Step], limit: float | None, *, json: bool) -> None:
    """`--dry-run`: the plan, and what is left out of it."""
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
    for part in parts:
        found = claimed(part)
        count = {verdict: sum(one.verdict == verdict for one in found) for verdict in ("holds", "fails", "untested")}
        words = ", ".join(f"{number} {verdict}" for verdict, number in count.items() if number)
        rows.append((part.item.key, part.item.title, words or "a picture, no claim"))
    console.table("What became of the papers' claims", ("", "", "claims"), rows)
    for step in beyond:
        console.say(f"not run, beyond the budget: {step.asked.item.key} ({console.duration(step.seconds)})")


def claimed(part: Part) -> list[Any]:
    """The item's claims, judged on its own runs."""
    from stabkit.claims import findings

    return [found for found in findings(part.runs, part.surfaces) if found.claim.key in part.item.claims]


def _document(parts: Sequence[Part], beyond: Sequence[Step], path: Path) -> str:
    rows = [
        {
            "item": part.item.key,
            "commands": part.commands,
            "runs": [one.run_id for one in part.runs],
            "failed": [spec.run_id for spec, _ in part.failed],
            "claims": [document.claim(found) for found in claimed(part)],
        }
        for part in parts
    ]
    left = [step.asked.item.key for step in beyond]
    return document.text({"schema": document.SCHEMA, "report": str(path), "items": rows, "beyond_the_budget": left})


def _name(items: Sequence[str]) -> str:
    return f"paper-{items[0]}.html" if len(items) == 1 else "paper.html"
