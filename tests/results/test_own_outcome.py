"""What hundreds of updates saw of a user's model: by made-up losses whose answer is known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stabkit.results.own import verdict as found
from stabkit.results.own.cell import Broke, ModelCell
from stabkit.results.own.guess import Guess
from stabkit.results.own.judged import judged
from stabkit.results.own.outcome import ENDS, ENOUGH, LAST, LEARNT, LEAST, NOTHING, SLOW, ends_at, trained
from stabkit.results.own.verdict import verdict
from stabkit.results.records import Table
from stabkit.wording import links
from tests.results.test_own import made

LEVEL = 4.0


def ended(depth, loss, seed=0, *, steps=ENOUGH, lr=0.0, **facts) -> ModelCell:
    """A cell whose last losses have this mean."""
    cell = made(depth, seed, steps=steps)
    falls = np.full(steps + 1, 5.0)
    falls[-LAST:] = loss + np.linspace(-0.1, 0.1, LAST)
    known = {"fresh": True, "frequencies": LEVEL, "lr": lr, **facts}
    records = {**cell.records, "loss": Table(np.arange(steps + 1), ("train",), falls[:, None])}
    return ModelCell(replace(cell.facts, **known), records)


@given(shallow=st.floats(0.5, 3.0), way=st.floats(-1.0, 1.5))
def test_the_word_is_that_of_how_much_of_the_way_the_deepest_went(shallow, way):
    seen = trained([ended(6, shallow), ended(48, LEVEL - way * (LEVEL - shallow))])
    assert seen is not None and seen.least.way == pytest.approx(way, abs=1e-6)
    if min(abs(way - LEARNT), abs(way - NOTHING)) > 1e-6:
        assert seen.word == ("trains" if way > LEARNT else "stuck" if way < NOTHING else "open")


def test_of_stabkits_own_chain_the_reference_is_who_knows_the_order_and_one_depth_is_enough():
    seen = trained([ended(48, 1.5, entropy=1.0)])
    assert seen is not None and seen.reference_depth is None and seen.least.way == pytest.approx(2.5 / 3.0)
    harmed = trained([ended(6, 3.5, entropy=1.0), ended(48, 3.6, entropy=1.0)])  # the shallowest would pass it
    assert harmed is not None and harmed.word == "stuck"


def test_a_reference_that_has_not_learnt_proves_nothing_but_that_nothing_was_learnt():
    stuck = trained([ended(6, 3.9), ended(48, 3.95)])
    assert stuck is not None and stuck.least.way is None and stuck.word == "stuck"
    better = trained([ended(6, 3.9), ended(48, 1.0)])
    assert better is not None and better.word == "open"


def test_each_seed_of_the_deepest_is_held_against_the_mean_of_the_shallowest():
    seen = trained(
        [ended(6, x, s) for s, x in enumerate((0.5, 1.5))]
        + [ended(12, 3.9)]
        + [ended(48, x, s) for s, x in enumerate((1, 3))]
    )
    assert seen is not None and (seen.reference_depth, seen.depth) == (6, 48)
    assert seen.reference == pytest.approx(1.0) and [own.loss for own in seen.seeds] == pytest.approx([1.0, 3.0])
    assert seen.word == "open" and seen.learnt == 1 and seen.least.seed == 1


@pytest.mark.parametrize("losses", [(1.0, 3.95), (3.95, 1.0, 3.95)])
def test_where_one_seed_trains_and_another_has_learnt_nothing_neither_word_is_said(losses):
    cells = [ended(48, loss, seed, entropy=1.0) for seed, loss in enumerate(losses)]
    assert verdict(cells).word == "open"
    said = links.answer(judged(cells))
    assert f"trains in 1 of {len(losses)} seeds" in said and "stuck" not in said


@given(updates=st.integers(LEAST, 2 * ENOUGH))
def test_what_has_learnt_nothing_is_stuck_only_after_enough_updates(updates):
    seen = trained([ended(48, LEVEL, steps=updates, entropy=1.0)])
    assert seen is not None and seen.word == ("stuck" if updates >= ENOUGH else "open")
    said = links.answer(judged([ended(48, LEVEL, steps=updates, entropy=1.0)]))
    known = max(slow.updates for slow in SLOW if slow.updates <= updates)
    assert f"had learnt nothing after {known} updates learnt later" in said


def test_a_training_that_ended_where_it_had_learnt_is_judged_by_its_own_updates():
    early, late = ended(48, 1.9, 0, steps=200, entropy=1.0), ended(48, 2.0, 1, entropy=1.0)
    early = ModelCell(replace(early.facts, steps=ENOUGH), early.records)
    seen = trained([early, late])
    assert seen is not None and seen.word == "trains" and [own.updates for own in seen.seeds] == [200, ENOUGH]
    assert verdict([early, late]).update.step  # the last step that both have


@given(level=st.floats(2.0, 8.0), share=st.floats(0.0, 0.85))
def test_it_ends_where_more_than_the_word_needs_is_seen(level, share):
    at = ends_at(level, share * level)
    assert at is not None and (level - at) / (level - share * level) == pytest.approx(ENDS) and ENDS > LEARNT
    assert ends_at(level, 0.95 * level) is None and ends_at(None, 1.0) is None


@pytest.mark.parametrize(
    "cells",
    [
        [ended(48, 1.0)],
        [ended(6, 1.0), ended(48, 1.0, steps=LEAST - 1)],
        [ended(6, 1.0, frequencies=None), ended(48, 1.0, frequencies=None)],
        [ended(6, 1.0), ended(48, 1.0, fresh=False)],
        [ended(48, 1.0, entropy=3.9)],
        [ended(6, 1.0), ended(48, 1.0, broke=Broke(step=9, where="the loss"))],
    ],
    ids=["one depth", "too few updates", "level not known", "one batch", "nothing to learn", "a number lost"],
)
def test_nothing_is_said_where_it_cannot_be_known(cells):
    assert trained(cells) is None


@given(reference=st.floats(0.5, 2.0), information=st.floats(1.0, 3.0), way=st.floats(-0.5, 1.2))
def test_of_a_loss_of_the_users_own_the_level_is_what_the_shallowest_loses_and_what_its_scores_tell(
    reference, information, way
):
    level = reference + information
    guess = Guess(classes=10, cost=1.0, head="", scale=1.0)
    shallow = ended(6, reference, frequencies=None, guess=guess)
    told = Table(np.array([0, LEAST]), ("information", "rows"), np.array([[0.0, 64.0], [information, 64.0]]))
    shallow = ModelCell(shallow.facts, {**shallow.records, "scores": told})
    seen = trained([shallow, ended(48, level - way * information, frequencies=None, guess=guess)])
    assert seen is not None and seen.estimated
    assert seen.level == pytest.approx(level) and seen.least.way == pytest.approx(way, abs=1e-6)
    other = ModelCell(replace(shallow.facts, start=9.0), shallow.records)  # a loss that is not of its scores
    assert trained([other, ended(48, 1.0, frequencies=None)]) is None


def test_what_was_seen_stands_above_the_forecast_and_above_a_link():
    cells = [ended(6, 1.0), ended(48, 1.1)]
    said = verdict(cells)
    assert said.word == "trains" and said.forecast.word == "out of range" and not said.broken
    assert "trains" in links.answer(judged(cells)) and "0.97 of the way" in links.answer(judged(cells))
    assert said.update.healthy is None and said.gradient.healthy is None and said.stream.healthy is not None
    assert not judged([ended(6, 1.0), ended(48, 4.0)]).mendable


def test_what_has_a_rate_beyond_all_tested_ones_is_held_against_none_of_their_numbers(monkeypatch):
    cells = [made(6, steps=16), made(12, steps=16)]
    usual = verdict(cells)
    monkeypatch.setattr(found, "forecast", lambda cells: replace(usual.forecast, axes=("rate",)))
    fast = verdict(cells)
    assert usual.update.healthy is not None and fast.update.healthy is None
    assert fast.stream == usual.stream and fast.stream.healthy is not None
