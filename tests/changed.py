"""Tests of what stands beside the package: run where something that they rest on changed, or with `--all`."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
ALWAYS = ("tests/conftest.py", "tests/commands.py", "tests/changed.py", "pyproject.toml", "constraints.txt", "dev.py")
"""What every test rests on."""
RESTS = {
    "tests/studies": (
        "studies/",
        "docs/",
        "tests/studies/",
        "tests/figures/fake_runs.py",
        *(f"stabkit/{room}" for room in "results/ methods/ options/ claims/ figures/ paper/ own/ spec.py".split()),
        *(f"stabkit/{room}" for room in "api.py words.py streams.py training/".split()),
    ),
    "tests/test_notebook.py": (
        "docs/notebooks/",
        "tests/test_notebook.py",
        *(f"stabkit/{room}" for room in "own/ probes/ results/ methods/ report/ words.py".split()),
    ),
    "tests/test_package.py": (
        "hatch_build.py",
        "README.md",
        "LICENSE",
        "tests/test_package.py",
        *(f"stabkit/{room}" for room in "kernels/ cli/ version.py __init__.py __main__.py".split()),
    ),
}
"""Tests → the paths on which they rest, beside what every test rests on."""


@cache
def left_out() -> tuple[str, tuple[str, ...]]:
    """The commit of `origin/main` that this work began from, and the tests that rest on nothing changed since; "" and
    none where that is not known or nothing has changed, as where CI runs `origin/main` itself: then all are run."""
    base = _git("merge-base", "origin/main", "HEAD")
    changed = _git("diff", "--name-only", base) + "\n" + _git("ls-files", "--others", "--exclude-standard")
    if not base or not changed.strip():
        return "", ()
    return base, of(changed.split("\n"))


def of(files: list[str]) -> tuple[str, ...]:
    """The tests that rest on none of these files."""
    return tuple(tests for tests, paths in RESTS.items() if not any(f.startswith((*ALWAYS, *paths)) for f in files))


def _git(*words: str) -> str:
    """What git prints, "" where it cannot."""
    try:
        done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True)
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
