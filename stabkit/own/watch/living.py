"""Which watches live in this process, under which names; what they hold is written at the interpreter's end."""

from __future__ import annotations

import atexit
import re
import secrets
import time
import weakref
from typing import Any

from torch import nn

_open: weakref.WeakSet[Any] = weakref.WeakSet()


class Ended(Exception):
    """The watch was ended on the way; nothing more is to be done."""


def identity(name: str) -> str:
    """A folder's name that no other watch has."""
    plain = re.sub(r"[^\w.]+", "-", name).strip("-.")[:80] or "watch"
    return f"{plain}-{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{secrets.token_hex(2)}"


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
