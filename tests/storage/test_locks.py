"""Who is at work on what: one holder at a time, whoever dies, whatever others have seen before."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from stabkit.storage import locks
from stabkit.storage.locks import Locked, ReleasedLocks, hold

DYING = """
import os, sys
from pathlib import Path
from stabkit.storage import locks
kept = locks.hold(Path(sys.argv[1]), "run")
kept.__enter__()
print("held", flush=True)
if sys.argv[2] == "die":
    os._exit(9)
sys.stdin.read()
"""
LOOP = """
import os, random, sys, time
from pathlib import Path
from stabkit.storage import locks
root, log = Path(sys.argv[1]), sys.argv[2]
mine = random.Random(os.getpid())
freed, over, until = locks.ReleasedLocks(), "", time.monotonic() + float(sys.argv[3])
while time.monotonic() < until:
    try:
        with locks.hold(root, "run", over):
            with open(log, "ab", buffering=0) as file:
                file.write(b"+%d " % os.getpid())
                time.sleep(mine.random() / 200)
                file.write(b"-%d " % os.getpid())
        over = ""
    except locks.Locked as error:
        over = freed.over(error.busy) or ""
    time.sleep(mine.random() / 500)
"""


def elsewhere(root: Path, turn: int = 0, beat: int = 0) -> Path:
    """A lock of a process that cannot be seen from here."""
    path = root / ".locks" / f"run.{turn}"
    path.parent.mkdir(parents=True, exist_ok=True)
    holder = {"machine": "node7 another boot", "pid": os.getpid(), "started": "1", "token": "t"}
    path.write_text(json.dumps({**holder, "beat": f"{beat:012d}"}))
    return path


def test_a_lock_is_one_holders_and_free_afterwards(tmp_path: Path) -> None:
    with hold(tmp_path, "run"):
        with pytest.raises(Locked) as found, hold(tmp_path, "run"):
            pass
        assert found.value.busy.pid == os.getpid() and ReleasedLocks().over(found.value.busy) is None
        with hold(tmp_path, "run.2"), hold(tmp_path, "another"):
            pass
    assert not list((tmp_path / ".locks").iterdir()) and ReleasedLocks().over(found.value.busy) == ""
    with pytest.raises(ZeroDivisionError), hold(tmp_path, "run"):
        raise ZeroDivisionError
    with hold(tmp_path, "run"):
        pass


@pytest.mark.parametrize("way", ["die", "live"])
def test_a_holder_of_this_machine_is_gone_when_its_process_is(way: str, tmp_path: Path) -> None:
    holder = subprocess.Popen(
        [sys.executable, "-c", DYING, tmp_path, way], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert holder.stdout is not None and holder.stdout.readline() == b"held\n"
    if way == "die":
        holder.wait()
        with hold(tmp_path, "run"):  # over what it left
            assert sorted(path.name for path in (tmp_path / ".locks").iterdir()) == ["run.0", "run.1"]
        assert not list((tmp_path / ".locks").iterdir())
    else:
        with pytest.raises(Locked), hold(tmp_path, "run"):
            pass
        holder.kill()  # and not waited for: what is left of it is a zombie
        deadline = time.monotonic() + 5
        while locks._started(holder.pid) and time.monotonic() < deadline:
            time.sleep(0.01)
        with hold(tmp_path, "run"):
            pass
    holder.communicate()


def test_a_holder_elsewhere_is_gone_when_it_shows_no_sign_of_life_for_long(tmp_path: Path) -> None:
    elsewhere(tmp_path)
    with pytest.raises(Locked) as found, hold(tmp_path, "run"):
        pass
    assert found.value.busy.machine == "node7"
    freed = ReleasedLocks(limit=0.2)
    for beat in range(1, 8):  # it lives
        assert freed.over(found.value.busy) is None
        elsewhere(tmp_path, beat=beat)
        time.sleep(0.05)
    assert freed.over(found.value.busy) is None
    time.sleep(0.25)
    assert freed.over(found.value.busy) == "0 t"
    with pytest.raises(Locked), hold(tmp_path, "run"):
        pass
    with hold(tmp_path, "run", over="0 t"), pytest.raises(Locked), hold(tmp_path, "run", over="0 t"):
        pass
    assert not list((tmp_path / ".locks").iterdir())


def test_a_holder_shows_that_it_lives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "BEAT", 0.02)
    monkeypatch.setattr(locks, "_HEART", locks._Heartbeat())
    with hold(tmp_path, "run"):
        path = tmp_path / ".locks" / "run.0"
        first, until = path.read_bytes(), time.monotonic() + 5
        while path.read_bytes() == first and time.monotonic() < until:
            time.sleep(0.01)
        assert len(path.read_bytes()) == len(first) and path.read_bytes() != first


def test_of_two_that_saw_a_name_at_different_times_neither_has_it_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """We saw a holder that is gone; meanwhile its work was done, the name was free, and another has locked it."""
    stale = elsewhere(tmp_path)
    before = dict(locks._turns(tmp_path, "run"))
    stale.unlink()
    turns = locks._turns
    with hold(tmp_path, "run"):
        views = [before]
        monkeypatch.setattr(locks, "_turns", lambda root, name: views.pop() if views else turns(root, name))
        with pytest.raises(Locked), hold(tmp_path, "run", over="0 t"):
            pass
        assert [path.name for path in (tmp_path / ".locks").iterdir()] == ["run.0"]


def test_what_stands_in_a_locks_place_and_is_none_is_taken_over_in_time(tmp_path: Path) -> None:
    path = elsewhere(tmp_path)
    for text in ("", "{}", "[" * 4000, "null", "x" * 10_000):
        path.write_text(text)
        with pytest.raises(Locked) as found, hold(tmp_path, "run"):
            pass
        freed = ReleasedLocks(limit=0.0)
        assert freed.over(found.value.busy) == "0 "
        with hold(tmp_path, "run", over="0 "):
            pass
        path.parent.mkdir(exist_ok=True)


def test_a_holder_that_wakes_leaves_the_locks_of_others_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was taken for gone, another did its work, a third holds the name; it lives on, and lets go."""
    monkeypatch.setattr(locks, "BEAT", 0.02)
    monkeypatch.setattr(locks, "_HEART", locks._Heartbeat())
    sleeper = ExitStack()
    sleeper.enter_context(hold(tmp_path, "run"))
    path = tmp_path / ".locks" / "run.0"
    holder = locks._holder(path)
    with hold(tmp_path, "run", over=f"0 {holder.token}"):
        pass
    assert not path.exists()
    third = elsewhere(tmp_path)
    text = third.read_bytes()
    time.sleep(0.2)
    assert third.read_bytes() == text
    sleeper.close()
    assert third.read_bytes() == text


def test_what_was_found_gone_once_says_nothing_of_another_holder(tmp_path: Path) -> None:
    elsewhere(tmp_path)
    with hold(tmp_path, "run", over="0 t"):
        pass
    with hold(tmp_path, "run"), pytest.raises(Locked), hold(tmp_path, "run", over="0 t"):
        pass


def test_a_process_that_cannot_be_seen_is_not_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with hold(tmp_path, "run"):
        monkeypatch.setattr(Path, "read_bytes", lambda self: (_ for _ in ()).throw(PermissionError()))
        with pytest.raises(Locked), hold(tmp_path, "run"):
            pass


def test_locks_of_processes_that_are_gone_are_cleared(tmp_path: Path) -> None:
    died = subprocess.run([sys.executable, "-c", DYING, tmp_path, "die"], stdout=subprocess.PIPE, check=False)
    assert died.returncode == 9 and locks.there(tmp_path, "run")
    with hold(tmp_path, "another"):
        locks.clear(tmp_path)
        assert locks.names(tmp_path) == ["another"] and not locks.there(tmp_path, "run")


def test_what_takes_seconds_is_waited_for(tmp_path: Path) -> None:
    elsewhere(tmp_path)
    with ExitStack() as patched:
        patch = patched.enter_context(pytest.MonkeyPatch.context())
        patch.setattr(locks, "LOOK", 0.01)
        patch.setattr(locks, "ReleasedLocks", lambda: ReleasedLocks(limit=0.05))
        with locks.awaited(tmp_path, "run"):
            assert locks.there(tmp_path, "run")
    assert not locks.there(tmp_path, "run")


@pytest.mark.slow
def test_under_many_processes_of_which_some_are_killed_one_holds_it_at_a_time(tmp_path: Path) -> None:
    log, mine = tmp_path / "log", random.Random(1)
    log.touch()

    def start() -> subprocess.Popen[bytes]:
        return subprocess.Popen([sys.executable, "-c", LOOP, tmp_path, log, "3.5"])

    loops = [start() for _ in range(6)]
    killed: set[int] = set()
    until = time.monotonic() + 2.5
    while time.monotonic() < until:
        time.sleep(0.25)
        victim = mine.randrange(len(loops))
        loops[victim].send_signal(signal.SIGKILL)
        killed.add(loops[victim].pid)
        loops[victim].wait()
        loops[victim] = start()
    assert [loop.wait(30) for loop in loops] == [0] * 6
    holder, turns = "", 0
    for word in log.read_text().split():
        if word[0] == "+":
            assert not holder or int(holder) in killed, f"{word} began while {holder} held it"
            holder, turns = word[1:], turns + 1
        else:
            assert word[1:] == holder
            holder = ""
    assert turns > 50
