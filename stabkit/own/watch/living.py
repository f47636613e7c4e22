"""Which watches live in this process, under which names; what they hold is written at the interpreter's end."""

from __future__ import annotations

import atexit
import weakref
from typing import Any

from torch import nn

_open: weakref.WeakSet[Any] = weakref.WeakSet()


class Ended(Exception):
    """The watch was ended on the way; nothing more is to be done."""


def watched(model: nn.Module) -> bool:
    """Whether one of them is on this model."""
    return any(watch.model is model for watch in _open)


def begin(watch: Any) -> None:
    """From now on."""
    _open.add(watch)


def end(watch: Any) -> None:
    """No more."""
    _open.discard(watch)


@atexit.register
def _leave() -> None:
    for watch in list(_open):
        watch.left_open()
