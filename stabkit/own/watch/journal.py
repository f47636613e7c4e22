"""Rows of a watch on their way: judged as they come, given to the user's writer, written in parts."""

from __future__ import annotations

import logging
import math
import os
import shlex
import time
from collections.abc import Callable, Mapping, Sequence, Set
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch

from stabkit.errors import StoreError, warn
from stabkit.own.watch import writers
from stabkit.results.own.alarm import Alarm, Alarms
from stabkit.results.own.cell import Facts, Sublayer
from stabkit.results.own.guess import Guess
from stabkit.results.records import Recorder
from stabkit.storage.watched import WatchShelf, to_files
from stabkit.version import __version__

PAUSE = 30.0
"""Seconds between parts."""


class StabilityWarning(UserWarning):
    """A link of the chain is beyond its limit, or a watch has ended before its training."""


BETWEEN = frozenset({"stabkit", "torch", "transformers", "accelerate", "lightning", "contextlib"})
"""Packages whose lines stand between a training's own and ours."""


def say(sentence: str) -> None:
    """Warn where the user's own line stands."""
    warn(f"stabkit: {sentence}", StabilityWarning, BETWEEN)


def log(sentence: str) -> None:
    """What is no warning: to whom the user's logging gives it, to standard error where there is none."""
    logger = logging.getLogger("stabkit")
    if not logger.hasHandlers():
        logger.addHandler(logging.StreamHandler())
        logger.setLevel(logging.INFO)
    logger.info("stabkit: %s", sentence)


class Journal:
    """Of one watch."""

    def __init__(self, shelf: WatchShelf | None, name: str, warn: bool, writer: Any) -> None:
        """Without a shelf nothing is kept, said or written: another process does."""
        self.shelf, self.name, self.warn, self.writer = shelf, name, warn, writer
        self.alarms = Alarms(())
        self.keep: Callable[[], None] = lambda: None
        """Writes a part: a warning is on the disk before it is said."""
        self._recorder = Recorder()
        self._written = -math.inf  # the first part is due at once: it is there whatever happens
        if shelf is not None:
            try:
                shelf.root.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                rest = "training goes on; the records are kept for the next try"
                say(f"cannot write to {shelf.root} ({error.strerror}); {rest}")

    def begin(self, sublayers: Sequence[Sublayer], guess: Guess | None, usual: float, *, anew: bool) -> None:
        """What rows will be of, what the model's scores were worth at the start, the optimiser's usual rate, and
        whether it has no state."""
        self.alarms = Alarms(sublayers, guess=guess, usual=usual, anew=anew)

    @property
    def warnings(self) -> list[Alarm]:
        """Every warning so far."""
        return list(self.alarms.raised.values())

    @property
    def due(self) -> bool:
        """Whether a part is to be written."""
        return time.monotonic() - self._written > PAUSE

    def add(self, probe: str, step: int, row: Mapping[str, float], missing: Set[str] = frozenset()) -> None:
        """One reading; `missing`: whom no gradient reached."""
        if self.shelf is None:
            return
        self._recorder.add(probe, step, tuple(row), list(row.values()))
        self._send(lambda writer: writers.send(writer, probe, step, row))
        before = self.alarms.promise
        self._say(self.alarms.see(probe, step, row, missing))
        if self.alarms.promise != before:
            log(self.alarms.promise)

    def warn_of(self, alarm: Alarm | None) -> None:
        """What no row is reason for."""
        if self.shelf is not None:
            self._say(self.alarms.add(alarm))

    def _send(self, give: Callable[[Any], None]) -> None:
        if self.writer is None:
            return
        try:
            give(self.writer)
        except Exception as error:  # the user's own, and no reason to end the watch
            self.writer = None
            say(f"the writer failed ({type(error).__name__}: {error}) and is not used any more")

    def _say(self, alarm: Alarm | None) -> None:
        if alarm is None:
            return
        self._send(lambda writer: writers.alert(writer, alarm))
        self.keep()
        if self.warn:
            say(alarm.whole)

    def flush(self, facts: Facts, ended: str) -> None:
        """Write a part; where that fails it is said, and the rows wait for the next."""
        if self.shelf is None:
            return
        self._written = time.monotonic()
        about = {"stabkit": __version__, "torch": torch.__version__, "ended": ended}
        try:
            self.shelf.append(self.name, to_files(facts, self._recorder.tables(), self.warnings, about))
        except StoreError as error:
            rest = "its rows are lost" if ended else "the rows are kept for the next try"
            say(f"{error}; training goes on, {rest}")
        else:
            self._recorder = Recorder()

    def tell(self, page: Callable[[Path, str, str], Path] | None, ended: str) -> None:
        """Where the records are and which command makes their page, through the logger `stabkit`; `page` makes it."""
        if self.shelf is None or not (self.shelf.root / self.name).is_dir():
            return
        near = whole = str(self.shelf.root.parent)
        with suppress(OSError):  # the folder that the training began in is gone
            near = os.path.relpath(whole)
        store = whole if near.startswith("..") else near
        words = ["stabkit", "report", self.name, "--store", store]
        said = f"{len(self.warnings)} warning{'s' * (len(self.warnings) != 1)}" if self.warnings else "no warning"
        said = said if ended == "closed" else f"{said}, ended early"
        command = shlex.join(words)
        log(f"{said}; {command} writes the page of {os.path.join(store, 'own', self.name)}")
        if page is None:
            return
        try:
            log(f"report: {page(self.shelf.root.parent, self.name, command)}")
        except Exception as error:  # a training does not end for the want of a page
            say(f"the page could not be written: {type(error).__name__}: {error}")
