"""What a stored result of a user's code follows from that its name cannot hold, for it is known only afterwards: the
files that were opened, and what the model was called with at every update. Whoever finds the result stored looks
whether both are as they were.

    files    {path: sha256 of what it holds; "" where there is none; of more than LARGE bytes size, time and both ends}.
             The user's own and their data's: not those of Python, of installed packages, of stabkit, of the system
    calls    sha256 over the digest of the model's first call at steps 0 to `steps`; the forward pass is not made

What neither sees: answers alone that come from memory, a clock, a network, the environment's variables, folders that
are listed, files that compiled code opens and closes again without Python's knowledge.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import stat
import sys
import sysconfig
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import nn

from stabkit.own.probe.built_model import BuiltModel, seeded
from stabkit.own.sublayers import run
from stabkit.own.sublayers.memory import digest, raw

OURS = Path(__file__).resolve().parents[2]
"""Where stabkit stands."""
PYTHON = (*map(sysconfig.get_path, ("stdlib", "platstdlib")), *(f"{sys.base_prefix}/{part}" for part in ("bin", "lib")))
NOT_THEIRS = (OURS, *{Path(folder).resolve() for folder in PYTHON})
INSTALLED = {"site-packages", "dist-packages", "__pycache__"}
"""Folders' names."""
SYSTEM = ("/proc/", "/sys/", "/dev/", "/usr/lib/", "/usr/share/", "/lib/", "/lib64/", "/etc/")
MOST_FILES = 5_000
FOLDERS = ("runs", "surfaces", "probes", "trials", "texts", "own", "reports")
"""Of a store."""
LARGE = 64_000_000
END = 1_000_000
"""Bytes."""

_opened: dict[str, tuple[int, ...]] | None = None
_imported = False
"""Whether what has been opened is what the user's module opened when it was imported."""
_written: set[str] = set()
"""What this process has written, or begun: a log, what it keeps in passing. What it reads of these is its own."""


def listen() -> None:
    """From now on, as long as this process lives and in what is forked from it, files that are opened are noted."""
    global _opened
    if _opened is None:
        _opened = {}
        sys.addaudithook(_heard)


def begin() -> None:
    """Listen, for a job or the import before it: what this process has opened for others is none of theirs."""
    listen()
    if not _imported:
        forget()


def imported() -> None:
    """Jobs that are forked from here have opened what this process has."""
    global _imported
    _imported = True


def forget() -> None:
    """After a job: one that follows in this process opens its own."""
    _written.clear()
    if _opened is not None:
        _opened.clear()


def _heard(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "open" and _opened is not None:
        with suppress(Exception):  # it would be raised where the user's code opens
            path, _, flags = arguments
            if isinstance(path, int):
                return
            name = os.path.abspath(os.fsdecode(path))
            begun = flags & os.O_CREAT and not os.path.lexists(name)
            if name not in _opened and (begun or flags & (os.O_WRONLY | os.O_TRUNC | os.O_APPEND)):
                _written.add(name)
            elif name not in _written:
                _opened.setdefault(name, _state(name))


def _state(path: str) -> tuple[int, ...]:
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return ()
    return (status.st_size, status.st_mtime_ns, status.st_ino) if stat.S_ISREG(status.st_mode) else ()


def files(out: Path) -> dict[str, str] | None:
    """The files that have been opened since `listen`, or are mapped or open now, save for those of the store `out`;
    None where one has changed since it was opened, for what was read of it nobody knows, or where they are too many."""
    before = dict(_opened or {})
    paths = {*before, *_mapped()}
    mine = tuple(f"{out.absolute() / folder}{os.sep}" for folder in FOLDERS)  # the store may be where they work
    theirs = sorted(path for path in paths - _written if _is_theirs(path) and not path.startswith(mine))
    if len(theirs) > MOST_FILES or any(before.get(path, now) != now for path in theirs for now in [_state(path)]):
        return None
    return sums(theirs)


def _mapped() -> list[str]:
    """Files that compiled code has opened and not let go of: memory that is mapped, descriptors that are only read."""
    found = []
    with suppress(OSError), open("/proc/self/maps", encoding="utf-8", errors="replace") as file:
        found += [line.split(None, 5)[5].rstrip("\n") for line in file if line.count("/")]
    with suppress(OSError):
        for number in os.listdir("/proc/self/fd"):
            with suppress(OSError):  # that of the list itself
                if fcntl.fcntl(int(number), fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY:
                    found.append(os.readlink(f"/proc/self/fd/{number}"))
    return [path for path in found if path.startswith("/") and not path.endswith(" (deleted)") and _state(path)]


def sums(paths: Iterable[str]) -> dict[str, str]:
    """{path: what it holds}."""
    return {path: _sum(path) for path in paths}


def _sum(path: str) -> str:
    if not (status := _state(path)):
        return ""
    try:
        with open(path, "rb") as file:
            if status[0] <= LARGE:
                return hashlib.file_digest(file, "sha256").hexdigest()
            hashed = hashlib.sha256(repr(status[:2]).encode() + file.read(END))
            file.seek(-END, os.SEEK_END)
            hashed.update(file.read(END))
            return hashed.hexdigest()
    except OSError:
        return ""


def warm() -> None:
    """Look up once, for all that is forked from this process, which of two thousand modules are the user's."""
    sources()
    for path in _mapped():
        _is_theirs(path)


@cache  # of two thousand modules, for each cell of a worker
def _is_theirs(file: str) -> bool:
    """Whether a file is the user's own."""
    path = Path(file).resolve()
    elsewhere = INSTALLED & set(path.parts) or any(root in path.parents for root in NOT_THEIRS)
    return not elsewhere and not str(path).startswith(SYSTEM)


def sources() -> list[Path]:
    """The files of the user's own modules that have been imported."""
    names = {getattr(module, "__file__", None) for module in list(sys.modules.values())}
    paths = {
        Path(name).resolve() for name in names if isinstance(name, str) and name.endswith(".py") and _is_theirs(name)
    }
    return sorted(path for path in paths if path.is_file())


class _Called(BaseException):
    """The model was called: no more is wanted."""


def counted(made: BuiltModel) -> tuple[BuiltModel, Callable[[], int]]:
    """The model with an objective that is counted, and what tells the highest step that it was asked for."""
    highest, own = 0, made.objective

    def at(model: nn.Module, step: int) -> torch.Tensor:
        nonlocal highest
        highest = max(highest, step)
        return own.at(model, step)

    return replace(made, objective=replace(own, at=at)), lambda: highest if own.fresh else 0


def calls(made: BuiltModel, steps: int) -> str:
    """The digest of what the loss calls the model with at steps 0 to `steps`; "" where stabkit draws the batches. The
    model is as before afterwards."""
    if made.objective.synthetic:
        return ""
    hashed = hashlib.sha256()

    def stop(module: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        hashed.update(digest((args, dict(kwargs))).encode())
        raise _Called

    handle = made.model.register_forward_pre_hook(stop, with_kwargs=True)
    try:
        with run.untouched(made.model), torch.no_grad():
            for step in range(steps + 1):
                seeded(0)
                try:
                    made.objective.at(made.model, step)
                except _Called:
                    continue
                except (Exception, SystemExit) as error:  # there are no more batches, say
                    hashed.update(type(error).__name__.encode())
    finally:
        handle.remove()
    return hashed.hexdigest()


def beside(made: BuiltModel, steps: int, out: Path) -> dict[str, Any]:
    """What is to be stored beside a result that was made with batches up to step `steps`; it is under no digest."""
    return {"files": files(out), "steps": steps, "calls": calls(made, steps)}


def same(stored: Mapping[str, Any], made: BuiltModel) -> bool:
    """Whether a result that followed from these still does."""
    try:
        sound = sums(stored["files"]) == stored["files"]
        return bool(sound and calls(made, int(stored["steps"])) == stored["calls"])
    except (KeyError, TypeError, ValueError):  # files that changed while they were read, or another version's
        return False


def weights(model: nn.Module) -> str:
    """The digest of its parameters and buffers, with their names."""
    hashed = hashlib.sha256()
    for name, tensor in model.state_dict().items():
        if isinstance(tensor, torch.Tensor):
            hashed.update(name.encode(errors="surrogatepass"))
            hashed.update(raw(tensor))
    return hashed.hexdigest()
