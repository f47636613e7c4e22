"""Long jobs one after another on a few processes, while minutes last: what comes next may depend on what has ended."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable, Collection
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from typing import TypeVar

Job = TypeVar("Job")
Result = TypeVar("Result")


def in_turn(
    following: Callable[[Collection[Job]], Job | None],
    work: Callable[[Job], Result],
    done: Callable[[Job, Result], str],
    *,
    minutes: float,
    workers: int,
) -> None:
    """Do `work` on what `following(those at work)` gives, until it gives none while nothing is at work, or the minutes
    are over. `done(job, result)` keeps a result, and says it in a line."""
    begin = time.monotonic()
    with ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn")) as pool:
        waiting: dict[Future[Result], Job] = {}
        while True:
            while len(waiting) < workers and time.monotonic() - begin < 60 * minutes:
                job = following(waiting.values())
                if job is None:
                    break
                waiting[pool.submit(work, job)] = job
            if not waiting:
                return
            ended, _ = wait(waiting, return_when=FIRST_COMPLETED)
            for future in ended:
                said = done(waiting.pop(future), future.result())
                print(f"{(time.monotonic() - begin) / 60:.1f} min: {said}", flush=True)
