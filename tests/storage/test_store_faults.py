"""The store when every I/O call may fail, and any sequence of crashes, damage and resumes (P4)."""

from __future__ import annotations

import builtins
import errno
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from stabkit.errors import StoreError
from stabkit.running import runs
from stabkit.storage import folder, locks, store
from stabkit.storage.store import FILES, Store
from tests.conftest import examples, files_of, tiny

CALLS = ("open", "fsync", "rename", "replace", "chmod", "unlink", "scandir")


class Fault(OSError):
    """The injected error."""


@contextmanager
def failing_at(n: int, kind: type[BaseException] = Fault) -> Iterator[Callable[[], int]]:
    """The n-th I/O call of the store raises (ENOSPC); yields how many calls there were."""
    count = 0

    def wrap(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            nonlocal count
            count += 1
            if count == n:
                raise kind(errno.ENOSPC, "No space left on device")
            return function(*args, **kwargs)

        return call

    class FaultyOs:
        def __getattr__(self, name: str) -> Any:
            return wrap(getattr(os, name)) if name in CALLS else getattr(os, name)

    class FaultyTemp:
        mkdtemp = staticmethod(wrap(tempfile.mkdtemp))
        mkstemp = staticmethod(wrap(tempfile.mkstemp))

    def opened(*args: Any, **kwargs: Any) -> Any:
        file = wrap(builtins.open)(*args, **kwargs)
        if "w" in (args[1] if len(args) > 1 else ""):
            file = _Faulty(file, wrap)
        return file

    mkdir = Path.mkdir
    patch = pytest.MonkeyPatch()
    for module in (store, folder, locks):
        patch.setattr(module, "os", FaultyOs())
        patch.setattr(module, "tempfile", FaultyTemp, raising=False)
        patch.setattr(module, "open", opened, raising=False)
    patch.setattr(Path, "mkdir", wrap(mkdir))
    try:
        yield lambda: count
    finally:
        patch.undo()


class _Faulty:
    """A file whose writes count."""

    def __init__(self, file: Any, wrap: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
        self.file, self.write = file, wrap(file.write)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.file, name)

    def __enter__(self) -> _Faulty:
        return self

    def __exit__(self, *error: object) -> None:
        self.file.close()


def whole(tmp: Path) -> Store:
    made = Store(tmp)
    made.commit(tiny(seed=0), files_of(tiny(seed=0)))
    return made


NEW = tiny(seed=1)


def left(made: Store) -> str:
    """What a lock that failed left is of a process that lives: this one."""
    turns = locks._turns(made.runs, NEW.run_id)
    return locks._over(*max(turns.items())) if turns else ""


def locked(made: Store) -> None:
    with made.shelf.hold(NEW.run_id, over=left(made)):  # of one that failed
        made.commit(NEW, files_of(NEW))


OPERATIONS: dict[str, Callable[[Store], object]] = {
    "commit": lambda s: s.commit(NEW, files_of(NEW)),
    "checkpoint": lambda s: s.save_checkpoint(NEW, {"theta": np.zeros(10), "step": np.array(1)}),
    "attempt": lambda s: s.note_attempt(NEW.run_id, "killed"),
    "report": lambda s: folder.write_file(s.out / "reports" / "page.html", b"new"),
    "quarantine": lambda s: s.quarantine(tiny(seed=0).run_id),
    "lock": locked,
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_an_operation_that_fails_at_any_call_leaves_the_store_as_it_was_or_as_it_should_be(
    name: str, tmp_path: Path
) -> None:
    operation = OPERATIONS[name]
    for n in range(1, 200):
        made = whole(tmp_path / str(n))
        folder.write_file(made.out / "reports" / "page.html", b"old")
        old = made.load(tiny(seed=0).run_id).digest
        with failing_at(n) as calls:
            try:
                operation(made)
                failed = False
            except StoreError as error:
                failed = True
                assert "No space left" in str(error)
            reached = calls() >= n
        if name != "quarantine" or failed:
            assert made.load(tiny(seed=0).run_id).digest == old
        assert (made.out / "reports" / "page.html").read_bytes() in (b"old", b"new")
        if NEW.run_id in made:
            assert made.load(NEW.run_id)  # whole or absent
        if name != "quarantine" or NEW.run_id in made or failed:
            operation(made)  # what failed works when there is room again
        if name == "commit":
            assert made.load(NEW.run_id)
        if not reached:
            assert not failed and n > 3
            return
    raise AssertionError("the operation never came to its end")


class Stored(RuleBasedStateMachine):
    """Commits, crashes at any call, damage, deletion and resumes, in any order: a sound run is never lost or wrong."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.store = Store(Path(self.folder.name))
        self.specs = [tiny(seed=seed) for seed in range(4)]
        self.sound: set[str] = set()

    def teardown(self) -> None:
        self.folder.cleanup()

    @rule(i=st.integers(0, 3))
    def commit(self, i: int) -> None:
        spec = self.specs[i]
        self.store.commit(spec, files_of(spec))
        self.sound.add(spec.run_id)

    @rule(i=st.integers(0, 3), n=st.integers(1, 40))
    def crash(self, i: int, n: int) -> None:
        """The process dies (not an OSError: nothing is cleaned up that a dead process would not clean up)."""
        spec = self.specs[i]
        try:
            with failing_at(n, SystemExit):
                self.store.commit(spec, files_of(spec))
            self.sound.add(spec.run_id)
        except SystemExit:
            with suppress(StoreError):  # renamed into place before it died, or a damaged one that was there
                self.store.load(spec.run_id)
                self.sound.add(spec.run_id)

    @rule(
        i=st.integers(0, 3), name=st.sampled_from(FILES), how=st.sampled_from(["truncate", "flip", "delete", "empty"])
    )
    def damage(self, i: int, name: str, how: str) -> None:
        path = self.store.runs / self.specs[i].run_id / name
        if self.specs[i].run_id not in self.sound or not path.exists():
            return
        data = path.read_bytes()
        if how == "delete":
            path.unlink()
        else:
            path.write_bytes({"truncate": data[:-1], "empty": b"", "flip": bytes([data[0] ^ 255]) + data[1:]}[how])
        self.sound.discard(self.specs[i].run_id)

    @rule(i=st.integers(0, 3))
    def remove(self, i: int) -> None:
        if self.specs[i].run_id in self.store:
            self.store.remove(self.specs[i].run_id)
        self.sound.discard(self.specs[i].run_id)

    @rule(i=st.integers(0, 3), seconds=st.integers(-(10**9), 10**9))
    def touch(self, i: int, seconds: int) -> None:
        path = self.store.runs / self.specs[i].run_id
        if path.exists():
            os.utime(path, (10**9 + seconds, 10**9 + seconds))

    @rule(size=st.integers(1, 4))
    def resume(self, size: int) -> None:
        wanted = self.specs[:size]
        planned = runs.planned(wanted, self.store)
        assert set(planned.ready) == {s.run_id for s in wanted} & self.sound
        for spec in planned.missing:
            with self.store.shelf.hold(spec.run_id):
                self.store.commit(spec, files_of(spec))
            assert not list((self.store.runs / ".locks").iterdir())
            assert not list((self.store.runs / ".partial").glob(f"{spec.run_id}.*"))
            self.sound.add(spec.run_id)

    @invariant()
    def every_sound_run_is_there_and_says_what_it_said(self) -> None:
        for spec in self.specs:
            if spec.run_id in self.sound:
                loaded = self.store.load(spec.run_id)
                assert loaded.spec == spec and loaded.outcome.word == "early"
            elif spec.run_id in self.store:
                with pytest.raises(StoreError):
                    self.store.load(spec.run_id)


TestStored = pytest.mark.slow(Stored.TestCase)
TestStored.settings = examples(60, stateful_step_count=25, suppress_health_check=[HealthCheck.too_slow])
