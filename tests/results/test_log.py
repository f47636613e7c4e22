"""What a loss says: of made curves what they were made to be, whatever their scale, spacing and noise."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stabkit.results.log import Series, TrainingLog, judged, reached
from stabkit.wording import log as words

STEPS = np.arange(0.0, 2000.0, 10.0)
FALLS = 2.0 + 8.0 * np.exp(-STEPS / 400)
RANDOM = np.random.default_rng(0)
NOISE = RANDOM.normal(0, 0.05, len(STEPS))


def log(values, steps=STEPS, **more) -> TrainingLog:
    values = np.asarray(values, dtype=float)
    loss = Series(np.asarray(steps, dtype=float)[: len(values)], values)
    return TrainingLog(name="run", form="a table", column="loss", unit="update", loss=loss, **more)


CURVES = {
    "learning": (FALLS + NOISE, {}),
    "learning, below frequencies": (FALLS + NOISE, {"level": 7.0}),
    "at the level of frequencies": (10.8 + NOISE, {"classes": 50_000}),
    "at the level of frequencies, of text": (7.6 + 3.2 * np.exp(-STEPS / 60) + NOISE, {"classes": 50_000}),
    "at the level of frequencies, given": (7.6 + 3.2 * np.exp(-STEPS / 60) + NOISE, {"level": 7.55}),
    "at the level of frequencies, two classes": (0.693 + 0.02 * NOISE, {}),
    "slow": (9.0 + NOISE, {}),
    "slow, high": (7.6 + 3.2 * np.exp(-STEPS / 60) + NOISE, {}),
    "diverged": (np.where(STEPS < 1500, FALLS, math.nan), {}),
    "diverged, zero": (np.where(STEPS < 1500, FALLS, 0.0), {}),
    "diverged, risen": (np.where(STEPS < 1500, FALLS, 7.0) + NOISE, {}),
    "not enough": (FALLS[[0, 3, 2]], {}),
}
"""{the word, and what sets them apart: (losses, what is known)}."""


@pytest.mark.parametrize("name", CURVES)
def test_a_curve_is_what_it_was_made_to_be(name) -> None:
    values, known = CURVES[name]
    own = judged(log(values), **known)
    assert own.word == name.partition(",")[0]
    perhaps = "perhaps " * (own.level_of == "text")
    assert words.answer(own).startswith(f"run: {perhaps}{own.word}. ")


@pytest.mark.parametrize("name", [name for name in CURVES if name.startswith(("learning", "diverged"))])
@pytest.mark.parametrize("every", [1, 3, 7])
def test_how_often_it_was_logged_changes_nothing(name, every) -> None:
    values, known = CURVES[name]
    assert judged(log(values[::every], STEPS[::every]), **known).word == name.partition(",")[0]


def test_a_spike_is_named_with_its_height_and_its_end() -> None:
    values = FALLS + NOISE
    values[100:103] = 9.0
    (spike,) = judged(log(values)).events
    assert (spike.kind, spike.step, spike.after, spike.ends) == ("spiked", 1000.0, 9.0, 1030.0)
    values[150:] = 4.5
    assert any(event.ends is None for event in judged(log(values)).events)


def test_a_restart_joins_what_went_on_and_processes_in_turn_are_none() -> None:
    steps = np.concatenate([STEPS[:100], STEPS[80:]])
    values = np.concatenate([FALLS[:100] + NOISE[:100], FALLS[80:] + NOISE[80:] + 1.0])
    own = judged(log(values, steps))
    assert [(event.kind, event.step, event.ends) for event in own.events] == [("restarted", 800.0, 990.0)]
    assert len(own.curve) == len(STEPS) and (np.diff(own.curve.steps) > 0).all()
    ranks = np.repeat(STEPS, 2)
    ranks[1::2] -= 15.0
    assert not judged(log(np.repeat(FALLS, 2), ranks)).events
    epochs = judged(log(FALLS + NOISE, np.tile(STEPS[:50], 4)))
    assert not epochs.events and (np.diff(epochs.curve.steps) > 0).all()
    few = judged(log(FALLS[:60] + NOISE[:60], np.tile([0.0, 200.0, 400.0], 20)))
    assert not few.events and (np.diff(few.curve.steps) > 0).all()
    two = judged(log(np.concatenate([FALLS, FALLS + 0.01]), np.tile(STEPS, 2)))
    assert len(two.curve) == len(STEPS) and any("as of another run in one file" in one for one in words.sentences(two))


def test_a_rate_that_leaps_with_the_loss_is_a_restart() -> None:
    rate = np.where(STEPS < 1000, 1e-3 * np.exp(-STEPS / 300), 1e-3)
    values = FALLS + NOISE + np.where(STEPS < 1000, 0.0, 1.5)
    (event,) = [one for one in judged(log(values, rate=Series(STEPS, rate))).events if one.kind == "restarted"]
    assert event.step == 1000.0


@pytest.mark.parametrize("many", [4, 8])
def test_a_sum_over_batches_is_told_by_the_first_loss(many) -> None:
    values = many * (math.log(50_000) * 1.005 - 8.0 * (1 - np.exp(-STEPS / 400)))
    (event,) = judged(log(values), classes=50_000).events
    assert (event.kind, event.after) == ("sum", many)
    assert not judged(log(values / many), classes=50_000).events
    assert f"a sum over {many}" in words.on_the_way(judged(log(values), classes=50_000))


def test_a_start_that_is_too_high_is_not_called_a_sum() -> None:
    start = 120.0 * np.exp(-STEPS / 20)
    for falls, word in ((FALLS, "learning"), (7.55 + 0 * STEPS, "at the level of frequencies")):
        own = judged(log(falls + start + NOISE), classes=50_257)
        (event,) = [one for one in own.events if one.kind == "sum"]
        assert own.word == word and math.isnan(event.after) and "too large at the start" in words.event(event, "update")


def test_what_recovers_from_an_explosion_to_a_uniform_guess_has_learnt_nothing() -> None:
    values = math.log(100) - 0.05 + 7 * np.exp(-STEPS / 250) * (STEPS > 0) + 0.2 * (STEPS == 0)
    assert judged(log(values)).word == "learning" and judged(log(values), classes=100).word == "slow"


def test_a_loss_that_was_learnt_to_the_last_digit_is_no_lost_number() -> None:
    falls = [3.1, 1.9, 0.8, 0.21, 0.011, 0.0001, *[0.0] * 8]
    norms = Series(STEPS[:14], np.full(14, 0.1))
    assert (
        judged(log(falls)).word == "learning" != "diverged" != judged(log([2.0] * 8 + [0.0] * 6, gradient=norms)).word
    )
    lost = Series(STEPS[:14], np.array([1.0] * 8 + [math.nan] * 6))
    assert judged(log([2.0] * 8 + [0.0] * 6, gradient=lost)).word == "diverged"


def test_many_noisy_entries_move_although_no_single_one_does() -> None:
    steps = np.arange(400.0)
    own = judged(log(1.25 - 0.15 * steps / 400 + RANDOM.normal(0, 0.07, 400), steps))
    assert own.moved and own.word == "learning"


def test_in_a_warm_up_a_flat_loss_says_nothing() -> None:
    own = judged(log(10.8 + NOISE, rate=Series(STEPS, STEPS * 1e-6)), classes=50_000)
    assert own.word == "not enough" and "rate still rises" in words.answer(own)


def test_entries_that_are_no_number_are_counted() -> None:
    values = (FALLS + NOISE).copy()
    values[50:60] = math.nan
    assert "10 of 200 entries are no number" in words.answer(judged(log(values)))


def test_a_log_against_another_names_the_step_where_it_is_as_low() -> None:
    healthy, own = judged(log(FALLS)), judged(log(2.0 + 8.0 * np.exp(-STEPS / 1200)))
    mine, theirs = reached(own, healthy) or (0.0, 0.0)
    assert mine / theirs == pytest.approx(3.0, rel=0.15)
    assert reached(judged(log(11.0 + NOISE)), healthy) is None
    flat = judged(log(10.9 - 0 * NOISE))
    assert (reached(healthy, flat) or (math.inf,))[0] < 100.0, "at once below what never moved"
    epochs = judged(replace(healthy.log, unit="epoch"))
    assert reached(epochs, own) is None and "not compared" in words.against(epochs, own, None)


def test_what_the_log_lacks_is_named() -> None:
    assert judged(log(FALLS)).lacks == ("gradient", "rate", "level")
    norms = Series(STEPS, np.where(STEPS < 1000, 1.0, 1e-5))
    own = judged(log(FALLS, gradient=norms), classes=10)
    assert own.lacks == ("rate",) and own.vanished == 1000.0


@given(
    st.lists(st.floats(), min_size=1, max_size=60),
    st.none() | st.integers(2, 100_000),
    st.none() | st.floats(0.01, 1e6),
    st.lists(st.floats(-1e6, 1e6), min_size=60, max_size=60),
)
def test_whatever_stands_in_a_log_it_is_judged_and_said(values, classes, level, steps) -> None:
    for at in (steps, sorted(steps), STEPS):
        own = judged(log(values, at), classes=classes, level=level)
        assert own.word and words.answer(own) and len(words.row(own)) == len(words.HEADS) + 1


def test_a_loss_that_lies_flat_where_frequencies_alone_may_take_it_is_not_called_learning():
    flat = log([4.2, 3.9, 3.7, *[3.6] * 77], np.arange(80.0))
    own = judged(flat)
    assert own.word == "not enough" and own.unplaced
    assert "is flat since update 3: stuck, or all that can be learnt; --classes" in words.in_short([own])
    assert judged(flat, level=3.6).word == "at the level of frequencies" and judged(flat, level=9.0).word == "learning"
    assert judged(log(np.linspace(4.2, 3.0, 80), np.arange(80.0))).word == "learning"  # it still falls
