"""The search for a rate: what comes next, and what the rates tried say."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stabkit import api
from stabkit.cli.commands import train
from stabkit.results.tolerance import COARSE, FACTOR, OfSeed, Tolerance, exponents, next_rates, of_seed
from stabkit.results.words import scientific


def searched(passes: Callable[[float], float | None], guess: float | None = None) -> dict[float, float | None]:
    """Every rate that a search tries where this is the probability at each."""
    tried: dict[float, float | None] = {}
    while rates := next_rates(tried, guess):
        assert not set(rates) & set(tried), "no rate is tried twice"
        tried |= {rate: passes(rate) for rate in rates}
        assert len(tried) < 20
    return tried


@given(st.floats(1e-4, 0.05), st.sampled_from([None, *COARSE]))
def test_a_limit_is_found_to_a_factor_from_wherever_the_search_begins(limit: float, guess: float | None) -> None:
    found = of_seed(0, searched(lambda rate: float(rate <= limit), guess))
    if limit < COARSE[0]:
        assert found.passes is None and found.fails == COARSE[0]
    elif limit >= COARSE[-1]:
        assert found.passes == COARSE[-1] and found.fails is None
    else:
        assert found.passes is not None and found.fails is not None
        assert found.passes <= limit < found.fails and found.fails / found.passes <= FACTOR * 1.01
    assert found.monotone


def test_the_first_seed_tries_the_coarse_grid_and_the_others_begin_where_it_ended() -> None:
    assert next_rates({}, None) == COARSE and next_rates({}, 2e-3) == (2e-3,)
    assert len(searched(lambda rate: float(rate <= 1.9e-3), guess=2e-3)) <= 5


def test_half_decades_up_to_what_the_corpus_reaches() -> None:
    steps = [b / a for a, b in zip(COARSE, COARSE[1:], strict=False)]
    assert all(step == pytest.approx(math.sqrt(10), rel=0.02) for step in steps[:-1]) and steps[-1] < math.sqrt(10)


def test_a_rate_that_fails_below_one_that_passes_is_said() -> None:
    found = of_seed(0, {2e-4: 0.95, 6.3e-4: 0.5, 2e-3: 0.95, 6.3e-3: None})
    assert (found.passes, found.fails, found.monotone) == (2e-3, 6.3e-3, False)


def test_a_run_that_diverged_at_once_does_not_pass() -> None:
    found = of_seed(0, dict.fromkeys(COARSE, 0.0))
    assert found.passes is None and found.known


def test_where_the_forecast_ends_no_limit_is_said() -> None:
    """A rate out of range does not pass, and is no evidence that a method fails there."""
    some = of_seed(0, {2e-4: 0.95, 6.3e-4: 0.95, 2e-3: None})
    none = of_seed(0, dict.fromkeys(COARSE))
    for one in (some, none):
        found = Tolerance(method="a", label="A", encoder_layers=6, decoder_layers=6, hidden=512, seeds=(one,))
        assert not one.known and found.limit == "unknown" and found.text == "out of range" and found.rate is None
        assert found.to_json()["known"] is False and not exponents([found] * 3, "depth")


def tolerance(*seeds: tuple[float | None, float | None], depth: int = 6, hidden: int = 64) -> Tolerance:
    of = tuple(OfSeed(seed=i, passes=a, fails=b, known=True, monotone=True) for i, (a, b) in enumerate(seeds))
    return Tolerance(
        method="deepnorm", label="DeepNorm", encoder_layers=depth, decoder_layers=depth, hidden=hidden, seeds=of
    )


def test_over_seeds_the_middle_counts_and_what_has_no_limit_has_words_and_null() -> None:
    some = tolerance((1e-3, 1.2e-3), (4e-3, 5e-3), (2e-3, 2.4e-3))
    assert some.rate == 2e-3 and some.text == "2e-3" and some.to_json()["bracket"] == (2e-3, 2.4e-3)
    none, every = tolerance((None, 2e-4)), tolerance((3e-2, None), (2e-2, 2.5e-2), (3e-2, None))
    assert (
        none.rate is None
        and none.limit == "none"
        and none.text == "below 2e-4"
        and none.to_json()["bracket"] == (None, 2e-4)
    )
    assert (
        every.rate is None and every.limit == "all" and every.text == "above 3e-2" and every.to_json()["rate"] is None
    )


def test_the_exponent_is_that_of_the_rates_a_fit_a_seed() -> None:
    found = [tolerance(*((factor * n**-0.5, n**-0.5) for factor in (0.9, 0.8)), depth=n) for n in (6, 18, 50)]
    (fit,) = exponents(found, "depth")
    assert (fit.p, fit.low, fit.high) == pytest.approx((0.5, 0.5, 0.5)) and (fit.seeds, fit.of) == (2, 3)
    assert exponents(found[:2], "depth") == [] and exponents(found, "width") == []
    wide = [tolerance((1.0 / d, 2.0 / d), hidden=d) for d in (64, 128, 256)]
    assert exponents(wide, "width")[0].p == pytest.approx(1.0)
    edge = [tolerance((None, 2e-4), depth=n) for n in (6, 18, 50)]
    assert exponents(edge, "depth") == [], "a cell without a limit has no place on the line"


def test_rates_are_written_as_people_write_them() -> None:
    assert [scientific(rate) for rate in (2e-4, 6.3e-4, 0.0036, 0.03)] == ["2e-4", "6.3e-4", "3.6e-3", "3e-2"]


def test_what_follows_trains_at_the_rate_of_the_deepest_depth() -> None:
    found = [tolerance((4e-3, 5e-3)), tolerance((2e-3, 2.4e-3), depth=18), tolerance((None, 2e-4), depth=18)]
    params = {**api.COMMANDS["tolerance"], "models": "deepnorm", "depths": "6,18"}
    said = train.after_tolerance(params, found, text=True)
    assert said.startswith("stabkit sweep --models deepnorm --depths 18 ") and said.endswith("# trained, not forecast")
    assert {"--lr 2e-3", "--steps 250", "--warmup 0"} <= {" ".join(pair) for pair in pairwise(said.split())}
    assert train.after_tolerance(params, found[2:], text=True) == ""
