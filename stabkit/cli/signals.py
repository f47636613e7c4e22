"""Signals that end a command, as one exception."""

from __future__ import annotations

import signal
import time
from types import FrameType

from stabkit.errors import Interrupted

CLEANING = 5.0
"""Seconds that cleaning up may take before the next signal ends it too."""


class Signals:
    """Ctrl-C, SIGTERM and SIGHUP become one Interrupted. What comes in the CLEANING seconds after it is ignored, so
    that the cleaning-up is not cut short; then it is raised again, unasked too, should somebody's code have swallowed
    it (a `__del__`, a callback of a library's). What was ignored when the command began stays ignored."""

    SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
    ALARM = getattr(signal, "SIGALRM", None)

    def __init__(self, command: str) -> None:
        self.command = command
        self.first, self.since = 0, float("-inf")

    def __enter__(self) -> None:
        heard = [number for number in self.SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]  # nohup, `&`
        self.before = {number: signal.signal(number, self._raise) for number in heard}
        if self.ALARM is not None:
            self.before[self.ALARM] = signal.signal(self.ALARM, self._raise)

    def __exit__(self, *error: object) -> None:
        if self.ALARM is not None:
            signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in self.before.items():
            signal.signal(number, handler)

    def _raise(self, number: int, frame: FrameType | None) -> None:
        if time.monotonic() - self.since < CLEANING - 0.1:
            return
        self.first, self.since = self.first or number, time.monotonic()
        if self.ALARM is not None:
            signal.setitimer(signal.ITIMER_REAL, CLEANING)
        raise Interrupted(self.first, f"interrupted; finished runs are kept; continue with: {self.command}")
