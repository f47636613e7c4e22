"""The command line in a test: in this process, where torch is loaded already, or as a process of its own."""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

TINY = ["--depths", "2", "--steps", "2", "--hidden", "16", "--ffn", "24", "--vocab", "200", "--max-tokens", "128"]
TRAIN = ("SWEEP", "ABLATE", "SLOPE", "LANDSCAPE", "PAPER")
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


def process(
    *args: object, cwd: Path | None = None, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """`python -m stabkit ARGS…`: what only a process of its own shows: workers, signals, exit codes, imports."""
    return subprocess.run(
        [sys.executable, "-m", "stabkit", *map(str, args)],
        capture_output=True,
        text=True,
        cwd=cwd,
        env={**os.environ, **(env or {})},
    )


def strict(text: str) -> Any:
    """JSON without NaN and Infinity."""

    def refuse(name: str) -> None:
        raise ValueError(name)

    return json.loads(text, parse_constant=refuse)
