"""Persistent worker processes on this machine, each with one torch thread, and the loop that watches them.

The parent waits on the workers' sockets, so that a death is seen at once (its socket ends) and costs only the job it
held; a job that takes too long, or a worker in which a run failed, is ended with its process, so that no run ever
starts where another went wrong. Workers end when the parent does, however it ends (`child.py`).

A worker that is slow to start is waited for as long as it uses processor time; others go on meanwhile, and with them
the command does. It ends where none can be started.
"""

from __future__ import annotations

import json
import os
import select
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from stabkit.errors import FailedRuns, StoreError, UsageError
from stabkit.running.executors.base import Answer, ExecutorOptions, Lost, LostKind, Tell
from stabkit.running.executors.child import INVALID, LONGEST_LINE, exit_reason
from stabkit.running.work import ENVIRONMENT, of_factory, theirs
from stabkit.storage.jobs import Job
from stabkit.storage.locks import Busy

FINAL = {"refused": UsageError, "storage": StoreError}
"""What a worker says when another attempt would end the same way."""

SPAWN_DEATHS = 3
"""Workers that died before they were ready: after so many, none will start here."""
PROGRAM = "from stabkit.running.executors import child; child.start()"
"""What a worker process runs."""
START_SECONDS = 300.0
"""A worker that is not ready and has neither said anything nor used processor time for so long never will be."""
SLOW_SECONDS = 10.0
"""From then on a start is slow, and the user is told."""
TOGETHER = sys.platform == "linux"
"""Whether workers that start at once are forked from one process: elsewhere that is not safe after torch's import."""
ENDING_SECONDS = 1.0
"""For a worker to end what it has started; then it is killed."""


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
        stillborn, most, pool = 0, self.where.workers, self.workers
        with selectors.DefaultSelector() as selector:
            for worker in pool:
                selector.register(worker.socket, selectors.EVENT_READ, worker)
                if worker.ready and waiting:
                    worker.give(waiting.popleft(), self.where.run_timeout)
            try:
                while (waiting or any(worker.job for worker in pool)) and wanted():
                    lacking = min(most, len(waiting) + sum(w.job is not None for w in pool)) - len(pool)
                    for worker in _started(lacking, any(of_factory(job) for job in waiting)):
                        pool.add(worker)
                        selector.register(worker.socket, selectors.EVENT_READ, worker)
                    heard = [key.data for key, _ in selector.select(timeout=_patience(pool))]
                    for worker in pool:
                        worker.starting(tell)
                    for worker in [*heard, *(w for w in pool if w.overdue and w not in heard)]:
                        messages = worker.listen() if worker in heard else [("timeout", worker.tardiness())]
                        for kind, body in messages:
                            job = worker.job
                            if kind == "event":
                                tell(body)
                                continue
                            if kind == "starting":
                                continue
                            if kind == "ready":
                                worker.ready, worker.pid, stillborn = True, body or worker.pid, 0
                            else:
                                worker.job = None
                            if kind in ("died", "timeout") or kind == "failed" and not (job and theirs(job)):
                                selector.unregister(worker.socket)
                                pool.discard(worker)
                                worker.end()
                                if not worker.ready:
                                    stillborn += SPAWN_DEATHS if kind == "timeout" else 1
                                if not worker.ready and stillborn >= SPAWN_DEATHS:
                                    if not pool:
                                        raise FailedRuns(f"no worker process can start here: {body}")
                                    most = len(pool)
                                    tell({"id": "", "note": f"a further worker does not start ({body}): {most} go on"})
                            elif waiting:
                                worker.give(waiting.popleft(), self.where.run_timeout)
                            if job is not None and kind != "ready":
                                yield job, answer(kind, body)
            finally:
                self._end({worker for worker in pool if worker.job is not None or not worker.ready})

    def _end(self, some: set[_Worker]) -> None:
        some = set(some)
        for worker in some:
            worker.stop()  # what it commits it commits whole, so it may die at any moment
        for worker in some:
            worker.end()
        self.workers -= some


def answer(kind: str, body: Any) -> str | Lost | Busy:
    """What a worker said last of a job, as an executor gives it."""
    return str(body) if kind == "done" else Busy(**body) if kind == "locked" else lost(kind, body)


def lost(kind: str, reason: str) -> Lost:
    """A job that ended in what a worker said last, or in its death."""
    final = FINAL.get(kind)
    ended: dict[str, LostKind] = {"died": "died", "ended": "died", "timeout": "timeout"}
    return Lost(ended.get(kind, "error"), reason, final(reason) if final else None)


def _patience(pool: set[_Worker]) -> float:
    """Seconds until the next worker is overdue, at most one."""
    return min([1.0, *(max(0.0, worker.deadline - time.monotonic()) for worker in pool)])


def _started(count: int, factory: bool) -> list[_Worker]:
    """So many more workers; where it is safe to fork, in one process that imports torch once for all."""
    each = [count] * (count > 0) if TOGETHER else [1] * count
    return [worker for share in each for worker in _Start(share, factory).workers]


class _Start:
    """One process in which workers start, and the pipe by which they know that we live."""

    def __init__(self, count: int, factory: bool) -> None:
        pairs = [socket.socketpair() for _ in range(count)]
        first, *more = (str(theirs.fileno()) for _, theirs in pairs)
        follow, self.alive = os.pipe()
        root = str(Path(__file__).resolve().parents[3])
        code = f"import sys; sys.path.insert(0, {root!r}); {PROGRAM}"
        try:
            self.process = subprocess.Popen(
                # -P: nothing from the directory
                [sys.executable, "-P", "-c", code, first, str(follow), "factory" if factory else "runs", *more],
                pass_fds=(*(theirs.fileno() for _, theirs in pairs), follow),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                cwd=os.path.sep,  # the directory that the command was started in may be gone
                env={**os.environ, **ENVIRONMENT},
                process_group=0,  # a Ctrl-C of the terminal is the parent's alone
            )
        finally:
            for _, theirs in pairs:
                theirs.close()
            os.close(follow)
        self.began = time.monotonic()
        self.slow = False
        self.workers = [_Worker(self, ours) for ours, _ in pairs]
        self.left = len(self.workers)

    def ended(self) -> None:
        """One more of its workers is gone; after the last this process is."""
        self.left -= 1
        if not self.left:
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(ENDING_SECONDS)
            with suppress(OSError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.kill()
            self.process.wait()
            os.close(self.alive)


class _Worker:
    """A worker's socket, and the job it holds."""

    def __init__(self, start: _Start, channel: socket.socket) -> None:
        self.start, self.socket = start, channel
        self.pid = start.process.pid
        """Until it says its own, that of the process in which it starts."""
        self.job: Job | None = None
        self.ready = self.gone = False
        self.limit = START_SECONDS
        self.deadline = start.began + self.limit
        self.used = 0
        self.buffer = b""

    @property
    def overdue(self) -> bool:
        return time.monotonic() >= self.deadline

    def starting(self, tell: Tell) -> None:
        """While it is not ready: it is waited for as long as it uses time; of a slow one the user is told."""
        if self.ready:
            return
        now, used = time.monotonic(), _ticks(self.start.process.pid)
        if used > self.used:
            self.used, self.deadline = used, now + self.limit
        if not self.start.slow and now - self.start.began > SLOW_SECONDS:
            self.start.slow = True
            tell({"id": "", "note": f"a worker is slow to start (load {os.getloadavg()[0]:.0f}); it is waited for"})

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
            return [("died", INVALID)]
        if len(self.buffer) > LONGEST_LINE:
            return [*messages, ("died", INVALID)]
        if any(kind not in ("event", "starting") for kind, _ in messages):
            self.deadline = float("inf")  # idle until it is given another
        self.gone = any(kind == "died" for kind, _ in messages)
        return messages if data or self.gone else [*messages, ("died", self.exit_reason())]

    def tardiness(self) -> str:
        if self.job is None:
            return f"a worker showed no sign of life for {self.limit:.0f} s of its start"
        return f"timeout: no result within {self.limit:g} s"

    def exit_reason(self) -> str:
        """What ended it, in words."""
        try:
            code = self.start.process.wait(1.0)
        except subprocess.TimeoutExpired:
            return "the worker closed its socket"
        return exit_reason(code)

    def stop(self) -> None:
        """Ask it to end, with what it has started."""
        with suppress(OSError):
            if not self.gone:
                os.killpg(self.pid, signal.SIGTERM)

    def end(self) -> None:
        """Gone, with all it held."""
        self.stop()
        deadline = time.monotonic() + ENDING_SECONDS
        with suppress(OSError):
            while not self.gone and (left := deadline - time.monotonic()) > 0:
                if select.select([self.socket], [], [], left)[0]:
                    self.gone = b'"died"' in (data := self.socket.recv(1 << 16)) or not data
            if not self.gone:
                os.killpg(self.pid, signal.SIGKILL)
        self.socket.close()
        self.start.ended()


def _ticks(pid: int) -> int:
    """Processor time that a process has used; 0 where the system does not say."""
    try:
        words = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
        return int(words[11]) + int(words[12])
    except (OSError, ValueError, IndexError):
        return 0
