"""What is said of trainings that begin late is what the committed rows count."""

from __future__ import annotations

from pathlib import Path

import pytest

from stabkit.results.own.outcome import ENDS, ENOUGH, LEARNT, NOTHING, SLOW
from studies.own import slow
from studies.own.slow import AFTER, HORIZON, SlowRow

DOCS = Path(__file__).parents[2] / "docs"
ROWS = slow.read()


def test_the_counts_of_the_package_are_those_of_the_rows() -> None:
    assert SLOW == tuple(slow.counted(ROWS, one.updates) for one in SLOW)
    assert SLOW[-1].updates == ENOUGH and 2 * ENOUGH == HORIZON


def test_the_docs_say_them() -> None:
    text = " ".join((DOCS / "own_model.md").read_text().split())
    for one in SLOW:
        assert f"{one.late} of {one.n} after {one.updates}" in text


def test_each_training_has_one_row_and_ended_where_it_had_learnt() -> None:
    assert len({row.key for row in ROWS}) == len(ROWS) and all(len(row.ways) == len(AFTER) for row in ROWS)
    for row in ROWS:
        ended = [way for way in row.ways if way >= ENDS]
        assert len(set(ended)) <= 1, "what it ended with stands for all that would have followed"


def test_rows_written_and_read_again_are_the_same(tmp_path: Path) -> None:
    slow.write(ROWS, tmp_path / "slow.csv")
    assert slow.read(tmp_path / "slow.csv") == sorted(ROWS, key=lambda row: row.key)
    assert slow.read(tmp_path / "none.csv") == []


@pytest.mark.parametrize(("ways", "late", "n"), [((0.0, 0.0), 0, 1), ((0.0, 0.6), 1, 1), ((0.3, 0.6), 0, 0)])
def test_late_is_what_had_learnt_nothing_and_has_in_the_end(ways, late, n) -> None:
    first, last = ways
    row = SlowRow("m", 2, 1e-3, 0, (first, *([first] * (len(AFTER) - 2)), last))
    assert slow.counted([row], AFTER[0])[1:] == (late, n) and NOTHING < 0.3 < LEARNT
