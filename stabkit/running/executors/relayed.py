"""A job looked after on another machine: a child process there, its answer as JSON, and back here.

What looks after it never trains itself, so that a run that dies takes nothing with it but its own child.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from stabkit.errors import StoreError, UsageError
from stabkit.kernels import products
from stabkit.running.executors import processes
from stabkit.running.executors.base import ExecutorOptions, Lost, Tell
from stabkit.storage import locks
from stabkit.storage.jobs import Job
from stabkit.storage.locks import Busy

FINAL = {"UsageError": UsageError, "StoreError": StoreError}
MIXED = "their matrix products come from different libraries, so runs agree up to rounding, not bit for bit"


def runs(job: Job) -> Path:
    """Where the lock stands by which another machine knows that it sees the same store."""
    return Path(job["out"]) / "runs"


def supervise(
    job: Job, tell: Tell, run_timeout: float | None, token: str, here: str, wanted: Callable[[], bool]
) -> dict[str, Any]:
    """There: one job in a child process, as long as it is wanted. `token`: a lock that the command holds."""
    if not locks.there(runs(job), token):
        reason = f"{here} does not see {job['out']}: --out must be on storage that every worker shares"
        return {"lost": reason, "kind": "error", "final": "StoreError"}
    for _, answer in processes.map([job], tell, ExecutorOptions(run_timeout=run_timeout), wanted=wanted):
        if isinstance(answer, Busy):
            return {"locked": answer.to_json()}
        if isinstance(answer, Lost):
            return {"lost": answer.reason, "kind": answer.kind, "final": type(answer.error).__name__}
        return {"done": answer, "vendor": products.vendor()}
    return {"lost": "no longer needed", "kind": "cancelled", "final": ""}


def answer(said: Mapping[str, Any]) -> str | Lost | Busy:
    """Here: what `supervise` said, as an executor gives it."""
    if "done" in said:
        return str(said["done"])
    if "locked" in said:
        return Busy(**said["locked"])
    final = FINAL.get(said["final"])
    return Lost(said["kind"], said["lost"], final(said["lost"]) if final else None)


class Vendors:
    """Warns once where the processors of several vendors work on one store."""

    def __init__(self, tell: Tell) -> None:
        self.tell, self.seen = tell, set[str]()

    def see(self, vendor: str) -> None:
        """Another answer's."""
        if vendor and vendor not in self.seen:
            self.seen.add(vendor)
            if len(self.seen) == 2:
                self.tell({"id": "", "warning": f"workers of {' and '.join(sorted(self.seen))}: {MIXED}"})
