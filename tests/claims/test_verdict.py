"""The rule that makes a verdict of numbers: thresholds, seeds, intervals, places, parts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stabkit.claims import EVERY, verdict
from stabkit.claims.base import (
    MOST_RUNS,
    Claim,
    Finding,
    Measurement,
    Scale,
    Spot,
    Tell,
    at_depth,
    at_least,
    at_most,
)
from stabkit.claims.deepnet.slope import _theorem
from stabkit.results.conditions import Condition
from tests.conftest import examples

LIMIT = at_least(2.0, "stabkit's choice: two-fold")

CONDITION = Condition((("train.warmup", 0),))


def claim(scale: Scale = "ratio", parts: Sequence[str] = (), **more: object) -> Claim:
    known = {
        **dict(key="made-up", sentence="It is so.", source="nowhere", weight="central", test="a number", needs="runs"),
        **dict(command="stabkit sweep", methods=("deepnorm",), scale=scale, parts=tuple(parts)),
        **dict(find=lambda found: found, tell=Tell(lambda v: f"{v:.2f}")),
        "threshold": MOST_RUNS if scale == "share" else LIMIT,
    }
    return Claim(**{**known, **more})  # type: ignore[arg-type]


def at(*values: float, depth: int = 18, **more: object) -> Measurement:
    return Measurement(
        where=(at_depth(depth, depth),), condition=CONDITION, steps=250, values=dict(enumerate(values)), **more
    )


def judged(*places: Measurement, **of: object) -> Finding:
    return verdict.judge(claim(**of), list(places))


KNOWN = {CONDITION.key: {"18x18": 0.5, "50x50": 1.0}}
"""Seeds of the claim are known to spread by a factor of e^0.5 at 18L-18L, of e at 50L-50L."""


def test_one_seed_decides_only_beyond_the_spread_of_five() -> None:
    assert judged(at(2.0 * math.exp(0.6)), spread=KNOWN).verdict == "holds"
    assert judged(at(2.0 * math.exp(0.4)), spread=KNOWN).verdict == "undecided"
    assert judged(at(2.0 / math.exp(0.6)), spread=KNOWN).verdict == "fails"
    (place,) = judged(at(5.0), spread=KNOWN).places
    assert place.low is place.high is None and place.value == 5.0


def test_a_place_nobody_measured_takes_twice_the_widest_of_its_claim_and_a_claim_without_decides_nothing() -> None:
    assert judged(at(2.0 * math.exp(0.8), depth=100), spread=KNOWN).verdict == "undecided"
    assert judged(at(99.0, depth=100), spread=KNOWN).verdict == "holds"
    told = judged(at(99.0))
    assert told.verdict == "undecided" and "was not measured" in told.reason and "--seeds 0..4" in told.reason


def test_two_to_four_seeds_decide_where_all_are_on_one_side() -> None:
    assert judged(at(2.1, 9.0)).verdict == "holds"
    assert judged(at(2.1, 1.9, 9.0, 8.0)).verdict == "undecided"
    assert judged(at(1.9, 0.1, 1.0)).verdict == "fails"
    (place,) = judged(at(2.1, 9.0, 3.0)).places
    assert (place.low, place.high, place.value) == (2.1, 9.0, 3.0)


def test_from_five_seeds_on_a_95_percent_interval_decides() -> None:
    near = judged(at(1.9, 2.6, 2.6, 2.7, 2.6))
    assert near.verdict == "holds", "one seed on the other side no longer leaves it open"
    wide = judged(at(1.0, 1.2, 4.0, 9.0, 2.5))
    assert wide.verdict == "undecided" and "95 % interval" in wide.reason
    (place,) = near.places
    logs = [math.log(value) for value in (1.9, 2.6, 2.6, 2.7, 2.6)]
    mean = sum(logs) / 5
    deviation = math.sqrt(sum((one - mean) ** 2 for one in logs) / 4)
    assert place.low == pytest.approx(math.exp(mean - 2.776 * deviation / math.sqrt(5)), rel=1e-3)
    assert place.high == pytest.approx(math.exp(mean + 2.776 * deviation / math.sqrt(5)), rel=1e-3)


def test_a_share_of_seeds_is_decided_by_wilsons_interval() -> None:
    assert judged(at(1, 1, 1, 1, 1), scale="share").verdict == "holds"
    assert judged(at(1, 1, 1, 1, 0), scale="share").verdict == "undecided"
    assert judged(at(0, 0), scale="share").verdict == "fails"
    assert judged(at(1, 0), scale="share").verdict == "undecided"
    (place,) = judged(at(1, 1, 1, 1, 1), scale="share").places
    assert (place.low, place.high) == (pytest.approx(0.566, abs=1e-3), 1.0) and place.text == "5 of 5"


def test_holding_and_failing_places_alone_decide_the_whole() -> None:
    good, bad, unclear, far = at(9, 9), at(1, 1, depth=6), at(1, 9), at(9, 9, beyond="too short")
    assert judged(good, good).verdict == "holds" and judged(bad).verdict == "fails"
    mixed = judged(good, bad, unclear)
    assert mixed.verdict == "mixed" and "holds at 18L-18L" in mixed.measured and "fails at 6L-6L" in mixed.measured
    assert judged(good, unclear, far).verdict == "holds" and judged(bad, unclear).verdict == "fails"
    assert judged(unclear, far).verdict == "undecided" and judged(far).verdict == "out of reach"
    assert judged(far).reason == "too short" and judged().verdict == "untested" and judged().reason == "needs runs"
    assert {place.verdict for place in judged(good, bad, unclear, far).places} == {
        *("holds", "fails", "undecided", "out of reach")
    }


def test_a_sentence_of_several_parts_holds_when_each_was_tested() -> None:
    a, b = Spot("a", "first"), Spot("b", "second")
    first, second = at(9, 9, part=a), at(9, 9, part=b)
    assert judged(first, parts=(a, b)).verdict == "undecided"
    assert judged(first, parts=(a, b)).reason == "not tested: second"
    assert judged(first, second, parts=(a, b)).verdict == "holds"
    assert judged(first, at(1, 9, part=b), parts=(a, b)).verdict == "undecided"


def test_a_place_may_have_its_own_threshold() -> None:
    assert judged(at(1.0, 1.0, threshold=at_most(1.5, "ours"))).verdict == "holds"


@given(st.lists(st.floats(0.01, 100.0), min_size=2, max_size=9), st.sampled_from(["ratio", "difference"]))
@examples(100)
def test_a_verdict_never_contradicts_the_seeds(values: list[float], scale: Scale) -> None:
    (place,) = judged(at(*values), scale=scale).places
    if min(values) >= 2.0 and len(values) < 5:
        assert place.verdict == "holds"
    if place.verdict == "holds":
        assert place.low is not None and place.low >= 2.0 and max(values) >= 2.0
    if place.verdict == "fails":
        assert place.high is not None and place.high < 2.0 and min(values) < 2.0
    assert place.low <= place.high  # type: ignore[operator]


def test_a_median_on_the_other_side_of_its_interval_decides_nothing() -> None:
    (place,) = judged(
        at(2.1, 2.1, 2.1, 2.1, 2.1, 0.0, 0.0, 0.0, 0.0), scale="difference", threshold=at_least(2.05, "ours")
    ).places
    assert place.high is not None and place.high < 2.05 < place.value and place.verdict == "undecided"


def test_infinities_are_on_a_side() -> None:
    assert judged(at(math.inf, math.inf)).verdict == "holds"
    assert judged(at(math.inf, math.inf, math.inf, 3.0, 3.0)).verdict == "holds"


def test_every_threshold_has_a_reason_and_every_claim_a_command_and_a_weight() -> None:
    for one in EVERY:
        assert one.threshold.reason.startswith(("stabkit", "the paper", "Table")), one.key
        assert one.command.startswith("stabkit ") and one.test and one.source and one.needs, one.key
        assert replace(one).weight in ("central", "side", "background")
    keys = [one.key for one in EVERY]
    assert len(set(keys)) == len(keys) and sum(one.weight == "central" for one in EVERY) >= 10


def test_what_the_theorem_says_stands_beside_an_exponent_where_it_speaks() -> None:
    lines: list[Any] = [SimpleNamespace(theorem=theorem) for theorem in (0.5, math.nan)]
    assert [_theorem(line) for line in lines] == ["theorem N^0.50", ""]
