"""A job that was lost is tried again, ATTEMPTS times in all. The only place that retries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Sequence
from contextlib import closing

from stabkit.running.executors.base import Answer, Lost, Tell
from stabkit.running.work import Job

ATTEMPTS = 3
Map = Callable[[Sequence[Job], Tell], Generator[Answer, None, None]]


def attempted(jobs: Sequence[Job], execute: Map, tell: Tell, finished: Callable[[str], None]) -> dict[str, str]:
    """Do jobs that leave their results in the store themselves; returns {job id: why} of those that were lost."""
    attempts: Counter[str] = Counter()

    def note(job_id: str, reason: str) -> int:
        attempts[job_id] += 1
        return attempts[job_id]

    lost: dict[str, str] = {}
    with closing(settled(jobs, execute, tell, note)) as answers:
        for job, answer in answers:
            if isinstance(answer, Lost):
                lost[job["id"]] = answer.reason
            finished(job["id"])
    return lost


def settled(
    jobs: Sequence[Job], execute: Map, tell: Tell, note: Callable[[str, str], int]
) -> Generator[Answer, None, None]:
    """Every job with its last answer: one that is lost is tried again, ATTEMPTS times in all.

    `note(id, reason)` remembers a failed attempt and says how many there are now.
    """
    while jobs:
        again: list[Job] = []
        with closing(execute(jobs, tell)) as answers:  # workers end before the lock goes
            for job, answer in answers:
                if not isinstance(answer, Lost):
                    yield job, answer
                    continue
                if answer.error:
                    raise answer.error
                attempt = note(job["id"], answer.reason)
                if attempt < ATTEMPTS:
                    again.append(job)
                else:
                    yield job, Lost(f"{answer.reason} (attempt {attempt} of {ATTEMPTS})")
        jobs = again
