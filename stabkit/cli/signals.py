"""Signals that end a command, as one exception."""

from __future__ import annotations

import signal

from stabkit.errors import Interrupted


class Signals:
    """Ctrl-C, SIGTERM and SIGHUP become one Interrupted; what comes after the first is ignored, so that the cleaning-up
    is not cut short."""

    SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))

    def __init__(self, command: str) -> None:
        self.command = command

    def __enter__(self) -> None:
        self.before = {number: signal.signal(number, self._raise) for number in self.SIGNALS}

    def __exit__(self, *error: object) -> None:
        for number, handler in self.before.items():
            signal.signal(number, handler)

    def _raise(self, number: int, frame: object) -> None:
        for other in self.SIGNALS:
            signal.signal(other, signal.SIG_IGN)
        raise Interrupted(number, f"interrupted; what is finished is kept, continue with: {self.command}")
