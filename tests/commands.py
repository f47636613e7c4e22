"""The command line in a test: in this process, where torch is loaded already, or as a process of its own."""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

TINY = "--depths 2 --steps 2 --warmup 4000 --hidden 16 --ffn 24 --vocab 200 --max-tokens 128".split()
TRAIN = ("SWEEP", "ABLATE", "LANDSCAPE", "PAPER")
INLINE = {f"STABKIT_{name}_EXECUTOR": "inline" for name in TRAIN}
"""Where nothing else is asked for, runs train in the test's process: to start a worker takes longer than they do."""


@dataclass(frozen=True, slots=True)
class Done:
    """What a command left behind, as `subprocess.CompletedProcess` says it."""

    returncode: int
    stdout: str
    stderr: str


def stabkit(*args: object, cwd: Path | None = None, env: Mapping[str, str] | None = None) -> Done:
    """`stabkit ARGS…` in this process, through the same entry; directory, environment and modules are as before
    when it has ended."""
    from stabkit.cli import entry

    out, err = io.StringIO(), io.StringIO()
    with (
        pytest.MonkeyPatch.context() as patch,
        _modules(),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        patch.setattr(sys, "argv", ["stabkit", *map(str, args)])
        for name, value in {**INLINE, **(env or {})}.items():
            patch.setenv(name, value)
        if cwd is not None:
            patch.chdir(cwd)
        code: Any = 0
        try:
            entry.main()
        except SystemExit as end:
            code = end.code or 0
    return Done(int(code), out.getvalue(), err.getvalue())


@contextlib.contextmanager
def _modules() -> Iterator[None]:
    """Forget what was imported from outside of Python's own places: the next test has another file of that name."""
    before, path = set(sys.modules), list(sys.path)
    importlib.invalidate_caches()
    try:
        yield
    finally:
        outside = [name for name in set(sys.modules) - before if _from(sys.modules[name], set(sys.path) - set(path))]
        for name in outside:
            del sys.modules[name]
        sys.path[:] = path


def _from(module: object, folders: set[str]) -> bool:
    file = getattr(module, "__file__", None)
    return file is not None and os.path.dirname(file) in folders


UNDRAWN = """
import sys
from stabkit.report import cards
cards.drawing = lambda figure, frame, name: ('<svg viewBox="0 0 1 1"></svg>', [], "")
from stabkit.cli.entry import main
main()
"""
"""`python -c UNDRAWN ARGS…`: a process of its own whose pages have no pictures (as the fixture `undrawn`)."""


def process(
    *args: object, cwd: Path | None = None, env: Mapping[str, str] | None = None, drawn: bool = False
) -> subprocess.CompletedProcess[str]:
    """`python -m stabkit ARGS…`: what only a process of its own shows: workers, signals, exit codes, imports. Unless
    `drawn`, its page has no pictures."""
    return subprocess.run(
        [sys.executable, *(("-m", "stabkit") if drawn else ("-c", UNDRAWN)), *map(str, args)],
        capture_output=True,
        text=True,
        cwd=cwd,
        env={**os.environ, **(env or {})},
    )


def children(pid: int | None = None) -> list[int]:
    """The worker processes of a process, of this one by default."""
    parent = pid or os.getpid()
    here = Path(f"/proc/{parent}/task/{parent}/children")
    if not here.exists():
        pytest.skip("needs Linux's /proc")
    pids = [int(word) for word in here.read_text().split()]
    return [pid for pid in pids if b"executors" in Path(f"/proc/{pid}/cmdline").read_bytes()]


def ended(pid: int) -> bool:
    """Whether a process is no more, or only waits to be counted."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def killed(command: Sequence[object], out: Path, after: int) -> bool:
    """Start `stabkit COMMAND` as a process, kill -9 it when so many checkpoints were written, and wait for its workers
    to follow it. Whether it was killed: it may have ended by then."""
    words = [sys.executable, "-c", UNDRAWN, *map(str, command), "--executor", "processes", "--out", str(out)]
    written: dict[Path, int] = {}
    count = 0

    def enough() -> bool:
        nonlocal count
        for file in (out / "runs" / ".partial").glob("*/checkpoint.npz"):
            with contextlib.suppress(FileNotFoundError):
                now = file.stat().st_mtime_ns
                count += now != written.get(file)
                written[file] = now
        return bool(workers()) and count >= after or process.poll() is not None

    def workers() -> list[int]:
        return children(process.pid) if process.poll() is None else []

    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        wait_for(enough)
        left = workers()
        process.kill()
    wait_for(lambda: all(map(ended, left)))
    return process.returncode == -signal.SIGKILL


def wait_for(condition: Callable[[], object], seconds: float = 60) -> None:
    """Until it holds; fails when it does not for so long."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds:g} s"
        time.sleep(0.01)


def strict(text: str) -> Any:
    """JSON without NaN and Infinity."""

    def refuse(name: str) -> None:
        raise ValueError(name)

    return json.loads(text, parse_constant=refuse)


def typed(key: str, options: Mapping[str, str]) -> str:
    """A method as a user types it: `admin:omega=closed`."""
    return ":".join([key, *(f"{name}={value}" for name, value in options.items())])
