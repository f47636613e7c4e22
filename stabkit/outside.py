"""Files from outside, whatever stands there: reading one costs bounded time and memory, and says in one line what is
wrong with it."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path

from stabkit.errors import StoreError, UsageError

LARGE, HOLES, BLOCK = 32_000_000, 8, 512
"""Bytes from which on a file is all holes, and not read, of whose bytes fewer than one in HOLES are on the disk; bytes
of a block."""


class NotRead(ValueError):
    """It is no regular file, or larger than it can be."""


@contextmanager
def opened(path: Path | str, most: int) -> Iterator[BufferedReader]:
    """A regular file of at most `most` bytes; raises NotRead for others, OSError where there is none."""
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:  # a FIFO holds us
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise NotRead("not a regular file")
        if status.st_size > most:
            raise NotRead(f"{status.st_size} bytes; at most {most} are possible")
        yield file


def read(path: Path | str, most: int) -> bytes:
    """The bytes of such a file, unless it is all holes (NotRead): it would take memory for what costs no disk."""
    with opened(path, most) as file:
        status = os.fstat(file.fileno())
        if status.st_size > LARGE and status.st_blocks * BLOCK * HOLES < status.st_size:
            raise NotRead(f"of {status.st_size} bytes hardly any are on the disk")
        data = file.read(most + 1)  # it may have grown
    if len(data) > most:
        raise NotRead(f"more than {most} bytes")
    return data


def document(option: str, path: str, most: int, how: str = "") -> str:
    """The text of a file that a user names for an option; raises UsageError, with `how` to come by one at its end."""
    try:
        return read(path, most).decode()
    except FileNotFoundError:
        why = "there is no such file"
    except OSError as error:
        why = f"cannot be read: {error.strerror or error}"
    except UnicodeDecodeError:
        why = "not text in UTF-8"
    except ValueError as error:  # a NUL in its name, too
        why = str(error)
    raise UsageError(f"{option}: {path[:200]}: {why}{f'; {how}' if how else ''}")


def writable(option: str, path: str) -> None:
    """Raises UsageError of what is no file, StoreError of what cannot be written, before its content is known."""
    target = Path(path)
    try:
        if os.path.lexists(target) and not target.is_file():
            raise UsageError(f"{option}: {path[:200]} is not a regular file; name another file")
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(prefix=f".{target.name[:80]}.", dir=target.parent):
            pass
    except (OSError, ValueError) as error:
        raise StoreError(f"{option}: cannot write {path[:200]}: {getattr(error, 'strerror', None) or error}") from error
