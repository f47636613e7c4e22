"""Stored runs and watches by name: an id, the beginning of one, or a run's folder."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from stabkit.cli import console
from stabkit.errors import StoreError, UsageError, nearest
from stabkit.results.records import lacking
from stabkit.running.execute import MANY
from stabkit.storage.folder import OldFolder
from stabkit.storage.store import Run, Store
from stabkit.storage.watched import Watched, WatchShelf

SHAPE = re.compile(r"([a-z0-9-]+)-([0-9]+)L-([0-9]+)L-s([0-9]+)")
"""How a run_id begins."""


def find(store: Store, names: Sequence[str]) -> list[Run]:
    """Runs by id, beginning of an id, or folder; all of the store's where none is named. Corrupt ones are warned of."""
    paths = []
    for name in names:
        if os.path.isfile(os.path.join(name, "spec.json")):
            folder = Path(name).resolve()
            paths.append((Store(folder.parent.parent, runs=folder.parent), folder.name))
        else:
            paths += [(store, run_id) for run_id in _matching(store, name)]
    paths = paths if names else [(store, run_id) for run_id in store.ids()]
    if len(paths) >= MANY:
        console.note(f"reading {len(paths)} stored runs")
    found, old = [], 0
    for where, run_id in paths:
        try:
            found.append(where.load(run_id))
        except OldFolder:
            old += 1
        except StoreError as error:
            console.warn(f"corrupt run, left out: {error}")
    if old:
        console.warn(f"{old} runs of another version of the algorithm are left out; `stabkit runs rm` removes them")
    if said := lacking(run.lacks for run in found):
        console.note(said)
    return list({run.run_id: run for run in found}.values())


def both(store: Store, names: Sequence[str]) -> tuple[list[Run], list[Watched]]:
    """Runs, and watches of a user's trainings; all of the store's where none is named. Corrupt ones are warned of."""
    shelf = WatchShelf(store.out)
    ids = shelf.ids()
    wanted = [own for own in ids if not names or any(name and own.startswith(name) for name in names)]
    rest = [
        name
        for name in names
        if not any(name and own.startswith(name) for own in ids) or any(own.startswith(name) for own in store.ids())
    ]
    watches = []
    for own in wanted:
        try:
            watches.append(shelf.load(own))
        except StoreError as error:
            console.warn(f"corrupt watch, left out: {error}")
    return find(store, rest) if rest or not names else [], watches


def one(store: Store, name: str) -> Run:
    """The one run that a name begins."""
    return store.load(_only(_matching(store, name), name))


def either(store: Store, name: str) -> Run | Watched:
    """The one run or watch that a name begins."""
    found = one_id(store, name)
    shelf = WatchShelf(store.out)
    return shelf.load(found) if found in shelf.ids() else store.load(found)


def wanted(store: Store, name: str) -> Run:
    """The one run that a name begins; where there is none, the error names the command that makes it."""
    if not any(run_id.startswith(name) for run_id in store.ids()) and (known := SHAPE.match(name)):
        method, encoder, decoder, seed = known.groups()
        shape = f"--arch decoder-only --depths {decoder}" if encoder == "0" else f"--depths {encoder}x{decoder}"
        shape = f"--arch encoder-only --depths {encoder}" if decoder == "0" else shape
        made = f"stabkit landscape --model {method} --against '' {shape} --seeds {seed}"
        raise UsageError(f"no run {name!r} in {store.runs}; `{made}` makes one")
    return one(store, name)


def one_id(store: Store, name: str) -> str:
    """The id of the one run or watch that a name begins."""
    watches = WatchShelf(store.out).ids()
    found = [own for own in (*watches, *store.ids()) if name and own.startswith(name)]
    return name if name in found else _only(found or _matching(store, name), name, "runs and watches")


def _only(found: Sequence[str], name: str, what: str = "runs") -> str:
    if len(found) > 1:
        raise UsageError(f"{name!r} begins {len(found)} {what} ({found[0]}, {found[1]}…); write more of it")
    return found[0]


def _matching(store: Store, name: str) -> list[str]:
    ids = store.ids()
    found = [name] if name in ids else [run_id for run_id in ids if name and run_id.startswith(name)]
    if not found:
        raise UsageError(f"no run {name!r} in {store.runs}{nearest(name, ids) or ';'} `stabkit runs ls` lists all")
    return found


def source(runs: Sequence[str], store: str) -> Store:
    """The store that names refer to; when all are folders, any."""
    folders = [run for run in runs if os.path.isfile(os.path.join(run, "spec.json"))]
    return Store(Path(store or ".")) if folders and len(folders) == len(runs) else home(store)


def home(out: str) -> Store:
    """The store of an output directory; raises UsageError where there are neither runs nor watches."""
    folder = Path(out or ".")
    if not (folder / "runs").is_dir() and not WatchShelf(folder).ids():
        where = "--store, or --out of `stabkit runs`, names the directory that holds runs/"
        raise UsageError(f"there are no runs in {folder.resolve()}; {where}")
    return Store(folder)
