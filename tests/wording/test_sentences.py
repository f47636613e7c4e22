"""What sentences say of values: one value, one sentence."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from stabkit.results.matrix import VerdictCell
from stabkit.results.outcome import Word
from stabkit.wording.legend import tint


@pytest.mark.parametrize("word", get_args(Word))
def test_a_cell_has_the_colour_of_its_worst_run(word: Any) -> None:
    assert tint(VerdictCell(outcomes=((word, 2), ("trains", 1)))) == word
    assert tint(VerdictCell()) == "missing"
