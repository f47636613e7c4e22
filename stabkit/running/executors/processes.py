"""Persistent worker processes on this machine, each with one torch thread, and the loop that watches them.

The parent waits on the workers' sockets, so that a death is seen at once (its socket ends) and costs only the job it
held; a job that takes too long, or a worker in which a job failed, is ended with its process, so that no run ever
starts where another went wrong. Workers end when the parent does, however it ends (`child.py`).
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import Any

from stabkit.errors import FailedRuns, StoreError, UsageError
from stabkit.running.executors.base import Answer, ExecutorOptions, Lost, LostKind, Tell
from stabkit.running.work import ENVIRONMENT
from stabkit.storage.jobs import Job
from stabkit.storage.locks import Busy

FINAL = {"refused": UsageError, "storage": StoreError}
"""What a worker says when another attempt would end the same way."""

SPAWN_DEATHS = 3
"""Workers that died before they were ready: after so many, none will start here."""
PROGRAM = "from stabkit.running.executors import child; child.start()"
"""What a worker process runs."""
START_SECONDS = 60.0
"""A worker that has not said it is ready by then never will; half of it is enough where runs have a timeout at all."""
LONGEST_LINE = 1 << 20
"""Bytes; a worker that sends more without ending the line is not one of ours any more."""


def map(
    jobs: Sequence[Job], tell: Tell, where: ExecutorOptions, *, wanted: Callable[[], bool] = lambda: True
) -> Generator[Answer, None, None]:
    """Every job, the first ones first, on `where.workers` processes; one that takes over `where.run_timeout` is lost.

    `wanted` is asked every second at least; when it says no, everything ends.
    """
    with Pool(where) as pool:
        yield from pool.map(jobs, tell, wanted=wanted)


class Pool:
    """Worker processes that outlive a `map`: what they have imported serves the next. All end with the `with`."""

    def __init__(self, where: ExecutorOptions) -> None:
        self.where = where
        self.workers: set[_Worker] = set()

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *error: object) -> None:
        self._end(self.workers)

    def map(
        self, jobs: Sequence[Job], tell: Tell, *, wanted: Callable[[], bool] = lambda: True
    ) -> Generator[Answer, None, None]:
        """As the function of this name. A generator that is closed ends the workers that are at work."""
        waiting = deque(jobs)
        stillborn, pool = 0, self.workers
        with selectors.DefaultSelector() as selector:
            for worker in pool:
                selector.register(worker.socket, selectors.EVENT_READ, worker)
                if worker.ready and waiting:
                    worker.give(waiting.popleft(), self.where.run_timeout)
            try:
                while (waiting or any(worker.job for worker in pool)) and wanted():
                    while len(pool) < min(self.where.workers, len(waiting) + sum(w.job is not None for w in pool)):
                        worker = _Worker(START_SECONDS / 2 if self.where.run_timeout else START_SECONDS)
                        pool.add(worker)
                        selector.register(worker.socket, selectors.EVENT_READ, worker)
                    heard = [key.data for key, _ in selector.select(timeout=_patience(pool))]
                    for worker in [*heard, *(w for w in pool if w.overdue and w not in heard)]:
                        messages = worker.listen() if worker in heard else [("timeout", worker.tardiness())]
                        for kind, body in messages:
                            job = worker.job
                            if kind == "event":
                                tell(body)
                                continue
                            if kind == "ready":
                                worker.ready = True
                            else:
                                worker.job = None
                            if kind in ("died", "timeout", "failed"):
                                selector.unregister(worker.socket)
                                pool.discard(worker)
                                worker.end()
                                if kind in ("died", "timeout") and not worker.ready:
                                    stillborn += 1
                                    if stillborn >= SPAWN_DEATHS:
                                        raise FailedRuns(f"no worker process can start here: {body}")
                            elif waiting:
                                worker.give(waiting.popleft(), self.where.run_timeout)
                            if job is not None and kind != "ready":
                                yield job, answer(kind, body)
            finally:
                self._end({worker for worker in pool if worker.job is not None or not worker.ready})

    def _end(self, some: set[_Worker]) -> None:
        some = set(some)
        for worker in some:
            worker.process.kill()  # what it commits it commits whole, so it may die at any moment
        for worker in some:
            worker.end()
        self.workers -= some


def answer(kind: str, body: Any) -> str | Lost | Busy:
    """What a worker said last of a job, as an executor gives it."""
    return str(body) if kind == "done" else Busy(**body) if kind == "locked" else lost(kind, body)


def lost(kind: str, reason: str) -> Lost:
    """A job that ended in what a worker said last, or in its death."""
    final = FINAL.get(kind)
    ended: dict[str, LostKind] = {"died": "died", "timeout": "timeout"}
    return Lost(ended.get(kind, "error"), reason, final(reason) if final else None)


def _patience(pool: set[_Worker]) -> float:
    """Seconds until the next worker is overdue, at most one."""
    return min([1.0, *(max(0.0, worker.deadline - time.monotonic()) for worker in pool)])


class _Worker:
    """One process, its socket, and the job it holds."""

    def __init__(self, start: float) -> None:
        self.socket, theirs = socket.socketpair()
        follow, self.alive = os.pipe()
        root = str(Path(__file__).resolve().parents[3])
        code = f"import sys; sys.path.insert(0, {root!r}); {PROGRAM}"
        try:
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-c", code, str(theirs.fileno()), str(follow)],  # -P: nothing from the directory
                pass_fds=(theirs.fileno(), follow),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                cwd=os.path.sep,  # the directory that the command was started in may be gone
                env={**os.environ, **ENVIRONMENT},
                process_group=0,  # a Ctrl-C of the terminal is the parent's alone
            )
        finally:
            theirs.close()
            os.close(follow)
        self.job: Job | None = None
        self.ready = False
        self.limit = start
        self.deadline = time.monotonic() + start
        self.buffer = b""

    @property
    def overdue(self) -> bool:
        return time.monotonic() >= self.deadline

    def give(self, job: Job, run_timeout: float | None) -> None:
        self.job = job
        self.limit = run_timeout or float("inf")
        self.deadline = time.monotonic() + self.limit
        try:
            self.socket.sendall(json.dumps(job, allow_nan=False).encode() + b"\n")
        except OSError:
            pass  # it is dying: its socket ends, and the job is lost by name

    def listen(self) -> list[tuple[str, Any]]:
        """What it said: (kind, body) a line; `died` and why when there will be no more."""
        try:
            data = self.socket.recv(1 << 16)
        except OSError:
            data = b""
        *lines, self.buffer = (self.buffer + data).split(b"\n")
        try:
            messages = [(str(said["kind"]), said["body"]) for said in (json.loads(line) for line in lines)]
        except (ValueError, KeyError, TypeError):
            return [("died", "the worker sent an invalid message")]
        if len(self.buffer) > LONGEST_LINE:
            return [*messages, ("died", "the worker sent an invalid message")]
        if any(kind != "event" for kind, _ in messages):
            self.deadline = float("inf")  # idle until it is given another
        return messages if data else [*messages, ("died", self.exit_reason())]

    def tardiness(self) -> str:
        if self.job is None:
            return f"the worker was not ready after {self.limit:.0f} s"
        return f"timeout: no result within {self.limit:g} s"

    def exit_reason(self) -> str:
        """What ended it, in words."""
        try:
            code = self.process.wait(1.0)
        except subprocess.TimeoutExpired:
            return "the worker closed its socket"
        if code >= 0:
            return f"the worker exited with code {code}"
        hint = ", as when memory runs out" if code == -signal.SIGKILL else ""
        return f"the worker was ended by {signal.Signals(-code).name}{hint}"

    def end(self) -> None:
        """Gone, with all it held."""
        self.process.kill()
        self.process.wait()
        self.socket.close()
        os.close(self.alive)
