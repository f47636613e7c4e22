"""What executors share: where they run jobs, and the answer for a job that has no result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from stabkit.errors import StabkitError
from stabkit.running.shard import Shard
from stabkit.storage.jobs import Event, Job
from stabkit.storage.locks import Busy

Tell = Callable[[Event], None]
LostKind = Literal["error", "died", "timeout", "cancelled", "given up"]
"""Its code raised; its process ended; it took too long; nobody wanted it any more; it was lost too often in earlier
commands and not tried in this one."""
ATTEMPTS = 3
"""How often a job that is lost is tried."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ExecutorOptions:
    """Where jobs run; an executor uses what concerns it."""

    workers: int = 1
    run_timeout: float | None = None
    """Seconds after which a job is given up; None: never."""
    scheduler: str = ""
    """Of a Dask cluster: tcp://host:8786."""
    shard: Shard = Shard()
    """Of several commands that share a store and a plan."""


@dataclass(frozen=True, slots=True)
class Lost:
    """A job without a result, and why."""

    kind: LostKind
    reason: str
    """One line, for people."""
    error: StabkitError | None = None
    """What another attempt would meet again, to be raised at once."""
    attempt: int = 0
    """How many there were, this one included; 0 where nobody counts."""
    log: str = ""
    """Where the whole story stands."""

    @property
    def text(self) -> str:
        """The reason, and how often it was tried."""
        if self.kind == "given up":
            return f"{self.reason} (attempt {self.attempt}; --retry-failed tries again)"
        return f"{self.reason} (attempt {self.attempt} of {ATTEMPTS})" if self.attempt else self.reason


Answer = tuple[Job, str | Lost | Busy]
"""A job and its outcome, why it has none, or who else is at it."""
