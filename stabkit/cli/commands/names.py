"""Stored runs by name: a run id, the beginning of one, or a run's folder."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from stabkit.cli import console
from stabkit.errors import StoreError, UsageError, nearest
from stabkit.results.records import lacking
from stabkit.running.carry_out import MANY
from stabkit.storage.folder import OldFolder
from stabkit.storage.store import Run, Store

SHAPE = re.compile(r"([a-z-]+)-([0-9]+)L-([0-9]+)L-s([0-9]+)")
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


def one(store: Store, name: str) -> Run:
    """The one run that a name begins."""
    return store.load(one_id(store, name))


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
    """The id of the one run that a name begins."""
    found = _matching(store, name)
    if len(found) > 1:
        raise UsageError(f"{name!r} begins {len(found)} runs ({found[0]}, {found[1]}…); write more of it")
    return found[0]


def _matching(store: Store, name: str) -> list[str]:
    ids = store.ids()
    found = [name] if name in ids else [run_id for run_id in ids if name and run_id.startswith(name)]
    if not found:
        raise UsageError(f"no run {name!r} in {store.runs}{nearest(name, ids) or ';'} `stabkit runs ls` lists all")
    return found


def source(runs: list[str], store: str) -> Store:
    """The store that names refer to; when all are folders, any."""
    folders = [run for run in runs if os.path.isfile(os.path.join(run, "spec.json"))]
    return Store(Path(store or ".")) if folders and len(folders) == len(runs) else home(store)


def home(out: str) -> Store:
    """The store of an output directory; raises UsageError where there are no runs."""
    folder = Path(out or ".")
    if not (folder / "runs").is_dir():
        raise UsageError(f"there are no runs in {folder.resolve()}; --out names the directory that holds runs/")
    return Store(folder)
