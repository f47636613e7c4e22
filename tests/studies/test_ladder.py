"""The highest rate that trains, found by halving."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from studies.ladder import limit, next_rung, written

RUNGS = tuple(2.5e-4 * 2**k for k in range(12))


def searched(holds: int) -> dict[float, bool]:
    """What is tried of a cell whose first `holds` rungs train."""
    tried: dict[float, bool] = {}
    while (rate := next_rung(RUNGS, tried)) is not None:
        assert rate not in tried
        tried[rate] = RUNGS.index(rate) < holds
    return tried


@given(st.integers(0, len(RUNGS)))
def test_halving_finds_the_highest_rung_that_trains_in_four_runs(holds: int) -> None:
    tried = searched(holds)
    found = limit(RUNGS, tried)
    assert len(tried) <= 4 and found.known
    assert found.passes == (RUNGS[holds - 1] if holds else None)
    assert found.fails == (RUNGS[holds] if holds < len(RUNGS) else None)


def test_on_the_way_a_limit_is_not_known() -> None:
    assert not limit(RUNGS, {}).known and not limit(RUNGS, {RUNGS[5]: True}).known
    assert limit(RUNGS, {RUNGS[5]: True, RUNGS[6]: False}).known
    between = limit(RUNGS, {RUNGS[5]: True, RUNGS[8]: False})
    assert (between.passes, between.fails, between.known) == (RUNGS[5], RUNGS[8], False)


def test_a_rung_that_fails_below_one_that_trains_does_not_end_the_search() -> None:
    found = limit(RUNGS, {RUNGS[2]: False, RUNGS[5]: True, RUNGS[6]: False})
    assert (found.passes, found.fails, found.known) == (RUNGS[5], RUNGS[6], True)


def test_rates_are_written_as_people_write_them() -> None:
    assert [written(rate) for rate in (2.5e-4, 1e-3, 0.016, 0.064, 0.256)] == [
        "2.5e-4",
        "1e-3",
        "1.6e-2",
        "6.4e-2",
        "0.256",
    ]
