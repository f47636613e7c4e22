"""The user's own Dask cluster: the same jobs, looked after by its workers, committed to storage that all of them share.

A task never trains in the Dask worker's own process: it looks after a child process (`processes.map` with one
worker), so that a run that dies takes no other with it. When the task is not wanted any more (the client is gone, the
command was interrupted), it ends its child. Only JSON crosses, both ways; but a Dask worker runs whatever its scheduler
sends, so the cluster is inside the trust boundary (docs/tutorials/cluster.md).
"""

from __future__ import annotations

import asyncio
import logging
import queue
import time
import uuid
from collections.abc import Generator, Sequence
from contextlib import ExitStack, suppress
from typing import Any

from stabkit.errors import FailedRuns, UsageError
from stabkit.running.executors import relayed
from stabkit.running.executors.base import Answer, ExecutorOptions, Lost, LostKind, Tell
from stabkit.running.executors.relayed import Vendors
from stabkit.storage import locks
from stabkit.storage.jobs import Event, Job
from stabkit.storage.locks import Busy

ANSWER_SECONDS = 5
"""How long a scheduler may take to answer."""
GONE_SECONDS = 10.0
"""How long it may be out of reach before the sweep is given up."""


def map(jobs: Sequence[Job], tell: Tell, where: ExecutorOptions) -> Generator[Answer, None, None]:
    """Every job on the cluster, as many at once as it has threads."""
    client = _client(where.scheduler)
    topic = f"stabkit-{uuid.uuid4().hex}"
    events: queue.SimpleQueue[Event] = queue.SimpleQueue()
    seen_there = ExitStack()
    try:
        seen_there.enter_context(locks.hold(relayed.runs(jobs[0]), topic))  # so that a worker knows this store
        client.subscribe_topic(topic, lambda event: events.put(event[1]))
        waiting = {
            client.submit(
                look_after,
                job,
                where.run_timeout,
                topic,
                pure=False,
                retries=0,  # our own count decides
                key=f"{job['id']}-{topic[-8:]}-{i}",
                resources={} if job["device"] == "cpu" else {"GPU": 1},
            ): job
            for i, job in enumerate(jobs)
        }
        vendors = Vendors(tell)
        seen = time.monotonic()
        while waiting:
            with suppress(queue.Empty):
                while True:
                    tell(events.get_nowait())
            if client.status == "running":
                seen = time.monotonic()
            elif client.status == "closed" or time.monotonic() - seen > GONE_SECONDS:
                raise FailedRuns(
                    f"the Dask scheduler at {where.scheduler} has disappeared; finished runs are kept: run the "
                    "command again"
                )
            finished = [future for future in waiting if future.status in ("finished", "error")]
            if client.status == "running":
                finished += [future for future in waiting if future.status in ("cancelled", "lost")]
            for future in finished:
                answer, vendor = _answer(future)
                vendors.see(vendor)
                yield waiting.pop(future), answer
            if not finished:
                time.sleep(0.1)
    finally:
        seen_there.close()
        with suppress(Exception):  # a cluster that is gone cannot be told
            client.cancel(list(waiting), force=True)
        client.close(timeout=1)


def _client(address: str) -> Any:
    """A client of the scheduler there; raises UsageError within seconds where none answers.

    It is asked who it is before a client is made: a client that meets something else takes ten seconds to give up, and
    says so in tracebacks of its own.
    """
    from distributed import Client

    for name in ("distributed", "distributed.client", "distributed.comm"):
        logging.getLogger(name).setLevel(logging.CRITICAL)  # a lost scheduler is said by us, in one line
    try:
        asyncio.run(asyncio.wait_for(_asked(address), ANSWER_SECONDS))
        return Client(address, timeout=ANSWER_SECONDS, set_as_default=False)  # type: ignore[no-untyped-call]
    except Exception as error:  # what answers may not be Dask at all: then it fails in any way it likes
        reason = " ".join(str(error).split())[:200] or f"no answer in {ANSWER_SECONDS} s"
        raise UsageError(f"--scheduler: no Dask scheduler answers at {address!r} ({reason})") from None


async def _asked(address: str) -> None:
    from distributed.core import rpc

    async with rpc(address) as scheduler:  # type: ignore[no-untyped-call]
        if (await scheduler.identity())["type"] != "Scheduler":
            raise ValueError("it is a part of Dask, but not a scheduler")


def _answer(future: Any) -> tuple[str | Lost | Busy, str]:
    """What a finished task says, and the vendor of the processor that it ran on."""
    if future.status != "finished":
        error = future.exception(timeout=5) if future.status == "error" else None
        if error is None:
            return Lost("cancelled", "the cluster dropped the run"), ""
        kind: LostKind = "died" if type(error).__name__ == "KilledWorker" else "error"
        return Lost(kind, f"{type(error).__name__}: {error}"[:500]), ""
    said = future.result(timeout=30)
    return relayed.answer(said), str(said.get("vendor", ""))


def look_after(job: Job, run_timeout: float | None, topic: str) -> dict[str, Any]:
    """On a Dask worker: one job in a child process, as long as the cluster wants it."""
    from distributed import get_worker

    worker = get_worker()
    key = worker.get_current_task()

    def executing() -> bool:
        task = worker.state.tasks.get(key)
        return task is not None and task.state == "executing" and worker.status.name == "running"

    def event(event: Event) -> None:
        worker.log_event(topic, event)

    return relayed.supervise(job, event, run_timeout, topic, str(worker.address), executing)
