"""Watches of a user's trainings: parts that are whole or absent, one behind the other. Never imports torch.

<out>/own/<watch_id>/<part>/    facts.json records.npz alarms.json environment.json manifest.json

A part holds the rows since the one before it, and what was known when it was written; a training that is killed keeps
every part that was flushed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from stabkit.errors import StabkitError, StoreError
from stabkit.results import records
from stabkit.results.own import cell
from stabkit.results.own.alarm import Alarm
from stabkit.results.own.cell import PROBE_VERSION, Cell, Facts
from stabkit.results.records import Table
from stabkit.storage import folder
from stabkit.storage.folder import CorruptFolder

FILES = ("facts.json", "records.npz", "alarms.json", "environment.json")
PART = re.compile(r"\d{6}")


@dataclass(frozen=True, slots=True)
class Watched:
    """One watch: its cell, what it warned of, how it ended."""

    watch_id: str
    cell: Cell
    alarms: tuple[Alarm, ...]
    ended: str
    """`closed`, `stopped: why`, or "" where nobody closed it."""

    @property
    def run_id(self) -> str:
        """As a run's."""
        return self.watch_id

    @property
    def records(self) -> Mapping[str, Table]:
        """As a run's."""
        return self.cell.records

    def to_json(self) -> dict[str, Any]:
        """What is known besides the records."""
        return {
            "watch_id": self.watch_id,
            "ended": self.ended or None,
            "warnings": [alarm.to_json() for alarm in self.alarms],
            "facts": self.cell.facts.to_json(),
            "digest": self.cell.digest,
        }


class WatchShelf:
    """The watches under one output directory."""

    def __init__(self, out: Path) -> None:
        self.own = out / "own"

    def ids(self) -> list[str]:
        """Every watch that has a part, by name."""
        found = self.own.iterdir() if self.own.is_dir() else ()
        return sorted(path.name for path in found if not path.name.startswith(".") and self._parts(path.name))

    def _parts(self, watch_id: str) -> list[Path]:
        path = self.own / watch_id
        try:
            return sorted(part for part in path.iterdir() if PART.fullmatch(part.name)) if path.is_dir() else []
        except OSError as error:
            raise StoreError(f"cannot read {path}: {error.strerror or error}") from error

    def remove(self, watch_id: str) -> None:
        """Delete one."""
        folder.remove(self.own / watch_id, folder.own(self.own, ".partial"))

    def append(
        self, watch_id: str, facts: Facts, rows: Mapping[str, Table], alarms: Sequence[Alarm], about: Mapping[str, Any]
    ) -> None:
        """A further part; raises StoreError where it cannot be written, and then nothing is."""
        files = {
            "facts.json": folder.to_json(facts.to_json()),
            "records.npz": records.to_bytes(rows),
            "alarms.json": folder.to_json([alarm.to_json() for alarm in alarms]),
            "environment.json": folder.to_json(about),
        }
        name = f"{len(self._parts(watch_id)):06d}"
        target = folder.own(self.own, watch_id) / name
        folder.commit(target, folder.own(self.own / watch_id, ".partial"), files, PROBE_VERSION, lambda: False)

    def load(self, watch_id: str) -> Watched:
        """All parts as one; raises CorruptFolder, OldFolder."""
        tables: dict[str, Table] = {}
        digests: list[str] = []
        last: tuple[Facts, tuple[Alarm, ...], str] | None = None
        for path in self._parts(watch_id):
            files, digest = folder.load(path, FILES, PROBE_VERSION, {"records.npz": folder.LARGEST})
            try:
                for name, table in records.from_bytes(files["records.npz"]).items():
                    tables[name] = _joined(tables.get(name), table)
                about = json.loads(files["environment.json"])
                alarms = tuple(Alarm(**one) for one in json.loads(files["alarms.json"]))
                last = cell.facts(json.loads(files["facts.json"])), alarms, str(about["ended"])
            except StabkitError:
                raise
            except (ValueError, TypeError, KeyError, AttributeError, RecursionError, MemoryError) as error:
                raise CorruptFolder(f"{path}: not a watch of stabkit ({folder.first_line(error)})") from error
            digests.append(digest)
        if last is None:
            raise CorruptFolder(f"{self.own / watch_id}: no part of a watch is there")
        facts, alarms, ended = last
        return Watched(watch_id, Cell(facts, tables, digests[-1]), alarms, ended)


def _joined(before: Table | None, after: Table) -> Table:
    if before is None:
        return after
    if before.sites != after.sites or (len(before.steps) and len(after.steps) and after.steps[0] <= before.steps[-1]):
        raise ValueError("its parts do not follow one another")
    return Table(
        np.concatenate([before.steps, after.steps]), after.sites, np.concatenate([before.values, after.values])
    )
