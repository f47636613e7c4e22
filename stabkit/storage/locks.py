"""Who is at work on what, so that commands that share a store do each piece of work once. Never imports torch.

    <root>/.locks/<name>.<turn>    {"machine", "pid", "started", "token", "beat"}

A lock is a file that is made with O_EXCL: of two that try one succeeds, on local disks and over NFS alike, and no
`flock` is asked for. While it is held its holder rewrites `beat` every BEAT seconds. Who finds it held goes on with
something else and looks again.

The holder is gone where its machine is ours and its process is no more, or where its file has not changed for LIMIT
seconds of the observer's own: nobody's clock is compared with anybody else's. A lock whose holder is gone is not
removed, for another may take it over at the same moment: the next turn of the name is locked, and the highest turn
counts. Its work may have been done by the holder before, so whoever has a lock first looks into the store.

A process that was stopped for longer than LIMIT and wakes does its work a second time. That costs time and no result:
equal specs make equal bytes, and the first folder stays.
"""

from __future__ import annotations

import json
import os
import platform
import secrets
import threading
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from stabkit.errors import StoreError
from stabkit.storage import folder

BEAT = 10.0
"""Seconds between two signs of life."""
LIMIT = 90.0
"""Seconds without one after which a holder elsewhere is gone; file systems over a network may show one a minute
late."""
LOOK = 0.3
"""Seconds between two looks at what is held."""
FOLDER = ".locks"


@dataclass(frozen=True, slots=True)
class Busy:
    """A lock that was found held."""

    root: str
    name: str
    over: str
    """What `held` takes where its holder is found to be gone: its turn, and what tells it from every other holder."""
    machine: str
    pid: int

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return asdict(self)


class Locked(Exception):
    """Somebody else is at work on it."""

    def __init__(self, busy: Busy) -> None:
        super().__init__(f"{busy.name} is being written by process {busy.pid} on {busy.machine}")
        self.busy = busy


@dataclass(frozen=True, slots=True)
class _Holder:
    """What a lock's file says; `token` tells two locks of one process apart."""

    machine: str
    pid: int
    started: str
    token: str

    @property
    def gone(self) -> bool:
        """Whether it can be seen from here that it is no more: proof that it lives is not asked for."""
        if self.machine != machine() or self.pid <= 0:
            return False
        now = _started(self.pid)
        return not now or (UNSEEN not in (now, self.started) and now != self.started)


UNSEEN = "unseen"
UNKNOWN = _Holder("", 0, "", "")
"""Of a file that cannot be read: it is gone when it has not changed for long."""


@contextmanager
def hold(root: Path, name: str, over: str = "") -> Iterator[None]:
    """Hold the lock on a name, while this lasts; raises Locked where another does, StoreError where none can be made.

    `over`: of a holder that was found to be gone (`ReleasedLocks`).
    """
    before, turn, mine = _take(root, name, over)
    path = _path(root, name, turn)
    _HEART.beat_for(path, mine)
    try:
        yield
    finally:
        if os.getpid() == mine.pid:  # a child that was forked holds nothing
            _HEART.leave(path)
            with suppress(StoreError):  # what cannot be removed is taken over when this process is no more
                for lower, holder in sorted(_turns(root, name).items()):
                    if holder == ({**before, turn: mine}).get(lower):  # ours comes last: who looks meanwhile sees it
                        _remove(_path(root, name, lower))


@contextmanager
def awaited(root: Path, name: str) -> Iterator[None]:
    """The same, for what takes seconds: waits until nobody else holds it."""
    freed, over = ReleasedLocks(), ""
    with ExitStack() as mine:
        while True:
            try:
                mine.enter_context(hold(root, name, over))
                break
            except Locked as error:
                time.sleep(LOOK)
                over = freed.over(error.busy) or ""
        yield


class ReleasedLocks:
    """Looks at locks again and again, and says which are held no more."""

    def __init__(self, limit: float = LIMIT) -> None:
        self.limit = limit
        self.seen: dict[tuple[str, str], tuple[bytes, float]] = {}

    def over(self, busy: Busy) -> str | None:
        """What to call `held` with: "" where nobody holds it, the `over` of a holder that is gone; None where it is
        held."""
        root, now = Path(busy.root), time.monotonic()
        turns = _turns(root, busy.name)
        if not turns:
            return ""
        turn = max(turns)
        if turns[turn].gone:
            return _over(turn, turns[turn])
        said = b"%d %s" % (turn, _bytes(_path(root, busy.name, turn)))
        before, since = self.seen.get((busy.root, busy.name), (b"", now))
        if said != before:
            since = now
            self.seen[busy.root, busy.name] = said, now
        return _over(turn, turns[turn]) if now - since >= self.limit else None


def names(root: Path) -> list[str]:
    """What somebody is at who is not seen to be gone."""
    try:
        with os.scandir(_place(root)) as entries:
            files = [entry for entry in entries if entry.is_file(follow_symlinks=False)]
            return sorted({e.name.rpartition(".")[0] for e in files if not _holder(Path(e.path)).gone})
    except OSError:
        return []


def clear(root: Path) -> None:
    """Remove what holders left that are seen to be gone: nobody may ask for these names again. By taking each over, as
    everybody does: another may be doing that at the same moment."""
    with suppress(OSError, StoreError), os.scandir(_place(root)) as entries:
        left = {entry.name.rpartition(".")[0] for entry in entries if _holder(Path(entry.path)).gone}
        for name in left:
            with suppress(Locked), hold(root, name):
                pass


def there(root: Path, name: str) -> bool:
    """Whether its first turn can be seen: a name that was never looked for before is not answered from a cache."""
    return os.path.lexists(_place(root) / f"{name}.0")


@cache
def machine() -> str:
    """This machine since it was started, and the processes that are seen from here: a pid says nothing elsewhere."""
    words = [platform.node()]
    try:
        words += [Path("/proc/sys/kernel/random/boot_id").read_text().strip(), os.readlink("/proc/self/ns/pid")]
    except OSError:
        words.append(f"{uuid.getnode():x}")
    return " ".join(words)


def _started(pid: int) -> str:
    """When a process was started, in the system's own count; "" of one that is no more, UNSEEN of one that is there and
    hidden from us (another user's, or a system without /proc)."""
    try:
        state, *words = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
        return "" if state in b"ZX" else words[18].decode()
    except (OSError, ValueError, IndexError):
        pass
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return ""
    except OSError:
        pass
    return UNSEEN


def _take(root: Path, name: str, over: str) -> tuple[Mapping[int, _Holder], int, _Holder]:
    """(who held it before, turn, holder) of a new lock."""
    before = _turns(root, name)
    last = max(before, default=-1)
    if before and _over(last, before[last]) != over and not before[last].gone:
        raise Locked(_busy(root, name, last, before[last]))
    mine = _Holder(machine(), os.getpid(), _started(os.getpid()), secrets.token_hex(8))
    path = _path(root, name, last + 1)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _create(path, mine)
    except FileExistsError:
        raise Locked(_busy(root, name, last + 1, _holder(path))) from None
    except OSError as error:
        raise StoreError(f"cannot write to {root}: {error.strerror or error}") from error
    now = _turns(root, name)
    if max(now, default=-1) != last + 1 or any(before.get(turn) != now[turn] for turn in now if turn <= last):
        _remove(path)  # another looked when the name was free, and so did we: neither has it, both look again
        raise Locked(_busy(root, name, last + 1, mine))
    return before, last + 1, mine


def _turns(root: Path, name: str) -> Mapping[int, _Holder]:
    """{turn: its holder} of a name."""
    found = dict[int, _Holder]()
    try:
        with os.scandir(_place(root)) as entries:
            for entry in entries:
                stem, _, turn = entry.name.rpartition(".")
                if stem == name and turn.isascii() and turn.isdigit():
                    found[int(turn)] = _holder(Path(entry.path))
    except FileNotFoundError:
        pass
    except OSError as error:
        raise StoreError(f"cannot read {root}: {error.strerror or error}") from error
    return found


def _bytes(path: Path) -> bytes:
    try:
        return folder.read(path, 4096)
    except (OSError, StoreError):
        return b""


def _holder(path: Path) -> _Holder:
    return _parsed(_bytes(path))


def _parsed(data: bytes) -> _Holder:
    try:
        said = json.loads(data)
        return _Holder(str(said["machine"]), int(said["pid"]), str(said["started"]), str(said["token"]))
    except (ValueError, KeyError, TypeError, RecursionError):
        return UNKNOWN


def _text(holder: _Holder, beat: int) -> bytes:
    """As many bytes at every beat: whoever reads half of it sees a change and nothing else."""
    return json.dumps({**asdict(holder), "beat": f"{beat:012d}"}).encode()


def _create(path: Path, holder: _Holder) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
    try:
        os.pwrite(handle, _text(holder, 0), 0)
    except OSError:
        _remove(path)
        raise
    finally:
        os.close(handle)


def _beat(path: Path, holder: _Holder, count: int) -> None:
    """A sign of life, in place; none where another holds it by now, or where the file has another name: it is not ours
    to write to."""
    handle = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if os.fstat(handle).st_nlink <= 1 and _parsed(os.pread(handle, 4096, 0)) == holder:
            os.pwrite(handle, _text(holder, count), 0)
    finally:
        os.close(handle)


def _busy(root: Path, name: str, turn: int, holder: _Holder) -> Busy:
    return Busy(str(root), name, _over(turn, holder), holder.machine.partition(" ")[0], holder.pid)


def _over(turn: int, holder: _Holder) -> str:
    return f"{turn} {holder.token}"


def _path(root: Path, name: str, turn: int) -> Path:
    return _place(root) / f"{name}.{turn}"


def _remove(path: Path) -> None:
    with suppress(OSError):  # gone already
        os.unlink(path)


def _place(root: Path) -> Path:
    return folder.own(root, FOLDER)


class _Heartbeat:
    """One thread that shows that this process lives, as long as it holds anything."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.paths: dict[Path, _Holder] = {}
        self.process, self.count = 0, 0

    def beat_for(self, path: Path, holder: _Holder) -> None:
        with self.lock:
            self.paths[path] = holder
            if self.process != os.getpid():  # a child that was forked has no threads of ours
                with suppress(RuntimeError):  # no thread can be started now: at the next lock
                    threading.Thread(target=self._live, name="stabkit-locks", daemon=True).start()
                    self.process = os.getpid()

    def leave(self, path: Path) -> None:
        with self.lock:
            self.paths.pop(path, None)

    def _live(self) -> None:
        while True:
            time.sleep(BEAT)
            self.count += 1
            with self.lock:
                now = dict(self.paths)
            for path, holder in now.items():
                with suppress(Exception):  # taken over, or out of reach: the work goes on
                    _beat(path, holder, self.count)


_HEART = _Heartbeat()
