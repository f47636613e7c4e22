"""What executors share: where they run jobs, and the answer for a job that has no result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from stabkit.errors import StabkitError
from stabkit.running.work import Event, Job

Tell = Callable[[Event], None]


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """Where jobs run; an executor uses what concerns it."""

    workers: int = 1
    run_timeout: float | None = None
    """Seconds after which a job is given up; None: never."""
    scheduler: str = ""
    """Of a Dask cluster: tcp://host:8786."""


@dataclass(frozen=True, slots=True)
class Lost:
    """A job without a result, and why. `error`: what another attempt would meet again, to be raised at once."""

    reason: str
    error: StabkitError | None = None


Answer = tuple[Job, str | Lost]
