"""What sentences say of values: one value, one sentence."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from stabkit.results.matrix import VerdictCell
from stabkit.results.outcome import Word
from stabkit.wording.legend import tint
from stabkit.wording.links import _slow


@pytest.mark.parametrize("word", get_args(Word))
def test_a_cell_has_the_colour_of_its_worst_run(word: Any) -> None:
    assert tint(VerdictCell(outcomes=((word, 2), ("trains", 1)))) == word
    assert tint(VerdictCell()) == "missing"


def test_what_a_training_that_learns_nothing_is_told_depends_on_its_length_and_its_way() -> None:
    assert "16 of 29" in _slow(299, 0.0) and "9 of 20" in _slow(300, 0.0) and "1 of 11" in _slow(5000, 0.0)
    assert _slow(149, 0.0) == _slow(5000, 0.5) == "half of it counts as training"
