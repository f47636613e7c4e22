"""One job after another in this process: for tests and debuggers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from stabkit import work
from stabkit.errors import StabkitError, UsageError
from stabkit.executors.base import Answer, Lost, Tell
from stabkit.work import Job


def inline(jobs: Sequence[Job], tell: Tell, workers: int = 1) -> Iterator[Answer]:
    """Every job in the order given; `workers` is not used."""
    work.prepare()
    for job in jobs:
        try:
            yield job, work.do(job, tell)[1]
        except Exception as error:  # whatever a run raises is that run's loss, not the sweep's
            known = isinstance(error, StabkitError)
            yield job, Lost(str(error) if known else f"{type(error).__name__}: {error}", isinstance(error, UsageError))
