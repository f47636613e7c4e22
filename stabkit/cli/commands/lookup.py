"""The stored runs and watches that a command is about; those that cannot be read are warned of."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from stabkit.cli import console
from stabkit.errors import StoreError
from stabkit.options.stored import matching
from stabkit.results.records import lacking
from stabkit.results.run import Run
from stabkit.running.execute import MANY
from stabkit.storage import index
from stabkit.storage.folder import OldFolder
from stabkit.storage.index import ListedRun
from stabkit.storage.store import Store
from stabkit.storage.watched import Watched, WatchShelf

T = TypeVar("T")


def find(store: Store, names: Sequence[str]) -> list[Run]:
    """Runs by id, beginning of an id, or folder; all of the store's where none is named. Corrupt ones are warned of."""
    paths = []
    for name in names:
        if os.path.isfile(os.path.join(name, "spec.json")):
            folder = Path(name).resolve()
            paths.append((Store(folder.parent.parent, runs=folder.parent), folder.name))
        else:
            paths += [(store, run_id) for run_id in matching(store, name)]
    paths = paths if names else [(store, run_id) for run_id in store.ids()]
    stored_runs = list(_readable(paths, Store.load))
    if said := lacking(run.lacks for run in stored_runs):
        console.note(said)
    return list({run.run_id: run for run in stored_runs}.values())


def _readable(paths: Sequence[tuple[Store, str]], load: Callable[[Store, str], T]) -> Iterator[T]:
    """These runs, one after another, as `load` reads them; those that cannot be read are warned of."""
    if len(paths) >= MANY:
        console.note(f"reading {len(paths)} stored runs")
    old, corrupt = 0, list[StoreError]()
    for where, run_id in paths:
        try:
            yield load(where, run_id)
        except OldFolder:
            old += 1
        except StoreError as error:
            corrupt.append(error)
    _left_out(corrupt, "run")
    if old:
        console.warn(f"{old} runs are left out (another version of the algorithm); `stabkit runs rm` removes them")


def lines(store: Store) -> list[ListedRun]:
    """A line for every run of the store; only those are read that changed since they were listed last."""
    held = index.known(store)
    fresh = [run_id for run_id in store.ids() if run_id not in held]
    read = list(_readable([(store, run_id) for run_id in fresh], index.line))
    if read:
        index.keep(store, [*held.values(), *read])
    return sorted([*held.values(), *read], key=lambda line: line.run_id)


def watches(store: Store, names: Sequence[str]) -> list[Watched]:
    """Watches of a user's trainings; all of the store's where none is named. Corrupt ones are warned of."""
    shelf, found, corrupt = WatchShelf(store.out), [], list[StoreError]()
    for watch_id in shelf.ids():
        if not names or any(name and watch_id.startswith(name) for name in names):
            try:
                found.append(shelf.load(watch_id))
            except StoreError as error:
                corrupt.append(error)
    _left_out(corrupt, "watch")
    return found


def _left_out(errors: Sequence[StoreError], what: str) -> None:
    """A line for each folder that cannot be read; of more than LINES one line for all."""
    if len(errors) > LINES:
        several = "watches" if what == "watch" else f"{what}s"
        console.warn(
            f"left out {len(errors):,} corrupt {several}, the first: {errors[0]}; `stabkit runs verify` lists them"
        )
        return
    for error in errors:
        console.warn(f"left out a corrupt {what}: {error}")


LINES = 100
"""Of corrupt folders."""


def both(store: Store, names: Sequence[str]) -> tuple[list[Run], list[Watched]]:
    """Runs, and watches of a user's trainings; all of the store's where none is named. Corrupt ones are warned of."""
    ids = WatchShelf(store.out).ids()
    rest = [
        name
        for name in names
        if not any(name and watch_id.startswith(name) for watch_id in ids)
        or any(run_id.startswith(name) for run_id in store.ids())
    ]
    found = watches(store, names)
    return find(store, rest) if rest or not names else [], found
