"""The stored runs and watches that a command is about; those that cannot be read are warned of."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from stabkit.cli import console
from stabkit.errors import StoreError
from stabkit.options.stored import matching
from stabkit.results.records import lacking
from stabkit.running.execute import MANY
from stabkit.storage.folder import OldFolder
from stabkit.storage.store import Run, Store
from stabkit.storage.watched import Watched, WatchShelf


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
    if len(paths) >= MANY:
        console.note(f"reading {len(paths)} stored runs")
    stored_runs, old = [], 0
    for where, run_id in paths:
        try:
            stored_runs.append(where.load(run_id))
        except OldFolder:
            old += 1
        except StoreError as error:
            console.warn(f"corrupt run, left out: {error}")
    if old:
        console.warn(f"{old} runs of another version of the algorithm are left out; `stabkit runs rm` removes them")
    if said := lacking(run.lacks for run in stored_runs):
        console.note(said)
    return list({run.run_id: run for run in stored_runs}.values())


def both(store: Store, names: Sequence[str]) -> tuple[list[Run], list[Watched]]:
    """Runs, and watches of a user's trainings; all of the store's where none is named. Corrupt ones are warned of."""
    shelf = WatchShelf(store.out)
    ids = shelf.ids()
    wanted = [watch_id for watch_id in ids if not names or any(name and watch_id.startswith(name) for name in names)]
    rest = [
        name
        for name in names
        if not any(name and watch_id.startswith(name) for watch_id in ids)
        or any(run_id.startswith(name) for run_id in store.ids())
    ]
    watches = []
    for watch_id in wanted:
        try:
            watches.append(shelf.load(watch_id))
        except StoreError as error:
            console.warn(f"corrupt watch, left out: {error}")
    return find(store, rest) if rest or not names else [], watches
