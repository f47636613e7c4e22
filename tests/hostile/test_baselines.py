"""Damaged and odd `--baseline` files: each ends with 2 and one line before anything is probed, or is harmless."""

from __future__ import annotations

import math
import os
import resource
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from stabkit.cli.commands import gate
from stabkit.errors import UsageError
from stabkit.results.forecast.logistic import WORDS
from stabkit.results.own import baseline
from stabkit.results.own.baseline import Baseline
from tests.hostile.baselines import BAD_NOW, DEPTHS, FACTORY, GOOD, ROWS, SEEDS, Row
from tests.hostile.mutants import generated

pytestmark = [pytest.mark.hostile]
ROOT = Path(__file__).parents[2]
ASKED = {"factory": FACTORY, "depths": ",".join(map(str, DEPTHS)), "seeds": ",".join(map(str, SEEDS))}
SECONDS, MEGABYTES = 3.0, 400
"""What a file may cost, of processor time and of memory."""


@pytest.fixture(autouse=True)
def _there(monkeypatch: pytest.MonkeyPatch) -> None:
    """A module of the factory's name: what is refused is refused for its baseline."""
    monkeypatch.setitem(sys.modules, FACTORY.partition(":")[0], ModuleType("there"))


def file(row: Row, folder: Path) -> Path:
    if row.path:
        return row.path(folder)
    (folder / "depth.json").write_bytes(row.text(GOOD) if row.text else b"")
    return folder / "depth.json"


def read(path: Path) -> Baseline | None:
    """None where it is refused, which is in one line; quickly, and in little memory."""
    begin, before = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    try:
        return gate.read({"baseline": str(path)}, ASKED)
    except UsageError as error:
        assert str(error).isprintable() and len(str(error)) < 500 + len(str(path)), "one line"
        return None
    finally:
        assert time.process_time() - begin < SECONDS
        assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024 < MEGABYTES


@pytest.mark.parametrize("row", [row for row in ROWS if row.text], ids=lambda row: row.name)
def test_a_damaged_text_is_refused_in_one_line_and_a_harmless_one_is_read(row: Row, tmp_path: Path) -> None:
    found = read(file(row, tmp_path))
    assert (found is not None) == row.harmless, found
    if found is not None:
        assert worse(found)


def worse(found: Baseline) -> list[str]:
    """What a probe that fails is, compared with it."""
    return baseline.worse(found, replace(found, rates=(replace(BAD_NOW, lr=None),)))


@pytest.mark.parametrize("row", [row for row in ROWS if row.path], ids=lambda row: row.name)
def test_an_odd_path_ends_the_command_with_2_and_one_line(row: Row, tmp_path: Path) -> None:
    """In a process of its own, with four gigabytes and half a minute."""
    code, stderr = command(file(row, tmp_path), tmp_path)
    lines = stderr.splitlines()
    assert code == 2 and len(lines) == 1 and "Traceback" not in stderr, stderr[-500:]
    assert lines[0].isprintable() and ("no_such_module" in stderr if row.harmless else "baseline" in stderr)


def command(path: Path, cwd: Path) -> tuple[int, str]:
    words = [sys.executable, "-m", "stabkit", "probe", FACTORY, "--depths", ASKED["depths"], "--seeds", "0", "--quiet"]
    done = subprocess.run(
        [*words, "--out", "probed", "--baseline", os.fsencode(path)],
        capture_output=True,
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30)),
        timeout=30,
    )
    return done.returncode, done.stderr.decode(errors="surrogateescape")


@pytest.mark.parametrize("name", ["deep lists", "a probability of NaN", "a probability of 999999999", "1e999 steps"])
def test_the_command_ends_with_2_and_one_line(name: str, tmp_path: Path) -> None:
    code, stderr = command(file(next(row for row in ROWS if row.name == name), tmp_path), tmp_path)
    assert code == 2 and len(stderr.splitlines()) == 1 and "baseline" in stderr, stderr[-500:]


@pytest.mark.parametrize("seed", range(4))
def test_a_mutant_is_refused_in_one_line_or_its_numbers_are_possible(seed: int, tmp_path: Path) -> None:
    path, wrong = tmp_path / "depth.json", []
    for text in generated(500, seed):
        path.write_bytes(text)
        try:
            if (found := read(path)) is not None and not (possible(found) and worse(found)):
                wrong.append(("is read", text))
        except Exception as error:
            wrong.append((repr(error)[:80], text))
    assert wrong == [], f"{len(wrong)} of 500"


def possible(found: Baseline) -> bool:
    """Whether every number is one that a probe may have written."""
    return all(
        rate.verdict in WORDS
        and within(rate.apart, 1.0)
        and (rate.probability is None or within(rate.probability, 1.0))
        and within(rate.rate)
        and all(within(level) for level in rate.levels.values())
        and (rate.lr is None or within(rate.lr))
        for rate in found.rates
    )


def within(number: Any, most: float = sys.float_info.max) -> bool:
    with suppress(TypeError):
        return type(number) in (int, float) and 0 <= number <= most and not math.isnan(number)
    return False
