"""When a run need not go on: the rule on made-up records, and training that stops by it."""

import dataclasses

import numpy as np
import pytest

from stabkit.results import outcome
from stabkit.results.outcome import DECIDED_AFTER, GONE_FOR, decided, judge
from stabkit.results.records import to_bytes
from stabkit.tasks.synthetic import Synthetic
from stabkit.training import train
from tests.conftest import some, tiny
from tests.results.test_outcome import U, records

TASK = Synthetic(vocab=200, max_tokens=128)


def flat(steps, value=6.0):
    """A run at the unigram loss from the first step to the last."""
    return records(steps=steps, start=value, end=value)


def last(table):
    return int(table.steps[-1])


@pytest.mark.parametrize("steps", [1, 2, 30, 1000])
@pytest.mark.parametrize("warmup", [0, 4000])
def test_a_diverged_run_is_decided_at_once(steps, warmup):
    probe = np.full(steps + 1, 5.0)
    probe[-1] = np.nan
    assert decided(records(steps=steps, probe=probe), U, warmup)


def test_a_loss_far_above_its_minimum_for_twenty_steps_is_decided():
    for high, wanted in ((20, False), (21, True)):
        probe = np.full(101, 5.0)
        probe[-high:] = 7.6
        assert decided(records(steps=100, probe=probe), U, 4000) is wanted


def test_nothing_is_decided_before_the_first_update():
    for loss in (6.0, np.nan):
        assert not decided(records(steps=0, start=6.0, end=6.0, probe=[loss]), U, 0)


@pytest.mark.parametrize("warmup", [0, 50, 1000])
def test_a_stuck_run_is_decided_when_it_was_stuck_a_quarter_ago_too_and_is_well_past_the_warm_up(warmup):
    first = next(steps for steps in range(40, 6000) if decided(flat(steps), U, warmup))
    assert first == max(warmup + DECIDED_AFTER, next(n for n in range(6000) if int(0.75 * n) > warmup))
    assert judge(flat(first - 1), unigram=U, warmup=warmup).word == "stuck"


def test_during_the_warm_up_nobody_is_stuck():
    assert not any(decided(flat(steps), U, 4000) for steps in (400, 1000, 4000, 4400, 5333))
    assert decided(flat(5336), U, 4000)


@pytest.mark.parametrize("warmup", [0, 50, 1000])
def test_a_gradient_that_is_gone_long_enough_past_the_warm_up_decides(warmup):
    gone = {"start": 6.0, "end": 6.0, "ratio": 1e-7}
    first = next(steps for steps in range(40, 2000) if decided(records(steps=steps, **gone), U, warmup))
    assert first == warmup + GONE_FOR
    assert judge(records(steps=first - 1, **gone), unigram=U, warmup=warmup).word == "stuck"


def test_a_gradient_that_is_gone_below_the_unigrams_loss_decides_nothing():
    low = {"start": 5.8, "end": 5.8, "ratio": 1e-7}
    assert judge(records(steps=200, **low), unigram=U, warmup=0).word == "trains"
    assert not decided(records(steps=200, **low), U, 0)


@pytest.mark.parametrize(("back", "wanted"), [(174, True), (175, False), (250, False), (300, False)])
def test_one_gradient_that_came_back_within_these_updates_leaves_it_open(back, wanted):
    found = records(steps=300, start=6.0, end=6.0, ratio=1e-7)
    values = found["grad_norm"].values.copy()
    values[back] = 1.0
    assert decided({**found, "grad_norm": dataclasses.replace(found["grad_norm"], values=values)}, U, 0) is wanted


@pytest.mark.parametrize(("factor", "wanted"), [(1.0, True), (1.4, True), (1.6, False), (100.0, False)])
def test_a_gradient_on_its_way_back_leaves_it_open_and_the_run_is_stuck_so_far(factor, wanted):
    found = records(steps=300, start=6.0, end=6.0, ratio=1e-7)
    values = found["grad_norm"].values.copy()
    lower = [place for place, site in enumerate(found["grad_norm"].sites) if site.startswith("decoder.1")]
    values[-1, lower] *= factor
    rising = {**found, "grad_norm": dataclasses.replace(found["grad_norm"], values=values)}
    assert judge(rising, unigram=U, warmup=0).word == "stuck" and decided(rising, U, 0) is wanted


def test_where_gradients_were_not_recorded_only_the_loss_decides():
    found = {name: table for name, table in flat(399).items() if name != "grad_norm"}
    assert judge(found, unigram=U, warmup=0).word == "stuck" and not decided(found, U, 0)


def test_a_run_that_has_only_just_come_to_rest_goes_on():
    steps = 800
    probe = np.interp(np.arange(steps + 1), [0, 0.7 * steps, steps], [8.5, 6.0, 6.0])
    found = records(steps=steps, end=6.0, at_quarter=6.0, probe=probe)
    assert judge(found, unigram=U, warmup=0).word == "stuck" and not decided(found, U, 0)
    rested = np.interp(np.arange(steps + 1), [0, 0.3 * steps, steps], [8.5, 6.0, 6.0])
    assert decided(records(steps=steps, end=6.0, at_quarter=6.0, probe=rested), U, 0)


@pytest.mark.parametrize(
    ("word", "given"),
    [
        ("trains", {"end": 5.6}),
        ("trains", {"end": 5.6, "ratio": 1e-9}),
        ("trains", {"end": 0.1}),
        ("early", {"end": 6.0, "at_quarter": 6.2}),
        ("trains", {"end": 5.8}),
        ("early", {"end": 7.0}),
    ],
)
@pytest.mark.parametrize("steps", [1, 399, 400, 1000, 20_000])
def test_a_run_that_trains_or_may_yet_train_is_never_stopped(word, given, steps):
    found = records(steps=steps, **given)
    assert not decided(found, U, 0) and not decided(found, U, 4000)
    if steps > 40:
        assert judge(found, unigram=U, warmup=0).word == word


def test_the_rule_reads_the_records_and_changes_none():
    found = flat(500)
    before = to_bytes(found)
    assert decided(found, U, 0) and to_bytes(found) == before


def stopping(lr, steps=160, **changes):
    """At a rate of 0.3 it stays at the unigram loss, at 1 its loss rises far above where it began."""
    return tiny("post-ln", layers=1, steps=steps, warmup=0, lr=lr, stop_when_decided=True, **changes)


@pytest.fixture
def soon(monkeypatch):
    """Stuck for good after 40 updates instead of 400."""
    monkeypatch.setattr(outcome, "DECIDED_AFTER", 40)


@pytest.mark.slow
@pytest.mark.parametrize(("word", "lr"), [("diverged", 1.0), ("stuck", 0.3)])
def test_a_run_that_stops_is_the_beginning_of_the_one_that_does_not(word, lr, soon):
    spec = stopping(lr)
    stopped = train.run(spec, TASK)
    assert stopped.outcome.word == word and 0 < stopped.outcome.steps < 160
    end = last(stopped.records["validation"])
    assert decided(stopped.records, stopped.outcome.unigram_loss, 0)
    whole = train.run(dataclasses.replace(spec, train=dataclasses.replace(spec.train, stop_when_decided=False)), TASK)
    assert last(whole.records["loss"]) == 160
    assert set(stopped.records) == set(whole.records)
    for name, table in stopped.records.items():
        kept = whole.records[name].steps <= end
        np.testing.assert_array_equal(table.steps, whole.records[name].steps[kept])
        np.testing.assert_array_equal(table.values, whole.records[name].values[kept])


@pytest.mark.parametrize("lr", some([3.0, 0.3], 2))  # with dropout, 1 is at the edge: processors differ
def test_interrupted_and_resumed_it_stops_where_it_would_have_stopped(lr, soon):
    spec = stopping(lr, dropout=0.1, snapshots=5)
    states = []
    whole = train.run(spec, TASK, save=states.append, every=9)
    assert 0 < whole.outcome.steps < 160
    assert states and all(state.step <= last(whole.records["validation"]) for state in states)
    for state in (states[0], states[len(states) // 2], states[-1]):
        resumed = train.run(spec, TASK, start=state)
        assert resumed.outcome == whole.outcome and to_bytes(resumed.records) == to_bytes(whole.records)
        assert set(resumed.weights) == set(whole.weights)
        for name, array in whole.weights.items():
            np.testing.assert_array_equal(array, resumed.weights[name])


@pytest.mark.slow
def test_where_it_stops_everything_is_recorded(monkeypatch):
    """Its weights are those of the last recorded step, as every run's are; also where not every step is recorded."""
    monkeypatch.setattr(outcome, "DECIDED_AFTER", 110)
    found = train.run(stopping(0.3, steps=400), TASK)
    ends = {last(found.records[name]) for name in ("validation", "loss", "update")}
    assert ends == {found.outcome.steps} and 100 < found.outcome.steps < 400


@pytest.mark.slow
def test_a_short_run_that_trains_is_the_same_with_the_option_and_without():
    asked, plain = (
        train.run(tiny("deepnorm", layers=1, steps=60, warmup=0, lr=2e-2, stop_when_decided=stop), TASK)
        for stop in (True, False)
    )
    assert asked.outcome == plain.outcome and asked.outcome.word == "trains" and asked.outcome.steps == 60
    assert to_bytes(asked.records) == to_bytes(plain.records)
    for name, array in asked.weights.items():
        np.testing.assert_array_equal(array, plain.weights[name])


def test_the_option_is_part_of_a_runs_identity():
    assert tiny(stop_when_decided=True).run_id != tiny().run_id
