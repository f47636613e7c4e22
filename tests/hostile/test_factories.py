"""Ill-mannered factories in worker processes: each ends in a cell or in one line, and changes no other."""

from __future__ import annotations

import re
import sys
from functools import cache
from pathlib import Path

import pytest

import stabkit
from tests.conftest import FULL
from tests.hostile.factories import LINE, RESULT, ROWS, SAME, Row
from tests.hostile.probing import DEPTHS, Probed, probed

pytestmark = [pytest.mark.hostile, pytest.mark.skipif(sys.platform != "linux", reason="needs Linux's /proc")]
PATIENCE = 8.0
"""Seconds for a row that hangs."""
ORDERLY = [row for row in ROWS if row.expected == SAME]
OTHERS = [row for row in ROWS if row.expected != SAME]
OURS = {path.name for path in Path(stabkit.__file__).parent.joinpath("own").rglob("*.py")}
AT = {1: DEPTHS, 2: DEPTHS if FULL else (4,), 4: DEPTHS if FULL else (6,)}
"""{workers: depths}: what a depth leaves behind is seen where it did not run before."""


@cache
def others() -> Probed:
    return probed([(row, 2) for row in OTHERS if not row.hangs], 2)


@cache
def hanging() -> Probed:
    return probed([(row, 2) for row in OTHERS if row.hangs], 2, PATIENCE)


@cache
def alike(workers: int) -> Probed:
    """Those that keep state, in another order with each number of workers."""
    cells = [(row, depth) for row in ORDERLY for depth in AT[workers]]
    orders = {1: cells, 2: cells[::-1], 4: sorted(cells, key=lambda cell: (-cell[1], cell[0].name))}
    return probed(orders[workers], workers)


@pytest.mark.parametrize("row", OTHERS, ids=lambda row: row.name)
def test_a_factory_ends_in_a_cell_or_in_one_line(row: Row) -> None:
    outcome = (hanging() if row.hangs else others()).outcomes[row.name, 2]
    if row.expected == RESULT:
        assert outcome.cell, outcome.line
        return
    line = outcome.line
    assert row.expected == LINE and line, outcome.cell
    assert line.isprintable() and len(line) <= 500 and "Traceback" not in line
    assert not row.place or f"({row.name}.py:" in line, line
    assert not OURS & set(re.findall(r"\((\w+\.py):\d+\)$", line)), f"a place of ours, not the user's: {line}"


@pytest.mark.parametrize("row", ORDERLY, ids=lambda row: row.name)
def test_what_a_factory_leaves_behind_changes_no_cell(row: Row) -> None:
    """Whatever ran before, with 1, 2 and 4 workers."""
    alone = {depth: alike(1).outcomes[row.name, depth] for depth in DEPTHS}
    for workers in (2, 4):
        assert {depth: alike(workers).outcomes[row.name, depth] for depth in AT[workers]} == {
            depth: alone[depth] for depth in AT[workers]
        }
    assert any(outcome.cell for outcome in alone.values()), alone


@pytest.mark.parametrize("run", [others, hanging, lambda: alike(1), lambda: alike(2), lambda: alike(4)])
def test_no_process_outlives_its_command_and_no_traceback_is_shown(run) -> None:
    assert run().left == []
    assert "Traceback" not in run().stderr
