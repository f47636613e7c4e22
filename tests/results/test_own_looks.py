"""What becomes of a training by its losses: the rule against a slow recomputation, and what it comes to."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stabkit.results.forecast.logistic import WORDS, word
from stabkit.results.own import decided, looks
from stabkit.results.own.cell import Broke, ModelCell
from stabkit.results.own.cure import BY_KEY, LINKS, cure, first_tried
from stabkit.results.own.decided import least
from stabkit.results.own.forecast import ours
from stabkit.results.own.guess import Guess
from stabkit.results.own.looks import FIRM, FIRM_AT_ONCE, LAST, Decision, Known
from stabkit.results.own.verdict import verdict
from stabkit.results.records import Table
from stabkit.wording import links
from tests.results.test_own import DEPTHS, made

LEVEL = 4.0
LOSSES = st.lists(st.floats(-10, 20) | st.just(math.nan) | st.just(math.inf), min_size=1, max_size=30)
KNOWN = st.builds(
    lambda p, level, rest: Known(p, level, *rest), st.none() | st.floats(0, 1), st.floats(0.5, 8.0),
    st.tuples(st.none() | st.floats(0.0, 0.4)) | st.just((None, True)),
)  # fmt: skip


def trained(loss, updates=300, depth=48, seed=0, **facts) -> ModelCell:
    """A cell of 16 updates at LEVEL, trained on at this loss."""
    cell = made(depth, seed, steps=16, loss=LEVEL)
    after = np.full((updates - 16, 1), float(loss))
    more = {"trained": Table(np.arange(16, updates), ("train",), after)} if updates > 16 else {}
    known = {"fresh": True, "frequencies": LEVEL, "entropy": 0.5, **facts}
    return ModelCell(replace(cell.facts, **known), {**cell.records, **more})


def by_hand(tens, known):
    """The numbers of a look in plain Python."""
    span = max(known.level - (known.reference or 0.0), 1e-9)
    ways = [(known.level - x) / span if math.isfinite(x) else -math.inf for x in tens]
    now, ending = ways[-2:], ways[-5:-3] or ways[:1]
    rise = max(sum(now) / len(now), 0.0) - max(sum(ending) / len(ending), 0.0)
    p = known.forecast
    odds = [] if p is None else [-8.0 if p <= 0 else 6.0 if p >= 1 else min(max(math.log(p / (1 - p)), -6.0), 6.0)]
    ways = [min(max(x, -1.0), 1.5) for x in (sum(now) / len(now), max(ways))]
    x = [1.0, *odds, *ways, min(max(rise, -1.0), 1.0)]
    return [math.log(len(tens) / 8) ** bend * one for bend in range(3) for one in x]


@given(tens=LOSSES, known=KNOWN)
def test_the_numbers_of_a_look_are_those_that_its_formula_says(tens, known):
    slow = by_hand(tens, known)
    assert looks.features(tens, known) == pytest.approx(slow, abs=1e-9)
    z = sum(w * x for w, x in zip(ours().looks.weights[known.key], slow, strict=True))
    assert ours().looks.probability(tens, known) == pytest.approx(1 / (1 + math.exp(-max(z, -700))), abs=1e-9)


@given(tens=LOSSES, known=KNOWN)
def test_a_training_is_stopped_at_the_first_look_that_is_firm_and_has_its_word(tens, known):
    found, p = ours().looks.decide(tens, known), known.forecast
    if p is not None and not FIRM_AT_ONCE[0] < p < FIRM_AT_ONCE[1]:
        assert found == Decision(word(p), "forecast", p, 16)
        return
    seen = {n: ours().looks.probability(tens[:n], known) for n in range(2, len(tens) + 1)}
    firm = [n for n, q in seen.items() if not FIRM[0] < q < FIRM[1]]
    at = min(firm, default=len(tens))
    stopped = bool(firm or at >= LAST // 10)
    p, basis, updates, key = (seen[at], "seen", 10 * at, known.key) if at > 1 else (p, "forecast", 16, "")
    short = at > 1 and not stopped and word(p) in ("trains", "fails")
    assert found == Decision(f"probably {word(p)}" if short else word(p), basis, p, updates, key=key)
    assert looks.stops(found) is stopped


@given(lost=st.integers(21, 290), loss=st.floats(0.6, 8.0))
def test_a_number_that_is_lost_before_a_firm_look_fails_and_diverges(lost, loss):
    cell = trained(loss, lost)
    cell.records["trained"].values[-1] = math.nan
    found, whole = decided.decided(cell), decided.decided(trained(loss, 10 * ((lost - 1) // 10)))
    if looks.stops(whole):
        assert found == whole, "it was stopped before"
    else:
        assert (found.word, found.basis, found.updates, found.diverges) == ("fails", "seen", lost, True)
    changed = cure(replace(cell, facts=replace(cell.facts, change="rate/3")))
    assert changed.word == "fails" and math.isnan(changed.loss), "a change is trained to its end"


def test_what_has_no_forecast_is_decided_by_what_is_seen_and_by_nothing_where_no_level_is_known():
    words = [decided.decided(trained(loss)).word for loss in (0.6, LEVEL)]
    assert words == ["trains", "fails"]
    for facts in ({"fresh": False}, {"frequencies": None, "start": math.nan}, {"frequencies": -1.0}):
        assert decided.decided(trained(0.6, **facts)) == Decision("undecided", "forecast", None, 300)
    guess = Guess(classes=10, cost=2.3, head="", scale=1.0)
    scored = made(48, steps=5)
    scored.records["scores"] = Table(np.array([0]), ("information",), np.zeros((1, 1)))
    scored = replace(scored, facts=replace(scored.facts, fresh=True, start=2.4, guess=guess))
    assert decided.known(scored).level == pytest.approx(math.log(10)), "of who guesses"


def test_every_depth_has_a_word_and_a_law_over_depths_is_of_the_deepest_that_was_not_seen():
    cells = [made(n, growth=n**1.3) for n in DEPTHS]
    found = verdict(cells)
    assert [own.decision.word for own in found.depths] == ["undecided"] * 3 + ["fails"]
    seen = trained(0.6)
    cells[-1] = replace(seen, records={**seen.records, "stream": cells[-1].records["stream"]})
    assert verdict(cells).stream.verdict == "fail" and verdict(cells).word == "trains"
    assert links.by_depth(found) == "is undecided at 6 to 24 layers, fails at 48"
    lost = verdict([made(6, broke=Broke(step=3, where="the loss")), made(12)])
    assert lost.finite.verdict == "fail" and [own.decision.word for own in lost.depths] == ["fails", "undecided"]


def test_the_seed_that_is_least_likely_to_train_speaks():
    found = verdict([trained(0.6), trained(LEVEL, seed=1), trained(1.0, seed=2)]).depths[0]
    assert found.seed == 1 and found.decision.word == "fails" and len(found.seeds) == 3
    doubtful, likely = Decision("undecided", "forecast", 0.97, 16), Decision("probably trains", "seen", 0.8, 300)
    assert least([likely, doubtful]) is doubtful, "a link that fails leaves it undecided"


@given(st.lists(st.none() | st.floats(0, 1), min_size=1))
def test_of_seeds_none_is_less_likely_than_the_one_that_speaks(probabilities):
    said = [looks.at_once(p) for p in probabilities]
    assert WORDS.index(least(said).word) == max(WORDS.index(one.word) for one in said)
    assert least(said).probability in (None, min((p for p in probabilities if p is not None), default=None))


@pytest.mark.parametrize(
    ("cell", "first"),
    [
        ({"ratio": 1e-9}, "gradient"),
        ({"growth": 1e9}, "stream"),
        ({"rate": 1e-5}, "slow"),
        ({"guess": Guess(classes=10, cost=9.0, head="head", scale=9.0), "start": 9.0}, "start"),
        ({"ratio": 3.0}, "scores"),
    ],
)
def test_what_acts_on_the_link_that_breaks_is_tried_first_and_every_change_once(cell, first):
    chain = {name: cell[name] for name in ("ratio", "growth") if name in cell}
    own = made(24, steps=16, **chain)
    own = replace(own, facts=replace(own.facts, **{k: v for k, v in cell.items() if k not in chain}))
    found = replace(
        verdict([own]), stream=replace(verdict([own]).stream, verdict="fail" if first == "stream" else "pass")
    )
    keys = first_tried(found, [own])
    assert keys[:2] == ["smaller", "rate=usual"] and keys[2 : 2 + len(LINKS[first])] == list(LINKS[first])
    assert sorted(keys) == sorted(BY_KEY)


def test_a_change_is_held_against_the_model_as_it_is_after_as_many_updates():
    changed = replace(cell := trained(1.0, 160), facts=replace(cell.facts, change="rate/3"))
    beside = cure(changed, trained(3.0, 120))
    assert (beside.loss, beside.without, beside.updates) == (1.0, 3.0, 120) and beside.word != "fails"
    lost = cure(changed, trained(LEVEL, 16, broke=Broke(step=3, where="the loss")))
    assert (lost.loss, lost.updates) == (1.0, 160) and math.isnan(lost.without)
    alone = cure(replace(cell := trained(1.0, 16), facts=replace(cell.facts, change="rate/3")))
    assert alone.loss is None and alone.basis == "forecast"
