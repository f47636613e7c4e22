"""Slurm by submitit: a job array of the runs that are missing, each looked after by a task of its own.

    <out>/runs/.partial/slurm-…/    0.job.json 0.events.jsonl 0.answer.json what submitit writes

A task looks after a child process (`relayed.py`). JSON alone crosses, as files in a folder that only its owner can
read; submitit keeps there, pickled, the name of `look_after` and its arguments; what it pickles besides is not read.
A run that Slurm ends goes on from its checkpoint when it comes again; when the command is gone, tasks go on, and the
same command finds what they left, or that they are at it still.
"""

from __future__ import annotations

import json
import logging
import re
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from stabkit.errors import StoreError, UsageError
from stabkit.running.executors import relayed
from stabkit.running.executors.base import Answer, ExecutorOptions, Tell
from stabkit.running.executors.relayed import Vendors
from stabkit.storage import folder, locks
from stabkit.storage.folder import CorruptFolder, write_file
from stabkit.storage.jobs import Event, Job

MINUTES, GIGABYTES = 60, 4
"""What a task asks for where `--scheduler` does not say."""
ARRAY = 1000
"""Tasks of an array: Slurm's own limit, where nobody changed it."""
LATE = 20.0
"""Seconds for an answer to be seen here after its task has ended."""
NAME = re.compile("[A-Za-z][A-Za-z0-9_-]*")
POLL = 1.0
"""Seconds between two looks."""


@dataclass(frozen=True, slots=True)
class SlurmOptions:
    """What `--scheduler` says: `partition=long,time=120,mem=8,account=x`, every option of sbatch's."""

    cluster: str
    """`slurm`; `local`: processes of this machine, as tests have it."""
    parameters: Mapping[str, Any]
    """submitit's."""


def asked(text: str) -> SlurmOptions:
    """Of `--scheduler`; raises UsageError for what is no list of NAME=VALUE."""
    pairs = [item.partition("=") for item in text.split(",") if item]
    if any(not NAME.fullmatch(name) or not sign or not value for name, sign, value in pairs):
        raise UsageError(f"--scheduler takes sbatch options, like partition=long,time=120,mem=8; got {text[:60]!r}")
    given = {name.replace("-", "_"): value for name, _, value in pairs}
    cluster = given.pop("cluster", "slurm")
    numbers = {"timeout_min": given.pop("time", str(MINUTES)), "mem_gb": given.pop("mem", str(GIGABYTES))}
    if cluster not in ("slurm", "local") or not all(value.isascii() and value.isdigit() for value in numbers.values()):
        raise UsageError(f"--scheduler: give time in minutes and mem in gigabytes, as whole numbers; got {text[:60]!r}")
    parameters: dict[str, Any] = {name: int(value) for name, value in numbers.items()}
    return SlurmOptions(cluster, parameters | ({"slurm_additional_parameters": given} if given else {}))


def map(jobs: Sequence[Job], tell: Tell, where: ExecutorOptions) -> Generator[Answer, None, None]:
    """Every job as a task of an array, `where.workers` of them at once."""
    with ExitStack() as held:
        place = Path(tempfile.mkdtemp(prefix="slurm-", dir=_partial(jobs[0])))
        held.callback(shutil.rmtree, place, ignore_errors=True)
        held.enter_context(locks.hold(relayed.runs(jobs[0]), place.name))
        for number, job in enumerate(jobs):
            write_file(place / f"{number}.job.json", json.dumps(job, allow_nan=False).encode())
        yield from _followed(jobs, place, tell, held, where)


def _followed(
    jobs: Sequence[Job], place: Path, tell: Tell, held: ExitStack, where: ExecutorOptions
) -> Iterator[Answer]:
    """Submit all, then look at what they write."""
    vendors, ended, read = Vendors(tell), dict[int, float](), dict[Path, int]()
    tasks = dict(enumerate(_submitted(jobs, place, where)))
    held.callback(_cancel, tasks, asked(where.scheduler).cluster)  # those that are left when nobody wants them any more
    while tasks:
        answered = 0
        for number, task in list(tasks.items()):
            said = _answer(place / f"{number}.answer.json")
            if said is None and task.done():
                since = ended.setdefault(number, time.monotonic())
                if time.monotonic() - since > LATE:
                    said = {"lost": f"Slurm's task {task.job_id} ended ({task.state})", "kind": "died", "final": ""}
            for event in _events(place / f"{number}.events.jsonl", read):
                tell(event)
            if said is None:
                continue
            answered += 1
            del tasks[number]
            vendors.see(str(said.get("vendor", "")))
            yield jobs[number], relayed.answer(said)
        if not answered:
            time.sleep(POLL)


def _submitted(jobs: Sequence[Job], place: Path, where: ExecutorOptions) -> list[Any]:
    """A task of Slurm's for each; raises UsageError where it takes none."""
    import submitit

    logging.getLogger("submitit").setLevel(logging.ERROR)
    wanted = asked(where.scheduler)
    gpus = {} if jobs[0]["device"] == "cpu" else {"gpus_per_node": 1}
    try:
        executor = submitit.AutoExecutor(folder=place, cluster=wanted.cluster)
        executor.update_parameters(
            name="stabkit", cpus_per_task=1, slurm_array_parallelism=where.workers, **gpus, **wanted.parameters
        )
        tasks: list[Any] = []
        for first in range(0, len(jobs), ARRAY):
            numbers = range(first, min(first + ARRAY, len(jobs)))
            alike = ([str(place)] * len(numbers), numbers, [where.run_timeout] * len(numbers))
            tasks += executor.map_array(look_after, *alike)
    except Exception as error:  # submitit's, or sbatch's own words
        words = " ".join(str(error).split())[:300]
        raise UsageError(f"--executor slurm: nothing could be submitted ({type(error).__name__}: {words})") from error
    return tasks


def look_after(place: str, number: int, run_timeout: float | None) -> None:
    """As a task of Slurm: one job in a child process; its answer, and how far it is, as files."""
    folder_of_all, last = Path(place), 0.0

    def event(event: Event) -> None:
        nonlocal last
        if "step" not in event or time.monotonic() - last > POLL:
            last = time.monotonic()
            with suppress(OSError), open(folder_of_all / f"{number}.events.jsonl", "a", encoding="utf-8") as file:
                file.write(json.dumps(event, allow_nan=False) + "\n")

    job = json.loads((folder_of_all / f"{number}.job.json").read_bytes())
    said = relayed.supervise(job, event, run_timeout, folder_of_all.name, socket.gethostname())
    write_file(folder_of_all / f"{number}.answer.json", json.dumps(said, allow_nan=False).encode())


def _answer(path: Path) -> dict[str, Any] | None:
    """What a task wrote; None where it has not yet."""
    try:
        held = json.loads(folder.read(path, folder.SMALL))
        return held if isinstance(held, dict) else None
    except (OSError, ValueError, CorruptFolder):
        return None


def _events(path: Path, read: dict[Path, int]) -> list[Event]:
    """What a task told since the last look; `read` keeps how far."""
    with suppress(OSError, ValueError, CorruptFolder):
        lines = folder.read(path, folder.SMALL)[read.get(path, 0) :]
        whole = lines[: lines.rfind(b"\n") + 1]
        read[path] = read.get(path, 0) + len(whole)
        return [cast(Event, dict(json.loads(line))) for line in whole.splitlines()]
    return []


def _partial(job: Job) -> Path:
    """Where submitted jobs stand: on storage that all machines share."""
    path = folder.own(relayed.runs(job), ".partial")
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"cannot write to {path}: {error.strerror or error}") from error
    return path


def _cancel(tasks: Mapping[int, Any], cluster: str) -> None:
    """One word for each array: `scancel` takes seconds, and a signal gives us five."""
    if cluster == "slurm":
        arrays = sorted({str(task.job_id).partition("_")[0] for task in tasks.values()})
        if arrays:
            with suppress(OSError, subprocess.SubprocessError):  # a cluster that is gone cannot be told
                subprocess.run(["scancel", *arrays], timeout=4, capture_output=True, check=False)
        return
    for task in tasks.values():
        task.cancel(check=False)
