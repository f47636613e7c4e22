"""The search for the best rate at every size, its interval, its drift, what keeping a rate loses: on made valleys."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stabkit.results.intervals import Interval
from stabkit.results.line import _means
from stabkit.results.transfer import Transfer
from stabkit.results.valley import Trial, Valley, rungs

RUNGS = rungs(1e-4, 1e-1)
SEEDS = (0, 1, 2)
Loss = Callable[[int, float, int], float]
"""(size, rate, seed) → loss; infinite from where it diverges."""


def bowl(best: Callable[[int], float], bend: float = 0.05, noise: float = 0.0, seed: int = 0) -> Loss:
    """Quadratic in log2 of the rate, rates eight times too high diverge; every size loses less than a smaller one."""

    def loss(size: int, rate: float, run: int) -> float:
        away = math.log2(rate / best(size))
        random = np.random.default_rng([seed, size, run, round(1e9 * rate)])
        level = 5 - 0.2 * math.log2(size) + 0.01 * run
        return math.inf if away > 3 else level + bend * away**2 + noise * float(random.normal())

    return loss


def searched(loss: Loss, sizes: tuple[int, ...] = (4, 8, 16, 32), seeds: tuple[int, ...] = SEEDS) -> Transfer:
    """The search run to its end."""
    tried: dict[int, dict[tuple[int, int], Trial]] = {size: {} for size in sizes}
    while True:
        valleys = tuple(Valley(size=size, rungs=RUNGS, seeds=seeds, trials=dict(tried[size])) for size in sizes)
        case = Transfer(key="m", label="M", method="pre-ln", axis="depth", valleys=valleys, predict=(64,))
        wanted = case.next_trials(len(RUNGS) // 2)
        if not wanted:
            return case
        for size, places in wanted.items():
            for rung, seed in places:
                assert (rung, seed) not in tried[size], "tried twice"
                value = loss(size, RUNGS[rung], seed)
                tried[size][rung, seed] = Trial(value, math.isfinite(value))
        assert sum(map(len, tried.values())) < 400


def edge(loss: Loss, seeds: tuple[int, ...] = SEEDS, rates: tuple[float, ...] = RUNGS) -> tuple[Valley, int]:
    """The highest stable rate searched to its end, and the rounds it took."""
    valley, rounds = Valley(size=4, rungs=rates, seeds=seeds, trials={}, edge_only=True), 0
    while wanted := valley.next_trials(len(rates) // 2):
        assert not set(wanted) & set(valley.trials), "tried twice"
        values = {(rung, seed): loss(4, rates[rung], seed) for rung, seed in wanted}
        more = {place: Trial(value, math.isfinite(value)) for place, value in values.items()}
        valley, rounds = replace(valley, trials={**valley.trials, **more}), rounds + 1
    return valley, rounds


@given(st.floats(1.1e-4, 9e-2), st.lists(st.floats(1.0, 3.0), min_size=3, max_size=3))
@settings(max_examples=60)
def test_the_highest_stable_rate_is_the_lowest_of_the_seeds_limits_to_a_rung(limit: float, by: list[float]) -> None:
    valley, rounds = edge(lambda size, rate, seed: 1.0 if rate <= limit * by[seed] else math.inf)
    assert valley.highest and valley.bounded == (limit * min(by) < 0.0999)
    assert valley.highest == max(rate for rate in RUNGS if rate <= limit * min(by))
    assert rounds <= 8 and len(valley.trials) <= 8 * len(SEEDS) and valley.best is None and not valley.found


def test_where_no_rate_is_stable_or_every_one_is_the_highest_says_so() -> None:
    none, _ = edge(lambda size, rate, seed: math.inf)
    assert none.highest is None and not none.bounded and (0, 0) in none.trials
    every, _ = edge(lambda size, rate, seed: 1.0)
    assert every.highest == RUNGS[-1] and not every.bounded


def test_rungs_are_a_factor_root_two_apart_from_end_to_end() -> None:
    assert RUNGS[0] == 1e-4 and RUNGS[-1] == 0.1 and len(RUNGS) == 21
    assert all(b / a == pytest.approx(math.sqrt(2), rel=0.01) for a, b in zip(RUNGS, RUNGS[1:], strict=False))


@given(st.floats(2e-4, 4e-2), st.floats(-1.0, 0.5))
@settings(max_examples=40)
def test_without_noise_the_best_rates_their_law_and_the_regret_are_exact(first: float, p: float) -> None:
    def best(size: int) -> float:
        return min(max(first * (size / 4) ** p, 2e-4), 4e-2)

    case = searched(bowl(best))
    for valley in case.valleys:
        assert valley.best and valley.best.value == pytest.approx(best(valley.size), rel=0.05)
        assert len(valley.trials) <= 40
    if all(2.1e-4 < best(size) < 3.9e-2 for size in (4, 32)):
        assert case.drift and case.drift.value == pytest.approx(p, abs=0.04)
        at = case.predicted(64)
        assert at and at.value == pytest.approx(first * 16**p, rel=0.2)
    assert case.regret and case.regret.value >= 0


def test_the_search_spends_its_runs_where_the_minimum_is() -> None:
    case = searched(bowl(lambda size: 3.2e-3))
    for valley in case.valleys:
        by_first = {i for i, seed in valley.trials if seed == 0}
        by_others = {i for i, seed in valley.trials if seed == 1}
        assert len(by_others) <= 6 and len(by_first) <= 9
        assert valley.highest and valley.bounded and valley.highest < 8.1 * 3.2e-3


def test_a_rate_that_stays_carries_and_one_that_halves_with_depth_drifts() -> None:
    stays = searched(bowl(lambda size: 3e-3, noise=0.002))
    assert stays.verdict == "carries" and stays.regret and stays.regret.high <= stays.threshold
    falls = searched(bowl(lambda size: 1.2e-2 * (4 / size) ** 0.75, noise=0.002))
    assert falls.verdict == "drifts" and falls.drift and falls.drift.high < -0.6
    assert falls.regret and falls.regret.value == pytest.approx(0.05 * 2.25**2, abs=0.1)
    assert falls.gain == pytest.approx(0.6, abs=0.05)


def test_a_rate_that_the_largest_does_not_survive_drifts() -> None:
    case = searched(bowl(lambda size: 2.4e-2 if size == 4 else 1.5e-3, noise=0.002))
    assert case.regret and math.isinf(case.regret.value) and case.verdict == "drifts"
    body = json.loads(json.dumps(case.to_json(), allow_nan=False))
    assert body["regret"]["diverges"] and body["regret"]["value"] is None


def test_a_seed_that_diverges_elsewhere_does_not_make_the_kept_rate_fail() -> None:
    """At the largest one seed diverges above its best rate, at which the others are as good as at the kept one."""
    plain = bowl(lambda size: 4e-3, noise=0.003)
    case = searched(
        lambda size, rate, seed: math.inf if size == 32 and seed == 0 and rate > 5e-3 else plain(size, rate, seed)
    )
    assert case.regret is None or math.isfinite(case.regret.value)
    assert case.verdict != "drifts"


def test_seeds_that_differ_more_than_rates_do_hide_no_drift() -> None:
    """Seeds of other data lie half a nat apart: what another seed costs is no measure then."""
    falls = bowl(lambda size: 1.2e-2 * (4 / size) ** 0.75, noise=0.002)
    case = searched(lambda size, rate, seed: falls(size, rate, seed) + 0.5 * seed)
    assert case.verdict == "drifts" and case.threshold < 0.05


def test_seeds_that_are_one_show_nothing() -> None:
    falls = bowl(lambda size: 1.2e-2 * (4 / size) ** 0.5, noise=0.002)
    case = searched(lambda size, rate, seed: falls(size, rate, 0))
    assert all(valley.alike for valley in case.valleys) and case.verdict == "cannot tell"


def test_a_valley_that_ends_in_a_cliff_has_no_bottom_and_is_not_extrapolated() -> None:
    def cliff(size: int, rate: float, seed: int) -> float:
        return (
            math.inf
            if rate > 3.3e-3
            else 5 - 0.1 * math.log2(rate / 1e-4) + 0.001 * seed + 0.001 * math.sin(1e5 * rate)
        )

    case = searched(cliff)
    assert all(valley.edge and not valley.best for valley in case.valleys) and case.verdict == "cannot tell"
    assert case.predicted(64) is None


def test_a_loss_that_the_rate_does_not_change_carries_nothing() -> None:
    flat = searched(lambda size, rate, seed: 5 + 0.01 * seed + 1e-5 * math.sin(1e6 * rate * (size + seed)))
    assert flat.verdict == "cannot tell" and not any(valley.best for valley in flat.valleys)


def test_a_plateau_of_rates_that_do_not_train_is_no_valley() -> None:
    """From 1e-3 up all are stuck at one loss, up to noise; the minimum lies below."""
    plain = bowl(lambda size: 5e-4, noise=0.002)
    tried: dict[tuple[int, int], Trial] = {}
    while wanted := Valley(size=4, rungs=RUNGS, seeds=SEEDS, trials=tried).next_trials(len(RUNGS) // 2):
        for rung, seed in wanted:
            stuck = RUNGS[rung] > 1.1e-3
            loss = 6.2 + 0.01 * math.sin(99 * rung + seed) if stuck else plain(4, RUNGS[rung], seed)
            tried = {**tried, (rung, seed): Trial(loss, not stuck)}
    valley = Valley(size=4, rungs=RUNGS, seeds=SEEDS, trials=tried)
    assert valley.found and RUNGS[valley.middle] == pytest.approx(5e-4, rel=0.3)


def test_points_on_no_line_have_a_wide_interval_however_many_seeds_agree() -> None:
    from stabkit.results.line import beyond, slope

    for seeds in (3, 30):
        points = {seed: [(2.0, 0.0), (3.0, 0.0 + 1e-6 * seed), (4.0, 1.0)] for seed in range(seeds)}
        found = slope(points)
        assert found.value == pytest.approx(0.5, abs=1e-3) and found.low < -2 < 3 < found.high
        assert beyond(points, 5.0) > 5
    straight = {seed: [(2.0, 0.01 * seed), (3.0, 1.0), (4.0, 2.01 - 0.01 * seed)] for seed in range(3)}
    assert slope(straight).low > 0.9 and beyond(straight, 5.0) == 0


def test_a_size_without_a_result_does_not_keep_the_others_from_a_verdict() -> None:
    case = searched(bowl(lambda size: 1.2e-2 * (4 / size) ** 0.75, noise=0.002))
    lost = replace(
        case, lost=frozenset({16}), valleys=tuple(replace(v, trials={}) if v.size == 16 else v for v in case.valleys)
    )
    assert lost.next_trials(10) == {} and lost.verdict == "drifts"


def test_noise_as_large_as_the_valley_is_deep_cannot_tell() -> None:
    case = searched(bowl(lambda size: 3e-3, bend=0.001, noise=0.05))
    assert case.verdict == "cannot tell"


def test_one_seed_has_no_interval_and_cannot_tell() -> None:
    case = searched(bowl(lambda size: 3e-3, noise=0.001), seeds=(7,))
    assert case.valleys[0].best and math.isnan(case.valleys[0].best.low) and case.verdict == "cannot tell"


def test_a_best_rate_at_the_rim_is_none() -> None:
    low = searched(bowl(lambda size: 2e-5))
    assert {valley.rim for valley in low.valleys} == {"lowest"} and not low.found and low.drift is None
    high = searched(bowl(lambda size: 0.7))
    assert {valley.rim for valley in high.valleys} == {"highest"} and not high.valleys[0].bounded


def test_where_nothing_trains_the_search_ends() -> None:
    case = searched(lambda size, rate, seed: math.inf)
    assert not case.found and case.verdict == "cannot tell" and case.valleys[0].highest is None
    assert max(len(valley.trials) for valley in case.valleys) <= len(RUNGS)
    assert json.dumps(case.to_json(), allow_nan=False)


def test_intervals_hold_the_truth_as_often_as_they_say() -> None:
    """Of the best rate at a size, and of the exponent, over a hundred searches with noise."""
    held = {"best": 0, "drift": 0, "tried": 0}
    for number in range(60):
        case = searched(bowl(lambda size: 8e-3 * (size / 4) ** -0.5, noise=0.01, seed=number), sizes=(4, 16))
        for valley in case.found:
            held["tried"] += 1
            assert valley.best is not None
            held["best"] += valley.best.low <= 8e-3 * (valley.size / 4) ** -0.5 <= valley.best.high
        assert case.drift is not None
        held["drift"] += case.drift.low <= -0.5 <= case.drift.high
    assert held["best"] >= 0.9 * held["tried"] and held["drift"] >= 54


def test_a_method_that_stays_is_seldom_said_to_drift() -> None:
    said = [searched(bowl(lambda size: 3e-3, noise=0.01, seed=n), sizes=(4, 16)).verdict for n in range(60)]
    assert said.count("drifts") <= 2 and said.count("carries") >= 6


def test_the_regrets_best_rung_is_chosen_by_the_other_seeds() -> None:
    """Else chance would choose it, and keeping a rate that is as good would seem to cost something."""
    regrets = []
    for number in range(80):
        case = searched(bowl(lambda size: 3e-3, bend=0.002, noise=0.02, seed=number), sizes=(4, 8))
        regrets += [case.regret.value] if case.regret else []
    assert abs(float(np.mean(regrets))) < 0.006


def test_an_interval_of_one_value_has_no_ends() -> None:
    assert math.isnan(Interval.of([1.0]).low) and Interval.of([1.0, 1.0]).high == 1.0
    assert Interval.of([1.0]).to_json() == {"value": 1.0, "low": None, "high": None}
    case = searched(bowl(lambda size: 3e-3))
    assert replace(case, predict=()).to_json()["predicted"] == []


def test_a_bowl_that_is_no_parabola_has_a_bottom_where_both_walls_are_shown_to_rise() -> None:
    """A narrow one, in the middle of the window: its walls are as high as the rates beyond them."""

    def valley(losses: tuple[float, ...]) -> Valley:
        trials = {
            (i, seed): Trial(loss + 0.001 * seed * (1 + i), True) for i, loss in enumerate(losses) for seed in SEEDS
        }
        return Valley(size=4, rungs=RUNGS[:5], seeds=SEEDS, trials=trials)

    narrow = valley((0.4, 0.4, 0.06, 0.4, 0.4))
    assert narrow._fit and not narrow._fit.bends and narrow._rises and narrow.best
    assert narrow.best.low < RUNGS[2] < narrow.best.high < RUNGS[3] and narrow.best.low > RUNGS[1]
    assert valley((0.0602, 0.4, 0.06, 0.4, 0.4)).best is None, "its lower end is as low"


def test_a_rate_whose_loss_is_shown_drifts_whatever_its_law() -> None:
    """The best falls, then rises: no line goes through it, and keeping the first one costs half a nat."""
    case = searched(bowl(lambda size: {4: 8e-3, 8: 1e-3, 16: 6e-3, 32: 2e-3}[size], bend=0.1, noise=0.002))
    assert case.drift and case.drift.low < 0 < case.drift.high and case.verdict == "drifts"


def test_two_of_three_sizes_make_no_law() -> None:
    case = searched(lambda size, rate, seed: 5.0 if size == 16 else bowl(lambda n: 3e-3)(size, rate, seed), (4, 8, 16))
    assert len(case.found) == 2 and case.drift is None and case.predicted(64) is None


def test_of_one_seed_any_distance_from_the_line_counts_of_two_that_differ_a_small_one_does_not():
    one, two = [(0.0, 0.0), (1.0, 1.0), (2.0, 2.3)], [(0.0, 1.0), (1.0, 0.0), (2.0, 3.3)]
    assert _means({0: one})[1] and not _means({0: one, 1: two})[1]


def test_the_sensitivity_is_what_seven_rates_lose_on_average_and_what_diverged_counts_as_its_start() -> None:
    losses = {i: 1.0 + 0.1 * abs(i - 4) if i < 9 else math.inf for i in range(13)}
    trials = {(i, 0): Trial(loss, loss < 3.0, 3.0) for i, loss in losses.items()}
    valley = Valley(size=6, rungs=tuple(1e-3 * 2 ** (i / 2) for i in range(13)), seeds=(0,), trials=trials)
    assert valley.swept == [0, 2, 4, 6, 8, 10, 12]
    assert valley.sensitivity == pytest.approx(np.mean([0.4, 0.2, 0.0, 0.2, 0.4, 2.0, 2.0]))
    assert not replace(valley, rungs=valley.rungs[:6]).swept, "of seven rates"
    missing = {place: trial for place, trial in trials.items() if place[0] != 10}
    assert replace(valley, trials=missing).sensitivity is None


def test_a_rate_that_trains_above_one_that_does_not_is_not_the_highest() -> None:
    trains = {0: 2.0, 2: 1.0, 4: 1.5, 6: math.inf, 8: 2.5}
    trials = {(i, 0): Trial(loss, math.isfinite(loss), 3.0) for i, loss in trains.items()}
    valley = Valley(size=6, rungs=tuple(1e-3 * 2 ** (i / 2) for i in range(10)), seeds=(0,), trials=trials)
    assert valley.highest == valley.rungs[4]
