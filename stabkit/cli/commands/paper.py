"""`stabkit paper`: list the items, plan them within a budget, run them, say what became of the papers' claims."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict

from stabkit.cli import console
from stabkit.cli.commands import dry_run
from stabkit.cli.progress import Screen
from stabkit.cli.signals import Signals
from stabkit.errors import FailedRuns, StabkitError, UsageError, nearest
from stabkit.options import lines as lines_of
from stabkit.options import machine, ranges
from stabkit.options.requests import request_of
from stabkit.paper import plan as plans
from stabkit.paper import run as engine
from stabkit.paper.item import DEEPNET, Item
from stabkit.paper.items import BY_KEY, ITEMS, NOT_HERE, STUDIES
from stabkit.paper.part import Part
from stabkit.paper.plan import Asked, Step
from stabkit.report.json_document import SCHEMA, Document, text
from stabkit.report.sweep_document import ClaimJson, claim
from stabkit.running import cost
from stabkit.running.request import Request, check
from stabkit.storage.folder import reports
from stabkit.storage.store import Store
from stabkit.words import duration


class LeftOutJson(TypedDict):
    """What a small machine cannot rerun."""

    what: str
    why: str


class PaperLsDocument(Document):
    """`stabkit paper ls`."""

    items: tuple[Item, ...]
    not_here: list[LeftOutJson]


class StepJson(TypedDict):
    """An item of a plan."""

    item: str
    runs: int
    """Those that are not stored, and not of an item before it."""
    seconds: float
    fits: bool
    """Whether it lies within the budget."""


class PaperDryRunDocument(Document):
    """`stabkit paper --dry-run`."""

    plan: list[StepJson]
    budget_seconds: float | None


class PartJson(TypedDict):
    """An item as it was run."""

    item: str
    answer: str
    """What the terminal ends with: whether it reproduces, each central claim beside its number."""
    commands: tuple[str, ...]
    runs: list[str]
    failed: list[str]
    stopped: str
    """Why it was not run to its end; "" where it was."""
    claims: list[ClaimJson]
    beside: list[ClaimJson]
    """Claims of other places, and our own readings."""


class PaperDocument(Document):
    """`stabkit paper`."""

    report: str
    """The page's path."""
    items: list[PartJson]
    beyond_the_budget: list[str]


def ls(*, json: bool) -> None:
    """`paper ls`."""
    if json:
        left: list[LeftOutJson] = [{"what": what, "why": why} for what, why in NOT_HERE]
        body: PaperLsDocument = {"schema": SCHEMA, "items": ITEMS, "not_here": left}
        console.document(text(body))
        return
    for paper in dict.fromkeys(item.paper for item in ITEMS):
        listed = [(item.key, item.name, item.title) for item in ITEMS if item.paper == paper]
        edition = ", numbered as in the journal (doi:10.1109/TPAMI.2024.3386927)" * (paper == DEEPNET)
        console.table(f"{paper}{edition}", ("item", "in the paper", "what it shows"), listed)
        console.say()
    console.say("What a small machine cannot rerun, even qualitatively:")
    for what, why in NOT_HERE:
        console.paragraph(f"- {what}: {why}", "  ")


def run(params: Mapping[str, Any], command: str) -> None:
    """`paper ITEM…`: plan, run, one page, rewritten after every item."""
    limit = ranges.duration("--budget", str(params["budget"]))
    chosen = items_of(params["items"])
    if params["dry_run"]:
        dry_run.clocked(Screen(quiet=params["quiet"], command=command))
    asked: dict[str, tuple[Asked, Part]] = {}
    refused: list[Part] = []
    for item in chosen:
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
    held = engine.stored_pieces(store, asked.values())
    steps = plans.plan([one for one, _ in asked.values()], held, limit)
    if params["dry_run"]:
        show(steps, refused, limit, json=params["json"])
        return
    for part in refused:
        console.warn(f"{part.item.key} is left out: {part.stopped}")
    path = reports(store.out) / _name(params)
    store.writable()
    with Signals(command):
        parts, beyond = engine.run_all(
            steps,
            asked,
            refused,
            store,
            path,
            command,
            Screen(quiet=params["quiet"]),
            limit=limit,
            retry_failed=bool(params["retry_failed"]),
        )
    if params["json"]:
        console.document(text(_document(parts, beyond, path)))
    else:
        _verdicts(parts, beyond)
        console.say(f"report: {path}")
    failed = {spec.run_id for part in parts for spec, _ in part.failed}
    stopped = [part.item.key for part in parts if part.stopped and part not in refused]
    if failed or stopped:
        words = [f"{len(failed)} runs have no result"] * bool(failed) + [f"{key} did not finish" for key in stopped]
        raise FailedRuns(f"{', '.join(words)}; the report says why; --retry-failed retries what failed three times")


def show(steps: Sequence[Step], refused: Sequence[Part], limit: float | None, *, json: bool) -> None:
    """`--dry-run`: the plan, and what is left out of it."""
    for part in refused:
        console.warn(f"{part.item.key} is left out: {part.stopped}")
    if json:
        rows: list[StepJson] = [
            {"item": s.asked.item.key, "runs": s.missing, "seconds": round(s.seconds, 1), "fits": s.fits} for s in steps
        ]
        body: PaperDryRunDocument = {"schema": SCHEMA, "plan": rows, "budget_seconds": limit}
        console.document(text(body))
        return
    rows_ = [
        (s.asked.item.key, f"{s.asked.item.paper} {s.asked.item.name}", s.missing, duration(s.seconds))
        for s in steps
        if s.fits
    ]
    title, heads = "The plan, cheapest first; runs that items share are counted once", ("item", "", "runs", "time")
    console.table(title, heads, rows_)
    total = sum(s.seconds for s in steps if s.fits)
    total += cost.COMMAND * (total > 0)
    console.say(f"{len(rows_)} of {len(steps)} items, about {duration(total)}")
    for s in steps:
        if not s.fits:
            console.say(f"beyond the budget: {s.asked.item.key}, {duration(s.seconds)} more")


def _verdicts(parts: Sequence[Part], beyond: Sequence[Step]) -> None:
    from stabkit.paper.page import answer  # pandas and matplotlib

    if len(parts) == 1:
        for sentence in answer(parts[0]):
            console.paragraph(sentence)
        console.say("cite this: the BibTeX on the page, under How it was run, has commit, data and seeds")
    else:
        ordered = sorted(parts, key=lambda part: ITEMS.index(part.item))
        rows = [(part.item.key, part.item.title, answer(part)[0]) for part in ordered]
        console.table("What became of the papers' claims", ("item", "what it shows", "answer"), rows)
    for step in beyond:
        console.say(f"not run, beyond the budget: {step.asked.item.key} ({duration(step.seconds)})")


def _document(parts: Sequence[Part], beyond: Sequence[Step], path: Path) -> PaperDocument:
    from stabkit.paper.page import answer  # pandas and matplotlib

    rows: list[PartJson] = [
        {
            "item": part.item.key,
            "answer": " ".join(answer(part)),
            "commands": part.commands,
            "runs": [one.run_id for one in part.runs],
            "failed": [spec.run_id for spec, _ in part.failed],
            "stopped": part.stopped,
            "claims": [claim(finding) for finding in part.judged()],
            "beside": [claim(part.findings[key]) for key in part.item.beside],
        }
        for part in parts
    ]
    left = [step.asked.item.key for step in beyond]
    return {"schema": SCHEMA, "report": str(path), "items": rows, "beyond_the_budget": left}


PASSED = (
    *(
        "data",
        "source",
        "target",
        "vocab",
        "workers",
        "device",
        "kernels",
        "together",
        "checkpoint_every",
        "run_timeout",
        "executor",
    ),
    *("scheduler", "shard", "out"),
)
"""Options of `paper` that its items' commands take over as they are, unless they name them themselves."""

REPLACED = ("depths", "steps", "seeds")
"""Options of `paper` that replace those of its items' commands: a smaller, or a larger, version of all."""


def items_of(names: Sequence[str]) -> list[Item]:
    """The items named; `all` is every one of the papers. Raises UsageError with the nearest name."""
    items: dict[str, Item] = {}
    for name in names:
        if name == "all":
            items |= {key: item for key, item in BY_KEY.items() if not item.ours}
        elif name in BY_KEY:
            items[name] = BY_KEY[name]
        elif name in STUDIES:
            raise UsageError(f"{name} is a study, not an item; run it in a clone: `python3 dev.py evidence {name}`")
        else:
            raise UsageError(
                f"{name!r} is not an item{nearest(name, ['all', *BY_KEY]) or ';'} `stabkit paper ls` lists them"
            )
    return list(items.values())


def ask(item: Item, params: Mapping[str, Any]) -> tuple[Asked, Part]:
    """An item's commands as requests, and its part of the page before anything has run.

    Raises UsageError or CorpusError as the commands themselves would.
    """
    requests, lines, notes = list[Request](), list[str](), list[str]()
    for line in item.commands:
        command, options = lines_of.words(line)
        options |= {name: params[name] for name in PASSED if name not in options}
        options |= {name: params[name] for name in REPLACED if params[name]}
        request = request_of(command, {**options, "yes": params["yes"]}, Screen(quiet=params["quiet"]).making)
        if not params["yes"]:
            check(request)
        requests.append(request)
        notes += request.notes
        lines.append(f"stabkit {lines_of.line(command, options)}")
    instead = " ".join(f"--{name} {params[name]}" for name in REPLACED if params[name])
    return plans.asked(item, requests), Part(item=item, commands=tuple(lines), instead=instead, notes=tuple(notes))


def _name(params: Mapping[str, Any]) -> str:
    """The name of the page: it belongs to the items, to what replaces their settings and to the text. Of several items
    it is an index in a folder."""
    words = [*params["items"], *(f"{name}={params[name]}" for name in (*REPLACED, "data", "source", "target", "vocab"))]
    names = params["items"] if len(params["items"]) <= 3 else [f"{len(params['items'])}-items"]
    name = "-".join(["paper", *names, hashlib.sha256(chr(10).join(words).encode()).hexdigest()[:4]])
    several = len(items_of(params["items"])) > 1
    return f"{name}/index.html" if several else f"{name}.html"
