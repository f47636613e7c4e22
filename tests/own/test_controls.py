"""Positive and negative controls: stacks whose fate is known, probed over an eightfold range of depth."""

from __future__ import annotations

import pytest

from stabkit.results.depth_fit import depth_fit
from stabkit.results.own.verdict import verdict
from tests.own.probing import cell

pytestmark = pytest.mark.slow
DEPTHS, SEEDS = (2, 4, 8, 16), (0, 1)


def cells(name):
    return [cell(name, depth, seed, steps=4, lr=1e-3) for depth in DEPTHS for seed in SEEDS]


def fitted(name, value):
    return depth_fit({s: {c.facts.depth: value(c) for c in cells(name) if c.facts.seed == s} for s in SEEDS})


@pytest.mark.parametrize(("name", "a", "within"), [("pre_ln", 0.0, 0.1), ("half", 0.5, 0.1), ("flat", 1.0, 0.1)])
def test_branches_times_n_to_the_minus_a_grow_the_stream_as_n_to_the_half_minus_a(name, a, within):
    found = fitted(name, lambda one: one.growth("stack")).exponent
    assert found <= 0.05 if a == 1.0 else found == pytest.approx(0.5 - a, abs=within)


@pytest.mark.parametrize("step", [1, 4])
def test_branches_over_n_move_the_output_as_far_at_any_depth(step):
    moved = fitted("flat", lambda one: one.records["update"].value("state@relative", step)).exponent
    assert moved == pytest.approx(0.0, abs=0.1)


def judged(name, lr=1e-3, depths=(32,)):
    return verdict([cell(name, depth, steps=16, lr=lr, ramped=depth == max(depths)) for depth in depths])


def test_post_ln_fails_and_its_gradient_is_what_models_that_train_have_not():
    found = judged("post_ln", depths=(8, 32))
    assert found.word == "fails" and found.gradient.level < 1e-2 and found.gradient.healthy.percent < 5


@pytest.mark.parametrize("name", ["flat", "deepnorm", "keel"])
def test_what_trains_at_depth_is_said_to(name):
    found = judged(name)
    assert found.word == "trains" and not found.failing


def test_pre_ln_probably_trains():
    """It does train; of 34 models told 0.65 to 0.9 in the corpus 29 did."""
    found = judged("pre_ln")
    assert found.word == "probably trains" and found.forecast.probability > 0.75 and not found.failing


def test_a_stream_that_each_layer_multiplies_fails_as_an_exponential():
    found = verdict(cells("growing")).stream
    assert found.verdict == "fail" and found.fit.factor == pytest.approx(1.3, rel=0.02)
