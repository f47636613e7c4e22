"""Who follows a call of the API: the command line, which shows it, or nobody."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Protocol

from stabkit.errors import warn
from stabkit.results.run import Run
from stabkit.running import cost
from stabkit.running.execute import Listener
from stabkit.running.executors.base import Lost, Tell
from stabkit.running.plan import Plan
from stabkit.running.probes import ProbedCell, ProbeSpec
from stabkit.running.trials import TrialSpec, TriedModel
from stabkit.spec import RunSpec


class CallListener(Listener, Protocol):
    """Follows a call of the API; the command line's shows it (`cli/progress.py`)."""

    @property
    def command(self) -> str:
        """The call as people type it, for the page and for whoever goes on after an interruption."""

    def noted(self, note: str) -> None:
        """What was left out, and why."""

    def probing(
        self, count: int
    ) -> AbstractContextManager[tuple[Tell, Callable[[ProbeSpec, ProbedCell | Lost], None]]]:
        """Around the cells of a probe: what to call at an event of a worker, and when a cell has ended."""

    def trying(self, count: int) -> AbstractContextManager[tuple[Tell, Callable[[TrialSpec, TriedModel | Lost], None]]]:
        """Likewise around the rates of a round that are tried on a user's own model."""


class Silent:
    """Shows nothing: what is made, and how long it takes, goes to the log `stabkit`; what is left out is a Python
    warning, where the API was called."""

    def __init__(self, command: str) -> None:
        self.command = command

    def noted(self, note: str) -> None:
        """Warned of where the user called."""
        warn(note)

    def planned(self, plan: Plan[Any, Any]) -> None: ...

    def making(self, what: str) -> None:
        """Logged at the level INFO."""
        logging.getLogger("stabkit").info(what)

    @contextmanager
    def training(self, plan: Plan[RunSpec, Run], workers: int) -> Iterator[tuple[Tell, Callable[..., None]]]:
        """How long it takes."""
        if plan.missing:
            self.making(cost.announced(plan.missing, workers))
        yield lambda event: None, lambda *ended: None

    @contextmanager
    def measuring(self, *asked: Any) -> Iterator[tuple[Tell, Callable[..., None]]]:
        """Nothing is shown."""
        yield lambda event: None, lambda *ended: None

    probing = trying = measuring
