"""The ladders of rates: halving, and how a rate is written."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from studies.rungs import next_rung, written

RUNGS = tuple(2.5e-4 * 2**k for k in range(12))


def searched(holds: int) -> dict[float, bool]:
    """What is tried of a cell whose first `holds` rungs train."""
    tried: dict[float, bool] = {}
    while (rate := next_rung(RUNGS, tried)) is not None:
        assert rate not in tried
        tried[rate] = RUNGS.index(rate) < holds
    return tried


def limit(tried: dict[float, bool]) -> tuple[float | None, float | None]:
    """(the highest rung that trains, the lowest above it that does not)."""
    passes = max((rate for rate, well in tried.items() if well), default=None)
    fails = min((rate for rate, well in tried.items() if not well and (passes is None or rate > passes)), default=None)
    return passes, fails


@given(st.integers(0, len(RUNGS)))
def test_halving_finds_the_highest_rung_that_trains_in_four_runs(holds: int) -> None:
    tried = searched(holds)
    assert len(tried) <= 4
    assert limit(tried) == (RUNGS[holds - 1] if holds else None, RUNGS[holds] if holds < len(RUNGS) else None)


def test_a_search_goes_on_until_both_sides_are_known() -> None:
    assert next_rung(RUNGS, {}) is not None and next_rung(RUNGS, {RUNGS[5]: True}) is not None
    assert next_rung(RUNGS, {RUNGS[5]: True, RUNGS[8]: False}) in RUNGS[6:8]
    assert next_rung(RUNGS, {RUNGS[5]: True, RUNGS[6]: False}) is None


def test_a_rung_that_fails_below_one_that_trains_does_not_end_the_search() -> None:
    assert next_rung(RUNGS, {RUNGS[2]: False, RUNGS[5]: True, RUNGS[6]: False}) is None
    assert next_rung(RUNGS, {RUNGS[2]: False, RUNGS[5]: True}) in RUNGS[6:]


def test_rates_are_written_as_people_write_them() -> None:
    assert [written(rate) for rate in (2.5e-4, 1e-3, 0.016, 0.064, 0.256)] == [
        "2.5e-4",
        "1e-3",
        "1.6e-2",
        "6.4e-2",
        "0.256",
    ]
