"""Stored watches of a user's trainings: parts one behind the other, each whole or absent. Never imports torch.

<out>/own/<watch_id>/<part>/    facts.json records.npz alarms.json environment.json manifest.json

A part holds the rows since the one before it, and what was known when it was written; a training that is killed keeps
every part that was flushed.
"""

from __future__ import annotations

import json
import re
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict

import numpy as np

from stabkit.errors import StoreError
from stabkit.results import records
from stabkit.results.own import cell
from stabkit.results.own.alarm import Alarm, AlarmJson
from stabkit.results.own.cell import PROBE_VERSION, Facts, FactsJson, ModelCell
from stabkit.results.records import Table
from stabkit.results.typed import typed
from stabkit.storage import folder
from stabkit.storage.folder import CorruptFolder
from stabkit.storage.shelf import FolderKind, Shelf

FILES = {
    "facts.json": folder.SMALL,
    "records.npz": folder.LARGEST,
    "alarms.json": folder.SMALL,
    "environment.json": folder.SMALL,
}
PART_NAME = re.compile(r"\d{6}")
STOPPED = "stopped: "
"""How `ended` begins, in the files, of a watch that ended before its training."""
LONGEST_NAME = 80
"""Bytes."""
STAMPED = 3
"""Parts of an id behind the name: date, time, and what tells two of one second apart."""


def identity(name: str) -> str:
    """A folder's name that no other watch has: `gpt-20261125-095038-37c4`."""
    plain = re.sub(r"[^\w.]+", "-", name).strip("-.").encode()[:LONGEST_NAME].decode(errors="ignore") or "watch"
    return f"{plain}-{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{secrets.token_hex(2)}"


class WatchJson(TypedDict):
    """A watch of a user's own training."""

    watch_id: str
    ended: str | None
    """`closed`, `stopped: why`, or null where nobody closed it."""
    warnings: list[AlarmJson]
    facts: FactsJson
    digest: str


@dataclass(frozen=True, slots=True)
class Watched:
    """One watch: its cell, what it warned of, how it ended."""

    watch_id: str
    cell: ModelCell
    alarms: tuple[Alarm, ...]
    ended: str
    """`closed`, `stopped: why`, or "" where nobody closed it."""

    @property
    def name(self) -> str:
        """What the watch was called; "" of a folder that `identity` did not name."""
        return self.watch_id.rsplit("-", STAMPED)[0] if self.watch_id.count("-") >= STAMPED else ""

    @property
    def stopped(self) -> str:
        """Why it ended before its training; "" where it did not."""
        return "" if self.ended in ("", "closed") else self.ended.removeprefix(STOPPED)

    @property
    def run_id(self) -> str:
        """As a run's."""
        return self.watch_id

    @property
    def records(self) -> Mapping[str, Table]:
        """As a run's."""
        return self.cell.records

    def to_json(self) -> WatchJson:
        """What is known besides the records."""
        return {
            "watch_id": self.watch_id,
            "ended": self.ended or None,
            "warnings": [alarm.to_json() for alarm in self.alarms],
            "facts": self.cell.facts.to_json(),
            "digest": self.cell.digest,
        }


def parse(path: Path, files: Mapping[str, bytes], digest: str) -> Watched:
    """One part of the bytes of its files."""
    ended = str(json.loads(files["environment.json"])["ended"])
    alarms = tuple(_alarm(own) for own in json.loads(files["alarms.json"]))
    facts = cell.facts(json.loads(files["facts.json"]))
    tables = records.from_bytes(files["records.npz"], facts.room)
    return Watched(path.parent.name, ModelCell(facts, tables, digest), alarms, ended)


def _alarm(body: Mapping[str, Any]) -> Alarm:
    """Of JSON; its advice follows from its link and when it was."""
    numbers = {name: float(value) for name, value in body["numbers"].items()}  # "nan" in JSON
    return typed(Alarm(**{name: body[name] for name in ("step", "link", "sentence")}, numbers=numbers))


def to_files(
    facts: Facts, rows: Mapping[str, Table], alarms: Sequence[Alarm], environment: Mapping[str, Any]
) -> dict[str, bytes]:
    """The bytes of a part's files, by name; `environment` says under `ended` how the watch ended."""
    return {
        "facts.json": folder.to_json(facts.to_json()),
        "records.npz": records.to_bytes(rows),
        "alarms.json": folder.to_json([alarm.to_json() for alarm in alarms]),
        "environment.json": folder.to_json(environment),
    }


PART = FolderKind(folder="", noun="a watch", files=FILES, version=PROBE_VERSION, parse=parse)
"""Under the folder of their watch."""


class WatchShelf:
    """The watches under one output directory: a shelf of parts each."""

    def __init__(self, out: Path) -> None:
        self.root = out / "own"

    def parts(self, watch_id: str) -> Shelf[Watched]:
        """The parts of one watch, sound or not."""
        return Shelf(PART, self.root / watch_id)

    def ids(self) -> list[str]:
        """Every watch that has a part, by name."""
        paths = self.root.iterdir() if self.root.is_dir() else ()
        return sorted(path.name for path in paths if not path.name.startswith(".") and self._names(path.name))

    def load(self, watch_id: str) -> Watched:
        """All parts as one; raises CorruptFolder, OldFolder."""
        shelf, watch = self.parts(watch_id), None
        for name in self._names(watch_id):
            try:
                watch = _joined(watch, shelf.load(name))
            except ValueError as error:
                raise CorruptFolder(f"{shelf.root / name}: not a stabkit watch ({error})") from error
        if watch is None:
            raise CorruptFolder(f"{shelf.root}: contains no part of a watch")
        return watch

    def append(self, watch_id: str, files: Mapping[str, bytes]) -> None:
        """A further part; raises StoreError where it cannot be written, and then nothing is."""
        folder.own(self.root, watch_id)
        last = max(map(int, self._names(watch_id)), default=-1)
        self.parts(watch_id).commit(f"{last + 1:06d}", files)

    def remove(self, watch_id: str) -> None:
        """Delete one."""
        folder.remove(self.root / watch_id, folder.own(self.root, ".partial"))

    def _names(self, watch_id: str) -> list[str]:
        path = self.root / watch_id
        try:
            return sorted(p.name for p in path.iterdir() if PART_NAME.fullmatch(p.name)) if path.is_dir() else []
        except OSError as error:
            raise StoreError(f"cannot read {path}: {error.strerror or error}") from error


def _joined(before: Watched | None, after: Watched) -> Watched:
    """The rows of both, and what the later one knew."""
    if before is None:
        return after
    tables = dict(before.records)
    for name, table in after.records.items():
        tables[name] = _appended(tables[name], table) if name in tables else table
    return Watched(after.watch_id, ModelCell(after.cell.facts, tables, after.cell.digest), after.alarms, after.ended)


def _appended(before: Table, after: Table) -> Table:
    after = after.aligned(before.sites)
    if len(before.steps) and len(after.steps) and after.steps[0] <= before.steps[-1]:
        raise ValueError("its parts are not consecutive")
    return Table(
        np.concatenate([before.steps, after.steps]), after.sites, np.concatenate([before.values, after.values])
    )
