"""What executors share: the answer for a job that has no result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from stabkit.work import Event, Job

Tell = Callable[[Event], None]


@dataclass(frozen=True, slots=True)
class Lost:
    """A job without a result, and why. `refused`: its input is at fault, and another attempt would say the same."""

    reason: str
    refused: bool = False


Answer = tuple[Job, str | Lost]
