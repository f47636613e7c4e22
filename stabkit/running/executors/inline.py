"""One job after another in this process: for tests and debuggers."""

from __future__ import annotations

from collections.abc import Generator, Sequence

from stabkit.errors import StabkitError, StoreError, UsageError
from stabkit.running import work
from stabkit.running.executors.base import Answer, ExecutorOptions, Lost, Tell
from stabkit.storage.jobs import Job
from stabkit.storage.locks import Locked


def map(jobs: Sequence[Job], tell: Tell, where: ExecutorOptions) -> Generator[Answer, None, None]:
    """Every job in the order given; `where` is here."""
    work.prepare()
    for job in jobs:
        try:
            yield job, work.do(job, tell)[1]
        except Locked as error:
            yield job, error.busy
        except Exception as error:  # whatever a run raises is that run's loss, not the sweep's
            known = isinstance(error, StabkitError)
            final = error if isinstance(error, (UsageError, StoreError)) else None
            yield job, Lost("error", str(error) if known else f"{type(error).__name__}: {error}", final)
