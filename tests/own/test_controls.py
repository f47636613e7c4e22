"""Positive and negative controls: stacks whose fate is known, probed over an eightfold range of depth."""

from __future__ import annotations

import pytest

from stabkit.results.depth_fit import depth_fit
from stabkit.results.own.verdict import verdict
from tests.own.probing import cell

pytestmark = pytest.mark.slow
DEPTHS, SEEDS = (4, 8, 16, 32), (0, 1, 2)


def cells(name):
    return [cell(name, depth, seed, steps=6, lr=1e-3) for depth in DEPTHS for seed in SEEDS]


def fitted(name, value):
    return depth_fit({s: {c.facts.depth: value(c) for c in cells(name) if c.facts.seed == s} for s in SEEDS})


@pytest.mark.parametrize(("name", "a", "within"), [("pre_ln", 0.0, 0.1), ("half", 0.5, 0.1), ("flat", 1.0, 0.1)])
def test_branches_times_n_to_the_minus_a_grow_the_stream_as_n_to_the_half_minus_a(name, a, within):
    found = fitted(name, lambda one: one.growth("stack")).exponent
    assert found <= 0.05 if a == 1.0 else found == pytest.approx(0.5 - a, abs=within)


@pytest.mark.parametrize("step", [1, 4])
def test_branches_over_n_move_the_output_as_far_at_any_depth(step):
    assert fitted("flat", lambda one: float(one.update()[step])).exponent == pytest.approx(0.0, abs=0.1)
    assert verdict(cells("flat")).word == "pass"


def test_post_ln_fails_by_the_gradient_and_by_nothing_else():
    found = verdict(cells("post_ln"))
    assert found.word == "fail" and [n for n, link in found.links.items() if link.verdict == "fail"] == ["gradient"]
    assert found.gradient.fit.factor_high < 1  # that it falls, three seeds decide; by which law, only twelve do


@pytest.mark.parametrize("name", ["pre_ln", "deepnorm", "keel"])
def test_what_trains_at_depth_does_not_fail(name):
    assert verdict(cells(name)).word in ("pass", "warn")


def test_a_stream_that_each_layer_multiplies_fails_as_an_exponential():
    found = verdict(cells("growing")).stream
    assert found.verdict == "fail" and found.fit.factor == pytest.approx(1.3, rel=0.02)
