"""What a listing shows of every run, kept beside the runs, so that a store of thousands is listed in a second.

    <out>/runs/.index.json    {"rule": …, "runs": {run_id: [signature, optimizer, outcome, updates, loss, seconds]}}

A cache and nothing else: a line counts as long as the run's files have the sizes and times that they had when they were
read, and as long as the code that judges outcomes is the same. It may be deleted at any time. A line is made of what it
needs of a run; whether the run is as it was written, `runs verify` says, and whoever loads it.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import astuple, dataclass
from functools import cache
from pathlib import Path

from stabkit import results, spec
from stabkit.errors import StabkitError
from stabkit.results import records
from stabkit.results.records import jsonable
from stabkit.results.run import Run
from stabkit.spec import ALGO_VERSION
from stabkit.storage import folder
from stabkit.storage.shelf import check_name
from stabkit.storage.store import Store, largest

NAME = ".index.json"
LONGEST = 200_000_000
"""Bytes."""


@dataclass(frozen=True, slots=True)
class ListedRun:
    """One line: NaN where there is no loss, or no time was noted."""

    run_id: str
    optimizer: str
    outcome: str
    steps: int
    loss: float
    seconds: float

    @classmethod
    def of(cls, run: Run) -> ListedRun:
        seconds = run.environment.get("wall_seconds")
        loss, steps = run.outcome.validation_loss, run.outcome.steps
        took = float(seconds) if isinstance(seconds, float) else float("nan")
        return cls(run.run_id, run.spec.train.optimizer, run.outcome.word, steps, loss, took)


NEEDED = ("loss", "validation", "grad_norm")
"""The records that tell how a run ended."""


def line(store: Store, run_id: str) -> ListedRun:
    """The line of one run, read from it; raises as `Store.load` does, which reads what this cannot."""
    path = store.runs / run_id
    try:
        folder.check_version(path, ALGO_VERSION)
        run_spec, kept, environment = (
            json.loads(folder.read(path / f"{name}.json", folder.SMALL)) for name in ("spec", "outcome", "environment")
        )
        asked = spec.from_json(run_spec)
        check_name(path, asked.run_id)
        limit = largest(asked)
        tables = records.from_bytes(folder.read(path / "records.npz", limit), limit, NEEDED)
        return ListedRun.of(Run(path, asked, kept, tables, environment, ""))
    except Exception:  # whatever is wrong with it, one way of reading says it
        return ListedRun.of(store.load(run_id))


def known(store: Store) -> dict[str, ListedRun]:
    """{run id: its line} of the runs that are as they were when their line was written."""
    try:
        held = json.loads(folder.read(store.runs / NAME, LONGEST))
        lines = held["runs"] if held["rule"] == rule() else {}
        found = {}
        for run_id in store.ids():
            if run_id in lines:
                at, optimizer, outcome, steps, loss, seconds = lines[run_id]
                with suppress(OSError):  # it went meanwhile
                    if at == signature(store.runs / run_id):
                        found[run_id] = ListedRun(
                            run_id, str(optimizer), str(outcome), int(steps), float(loss), float(seconds)
                        )
        return found
    except (OSError, ValueError, KeyError, TypeError, AttributeError, ArithmeticError, RecursionError, StabkitError):
        return {}  # none, or one that is not ours


def keep(store: Store, lines: Iterable[ListedRun]) -> None:
    """Write the lines of these runs, and no others; nothing where the store cannot be written to."""
    with suppress(StabkitError, OSError):
        rows: Mapping[str, object] = {
            line.run_id: [signature(store.runs / line.run_id), *astuple(line)[1:]] for line in lines
        }
        text = json.dumps({"rule": rule(), "runs": jsonable(rows)}, allow_nan=False)
        folder.write_file(store.runs / NAME, text.encode())


def signature(path: Path) -> str:
    """Names, sizes and times of a folder's files, in a few digits."""
    with os.scandir(path) as entries:
        stats = sorted((e.name, s.st_size, s.st_mtime_ns) for e in entries for s in [e.stat(follow_symlinks=False)])
    return hashlib.sha256(repr(stats).encode()).hexdigest()[:16]


@cache
def rule() -> str:
    """Digest of the code that says how a run ended."""
    hashed = hashlib.sha256()
    for file in (Path(str(spec.__file__)), *sorted(Path(str(results.__file__)).parent.glob("*.py"))):
        hashed.update(file.read_bytes())
    return hashed.hexdigest()[:16]
