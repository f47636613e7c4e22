"""Persistent spawned worker processes on this machine, each with one torch thread, and the loop that watches them.

One pipe a worker; the parent waits on the pipes, so that a worker's death is seen at once (its pipe ends) and costs
only the job it held. Workers ignore Ctrl-C, which is the parent's to handle, and end when the parent does, however it
ends.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import traceback
from collections import deque
from collections.abc import Generator, Sequence
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from typing import Any

from stabkit import work
from stabkit.errors import FailedRuns, StabkitError, StoreError, UsageError
from stabkit.executors.base import Answer, Lost, Tell
from stabkit.work import ENVIRONMENT, Job

FINAL = {"refused": UsageError, "storage": StoreError}
"""What a worker says when another attempt would end the same way."""

SPAWN_DEATHS = 3
"""Workers that died before they were ready: after so many, none will start here."""


def map(jobs: Sequence[Job], tell: Tell, workers: int = 1) -> Generator[Answer, None, None]:
    """Every job, the first ones first, on `workers` processes."""
    waiting = deque(jobs)
    pool: dict[Connection, _Worker] = {}
    stillborn = 0
    try:
        while waiting or any(w.job for w in pool.values()):
            while len(pool) < workers and len(pool) < len(waiting) + sum(w.job is not None for w in pool.values()):
                worker = _Worker()
                pool[worker.pipe] = worker
            for pipe in wait(list(pool), timeout=1.0):
                worker = pool[pipe]  # type: ignore[index]  # wait is typed for sockets and handles too
                try:
                    kind, body = worker.pipe.recv()
                except (EOFError, OSError):
                    del pool[worker.pipe]
                    reason = worker.obituary()
                    if worker.job is not None:
                        yield worker.job, Lost(reason)
                    elif not worker.ready:
                        stillborn += 1
                        if stillborn >= SPAWN_DEATHS:
                            raise FailedRuns(f"no worker process can start here: {reason}") from None
                    continue
                if kind == "event":
                    tell(body)
                    continue
                job, worker.job, worker.ready = worker.job, None, True
                if waiting:
                    worker.give(waiting.popleft())
                if job is not None:
                    final = FINAL.get(kind)
                    yield job, body if kind == "done" else Lost(body, final(body) if final else None)
    finally:
        for worker in pool.values():
            worker.process.kill()  # what it commits it commits whole, so it may die at any moment
        for worker in pool.values():
            worker.process.join()


class _Worker:
    """One process, its pipe, and the job it holds."""

    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process: SpawnProcess = context.Process(target=_serve, args=(theirs,), daemon=True)
        kept = {name: os.environ.get(name) for name in ENVIRONMENT}
        os.environ.update(ENVIRONMENT)  # read once, when the child loads its maths library
        try:
            self.process.start()
        finally:
            for name, value in kept.items():
                os.environ.pop(name) if value is None else os.environ.update({name: value})
        theirs.close()
        self.job: Job | None = None
        self.ready = False

    def give(self, job: Job) -> None:
        self.job = job
        try:
            self.pipe.send(job)
        except OSError:
            pass  # it is dying: the next wait sees the end of its pipe and names the job lost

    def obituary(self) -> str:
        """What ended it, in words."""
        self.process.join(1.0)
        code = self.process.exitcode
        if code is None:
            self.process.kill()
            return "the worker closed its pipe"
        return (
            f"the worker was ended by {signal.Signals(-code).name}"
            if code < 0
            else f"the worker exited with code {code}"
        )


def _serve(pipe: Connection) -> None:
    """A worker's life: get ready, then one job after another until the parent is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    assert parent is not None

    def follow() -> None:
        parent.join()
        os._exit(111)

    threading.Thread(target=follow, daemon=True).start()
    try:
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write("1000")  # when memory runs out, a worker goes before the parent or the user's desktop
    except OSError:
        pass
    sending = threading.Lock()

    def send(kind: str, body: Any) -> None:
        with sending:
            pipe.send((kind, body))

    work.prepare()
    send("ready", None)
    while True:
        try:
            job = pipe.recv()
        except EOFError:
            return
        try:
            send("done", work.do(job, lambda event: send("event", event))[1])
        except UsageError as error:
            send("refused", str(error))
        except StoreError as error:
            send("storage", str(error))
        except StabkitError as error:
            send("failed", str(error))
        except BaseException as error:  # a SystemExit inside a run is that run's loss too
            last = traceback.extract_tb(error.__traceback__)[-1]
            send("failed", f"{type(error).__name__}: {error} ({os.path.basename(last.filename)}:{last.lineno})")
