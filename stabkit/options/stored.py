"""Stored runs and watches by name: an id, the beginning of one, or a run's folder."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from stabkit.errors import UsageError, nearest
from stabkit.results.run import Run
from stabkit.storage.store import Store
from stabkit.storage.watched import Watched, WatchShelf


def either(store: Store, name: str) -> Run | Watched:
    """The one run or watch that a name begins."""
    full_id = one_id(store, name)
    shelf = WatchShelf(store.out)
    return shelf.load(full_id) if full_id in shelf.ids() else store.load(full_id)


def one_id(store: Store, name: str) -> str:
    """The id of the one run or watch that a name begins."""
    watches = WatchShelf(store.out).ids()
    ids = [own for own in (*watches, *store.ids()) if name and own.startswith(name)]
    return name if name in ids else _only(ids or matching(store, name), name, "runs and watches")


def _only(ids: Sequence[str], name: str, what: str = "runs") -> str:
    if len(ids) > 1:
        raise UsageError(f"{name!r} matches {len(ids)} {what} ({ids[0]}, {ids[1]}…); write more of the name")
    return ids[0]


def matching(store: Store, name: str) -> list[str]:
    ids = store.ids()
    matches = [name] if name in ids else [run_id for run_id in ids if name and run_id.startswith(name)]
    if not matches:
        raise UsageError(f"no run {name!r} in {store.runs}{nearest(name, ids) or ';'} `stabkit runs ls` lists all")
    return matches


def source(runs: Sequence[str], store: str) -> Store:
    """The store that names refer to; when all are folders, any."""
    folders = [run for run in runs if os.path.isfile(os.path.join(run, "spec.json"))]
    return Store(Path(store or ".")) if folders and len(folders) == len(runs) else home(store)


def home(out: str) -> Store:
    """The store of an output directory; raises UsageError where there are neither runs nor watches."""
    folder = Path(out or ".")
    if not (folder / "runs").is_dir() and not WatchShelf(folder).ids():
        where = "`--out DIR` (of `report` and `export`: `--store DIR`) names the directory that holds runs/"
        if WatchShelf(folder / "out").ids():
            where = "those of a watch lie in out/: `stabkit report --store out`"
        raise UsageError(f"no runs in {folder.resolve()}; {where}")
    return Store(folder)
