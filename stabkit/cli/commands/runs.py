"""`stabkit runs`: listing what the store holds, showing one run, checking all, removing some."""

from __future__ import annotations

import json as jsonlib
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any, Literal, TypedDict

from stabkit import spec
from stabkit.cli import console
from stabkit.cli.commands.lookup import LINES
from stabkit.errors import StoreError
from stabkit.options import stored
from stabkit.report.json_document import (
    SCHEMA,
    Document,
    EndOfRun,
    FactsOfRun,
    RunJson,
    ended,
    facts,
    seconds_a_step,
    series,
    text,
)
from stabkit.results.outcome import displayed
from stabkit.results.run import Run
from stabkit.storage import locks, texts
from stabkit.storage.folder import OldFolder
from stabkit.storage.index import ListedRun
from stabkit.storage.probed import PROBE
from stabkit.storage.shelf import Shelf
from stabkit.storage.store import Store
from stabkit.storage.surfaces import SURFACE
from stabkit.storage.trials import TRIAL
from stabkit.storage.watched import Watched, WatchJson, WatchShelf

NOT_OF_A_WATCH = {"factory", "depth", "lr", "seed", "start"}


class ListedRunJson(FactsOfRun, EndOfRun):
    """A run, without its series."""

    digest: str


class RunsLsDocument(Document):
    """`stabkit runs ls`."""

    runs: list[ListedRunJson]
    watches: list[WatchJson]


class ShownRunDocument(Document, RunJson):
    """Of a run."""

    environment: dict[str, Any]
    """Where it ran, and how long."""
    files: dict[str, str]
    """{sha256: text} of the user's own files that it used."""


class TableJson(TypedDict):
    """What one probe recorded."""

    steps: list[int]
    sites: list[str]
    values: list[list[float]]
    """A row a step, a column a site."""


class ShownWatchDocument(Document, WatchJson):
    """Of a watch."""

    records: dict[str, TableJson]


RunsShowDocument = ShownRunDocument | ShownWatchDocument
"""`stabkit runs show`."""

FOREIGN = "manifest.json: No such file"
"""What is said of a folder that is none of ours."""
State = Literal["sound", "old", "corrupt"]


class StateJson(TypedDict):
    """Whether a folder is as it was written."""

    state: State
    reason: str


class RunState(StateJson):
    """Of a run."""

    run_id: str


class SurfaceState(StateJson):
    """Of a surface."""

    surface_id: str


class WatchState(StateJson):
    """Of a watch."""

    watch_id: str


class FolderState(StateJson):
    """Of any other folder."""

    name: str


class RunsVerifyDocument(Document):
    """`stabkit runs verify`."""

    runs: list[RunState]
    surfaces: list[SurfaceState]
    watches: list[WatchState]
    probes: list[FolderState]
    trials: list[FolderState]
    texts: list[FolderState]


def listing_as_json(runs: Sequence[Run], watches: Sequence[Watched]) -> None:
    """`runs ls --json`."""
    rows: list[ListedRunJson] = [{**facts(run.spec), **ended(run), "digest": run.digest} for run in runs]
    body: RunsLsDocument = {"schema": SCHEMA, "runs": rows, "watches": [watch.to_json() for watch in watches]}
    console.document(text(body))


def listing(lines: Sequence[ListedRun], watches: Sequence[Watched]) -> None:
    """`runs ls`."""
    if watches:
        console.table(
            f"{len(watches)} watch{'es' * (len(watches) != 1)}",
            ("watch", "ended", "updates", "warnings"),
            [
                (w.watch_id, w.ended or "not closed", w.cell.facts.steps, ", ".join(a.link for a in w.alarms) or "–")
                for w in watches
            ],
        )
        if not lines:
            return
    head = ("run", "optimizer", "outcome", "steps", "loss", "seconds")
    rows = [
        (
            line.run_id,
            line.optimizer,
            displayed(line.outcome),
            line.steps,
            _short(line.loss),
            f"{line.seconds:.1f}" if math.isfinite(line.seconds) else "–",
        )
        for line in lines
    ]
    console.columns(f"{len(rows)} runs", head, rows)


def in_progress(store: Store) -> None:
    """One line: which runs commands are at."""
    if at := [name for name in locks.names(store.runs) if spec.RUN_ID.fullmatch(name)]:
        console.say(f"in progress: {', '.join(at)}")


def verify(store: Store, *, json: bool) -> None:
    """`runs verify`: the state of every folder of every kind, sound or why not; raises StoreError when one is
    corrupt."""
    watched = WatchShelf(store.out)
    shelves: dict[str, Shelf[Any]] = {
        "surfaces": Shelf(SURFACE, store.out),
        "probes": Shelf(PROBE, store.out),
        "trials": Shelf(TRIAL, store.out),
        "texts": Shelf(texts.kind(None), store.out),
    }
    kinds = {
        "runs": [(name, _state(store.load, name)) for name in store.ids()],
        **{kind: [(name, _state(shelf.load, name)) for name in shelf.ids()] for kind, shelf in shelves.items()},
        "watches": [(name, _state(watched.load, name)) for name in watched.ids()],
    }
    if json:
        named = {"runs": "run_id", "surfaces": "surface_id", "watches": "watch_id"}
        body = {kind: [{named.get(kind, "name"): name, **state} for name, state in own] for kind, own in kinds.items()}
        console.document(text({"schema": SCHEMA, **body}))
    else:
        for kind, rows in kinds.items():
            foreign = [name for name, state in rows if FOREIGN in state["reason"]]
            folded = frozenset(foreign) if len(foreign) > LINES else frozenset()
            for name, state in rows:
                if name not in folded:
                    console.say(f"{state['state']:8} {name}{'  ' + state['reason'] if state['reason'] else ''}")
            if folded:
                console.say(f"corrupt  {len(folded):,} folders of {kind} have no manifest, the first: {foreign[0]}")
    counted = [
        (sum(state["state"] == "corrupt" for _, state in rows), len(rows), kind) for kind, rows in kinds.items() if rows
    ]
    if any(corrupt for corrupt, _, _ in counted):
        words = [f"{corrupt} of {count} {kind}" for corrupt, count, kind in counted]
        raise StoreError(
            f"corrupt: {', '.join(words)}; the next command that needs one recomputes it (a watch cannot be recomputed)"
        )


def _state(load: Callable[[str], object], name: str) -> StateJson:
    try:
        load(name)
    except OldFolder as error:
        return {"state": "old", "reason": str(error)}
    except StoreError as error:
        return {"state": "corrupt", "reason": str(error)}
    return {"state": "sound", "reason": ""}


def show(run: Run | Watched, *, json: bool) -> None:
    """`runs show`."""
    if isinstance(run, Watched):
        _show_watch(run, json=json)
        return
    if json:
        body: ShownRunDocument = {
            "schema": SCHEMA,
            **series(run),
            "environment": dict(run.environment),
            "files": dict(run.texts),
        }
        console.document(text(body))
        return
    console.say(run.run_id)
    console.say(f"  {run.path}")
    for title, values in (
        ("outcome", ended(run)),
        ("forecast", asdict(run.forecast) if run.forecast is not None else {"word": "none"}),
        ("chain", asdict(run.outcome.chain)),
        ("spec", run.spec.to_json()),
        ("environment", run.environment),
    ):
        console.say(title)
        for name, value in values.items():
            if name != "chain":
                console.say(f"  {name:24} {_flat(value)}")
    console.say(f"  {'seconds_a_step':24} {seconds_a_step(run):.4g}")
    for source in run.spec.files():
        console.say(f"{source.file}: {source.name} (sha256 {source.digest[:12]}), a user's file")
        for line in run.texts[source.digest].splitlines():
            console.say(f"  {line}")


def _show_watch(watched: Watched, *, json: bool) -> None:
    if json:
        records: dict[str, TableJson] = {
            probe: {"steps": table.steps.tolist(), "sites": list(table.sites), "values": table.values.tolist()}
            for probe, table in watched.records.items()
        }
        body: ShownWatchDocument = {"schema": SCHEMA, **watched.to_json(), "records": records}
        console.document(text(body))
        return
    console.say(watched.watch_id)
    console.say(f"  {'ended':24} {watched.ended or 'not closed'}")
    for alarm in watched.alarms:
        console.say(f"  {'warning':24} update {alarm.step}: {alarm.sentence}")
    for name, value in watched.cell.facts.to_json().items():
        if name not in NOT_OF_A_WATCH:
            console.say(f"  {name:24} {_flat(value)}")


def _flat(value: Any) -> str:
    return jsonlib.dumps(value, ensure_ascii=False) if isinstance(value, (dict, list)) else str(value)


def _short(value: Any) -> str:
    return f"{value:.3f}" if isinstance(value, float) and math.isfinite(value) else "–"


def remove(store: Store, named: Sequence[str]) -> None:
    """`runs rm`: each name is to begin exactly one run or watch."""
    store.writable()
    shelf = WatchShelf(store.out)
    for run_id in dict.fromkeys(stored.one_id(store, name) for name in named):
        (shelf if run_id in shelf.ids() else store).remove(run_id)
        console.say(f"removed {run_id}")
