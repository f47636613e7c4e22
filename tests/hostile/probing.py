"""Rows of `factories` in worker processes: how each cell ended, what reached stderr, which processes were left."""

from __future__ import annotations

import json
import os
import signal
import tempfile
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from stabkit.running.executors import processes
from stabkit.running.executors.base import ExecutorOptions
from stabkit.running.probes import ProbeRequest, ProbeSpec
from stabkit.storage.jobs import Job
from stabkit.storage.probed import PROBE
from stabkit.storage.shelf import Shelf
from tests.hostile.factories import Row, write

DEPTHS = (2, 4, 6)


@dataclass(frozen=True, slots=True)
class Outcome:
    """Of one cell: its name and digest, or the line that is shown."""

    cell: str = ""
    line: str = ""


@dataclass(frozen=True, slots=True)
class Probed:
    """All cells of a command, what it wrote to stderr, and the processes that outlived it."""

    outcomes: dict[tuple[str, int], Outcome]
    stderr: str
    left: list[str]


def probed(rows: Sequence[tuple[Row, int]], workers: int, run_timeout: float = 40.0) -> Probed:
    """These rows at these depths, in this order."""
    folder, mark = Path(tempfile.mkdtemp()), uuid.uuid4().hex
    write(folder)
    jobs = [_job(row, depth, folder) for row, depth in rows]
    errors = os.dup(2)
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryFile() as aside:
        patch.setenv("STABKIT_HOSTILE", mark)
        os.dup2(aside.fileno(), 2)
        try:
            where = ExecutorOptions(workers=workers, run_timeout=run_timeout)
            outcomes = {(job["factory"].partition(":")[0], job["depth"]): end for job, end in _ends(jobs, where)}
            left = _left(mark)
        finally:
            os.dup2(errors, 2)
            os.close(errors)
        aside.seek(0)
        return Probed(outcomes, aside.read().decode(errors="replace"), left)


def _job(row: Row, depth: int, folder: Path) -> Job:
    request = ProbeRequest(
        factory=f"{row.name}:build", here=str(folder), depths=DEPTHS, seeds=(0,), lrs=(0.0,), warmup=None, steps=2,
        blocks="", fresh=True, out=folder / "out", quick=True,
    )  # fmt: skip
    spec = ProbeSpec(factory=request.factory, depth=depth, lr=0.0, seed=0)
    return {**request.job(spec, "no", 4e9), "id": f"{row.name}-{depth}"}


def _ends(jobs: Sequence[Job], where: ExecutorOptions) -> Iterator[tuple[Job, Outcome]]:
    """Every job and its outcome; one that ends the command itself is found by trying those at work alone."""
    waiting = {job["id"]: job for job in jobs}
    try:
        for job, answer in processes.map(jobs, lambda event: None, where):
            del waiting[job["id"]]
            body = json.loads(answer) if isinstance(answer, str) else {"failed": str(getattr(answer, "reason", answer))}
            cell = Shelf(PROBE, Path(job["out"])).load(body["folder"]) if "folder" in body else None
            line = body.get("failed", "").replace(job["here"], "FOLDER")
            yield job, Outcome(f"{body['folder']} {cell.digest}" if cell else "", line)
    except Exception as error:
        if len(jobs) == 1:
            yield jobs[0], Outcome(line=f"Traceback of the command: {error!r}")
            return
        for i, job in enumerate(now := list(waiting.values())):
            if i < where.workers:
                yield from _ends([job], where)
        yield from _ends(now[where.workers :], where)


def _left(mark: str) -> list[str]:
    """Processes whose environment has the mark, five seconds later; none is left after this."""
    deadline, found = time.monotonic() + 5, {}
    while time.monotonic() < deadline and (found := dict(_marked(mark))):
        time.sleep(0.1)
    for pid in found:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return sorted(found.values())


def _marked(mark: str) -> Iterator[tuple[int, str]]:
    for entry in Path("/proc").iterdir():
        with suppress(OSError):
            if (
                entry.name.isdigit()
                and int(entry.name) != os.getpid()
                and mark in (entry / "environ").read_text("latin1")
            ):
                yield int(entry.name), (entry / "cmdline").read_text("latin1").replace("\0", " ")[:60]
