"""What sentences say of values: one value, one sentence."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, get_args

import pytest

from stabkit.report.transfer import why
from stabkit.results.matrix import VerdictCell
from stabkit.results.outcome import Word
from stabkit.wording.legend import tint
from stabkit.wording.links import _slow

VALLEY: dict[str, Any] = {
    "trials": [1], "highest": 3, "whole": True, "found": True, "rim": "", "alike": False,
    "seeds": (0, 1), "edge": False, "best": (2,),
}  # fmt: skip


@pytest.mark.parametrize("word", get_args(Word))
def test_a_cell_has_the_colour_of_its_worst_run(word: Any) -> None:
    assert tint(VerdictCell(outcomes=((word, 2), ("trains", 1)))) == word
    assert tint(VerdictCell()) == "missing"


def test_what_a_training_that_learns_nothing_is_told_depends_on_its_length_and_its_way() -> None:
    assert "16 of 29" in _slow(299, 0.0) and "9 of 20" in _slow(300, 0.0) and "1 of 11" in _slow(5000, 0.0)
    assert _slow(149, 0.0) == _slow(5000, 0.5) == "half of it counts as training"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"highest": None}, "no rate tried trains at 8"),
        ({"whole": False}, "nothing was tried at 8"),
        ({"found": None}, "at 8 some seed diverges at every rate"),
        ({"rim": "lowest"}, "at 8 the lowest loss is at the lowest rate tried"),
        ({"alike": True}, "all seeds have bit-identical losses"),
        ({"edge": True}, "at 8 the lowest loss is next to a rate that diverges"),
        ({"best": ()}, "at 8 the seeds differ too much"),
    ],
)
def test_a_search_without_a_verdict_says_at_which_size_and_why(change: dict[str, Any], said: str) -> None:
    first, last = SimpleNamespace(size=4, **VALLEY), SimpleNamespace(size=8, **{**VALLEY, **change})
    case: Any = SimpleNamespace(valleys=(first, last), lost=frozenset(), regret=None)
    assert why(case, 0).startswith(said)
    if "whole" in change:
        assert why(case, 3) == "the search at 8 is not finished"
    case.lost = frozenset({8, 6})
    assert why(case, 0) == "a run at 8 has no result"
