"""What a loss is asked for: a batch at every step, a schedule, and something to learn where there is none."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional
from torch.optim import lr_scheduler

from stabkit.errors import UsageError
from stabkit.own.chain.reader import information
from stabkit.own.probe.built_model import ONE_BATCH, make
from stabkit.own.probe.learnable import Pictures, Words
from stabkit.own.probe.loop import cell, readings, record
from stabkit.own.probe.objective import objective, takes_step
from stabkit.own.probe.schedule import HOLD, RISE, Peak, ramp
from stabkit.results.own.measured import (
    EVERY,
    RAMP,
    SILENT,
    TOP,
    UPDATES,
    measured,
    ramp_information,
)
from stabkit.results.own.verdict import verdict
from tests.own import probe_models as models


def plain(model):
    return None


def by_name(model, step=0):
    return None


def second(model, t):
    return None


def closed(model, tokens=3):
    return None


@pytest.mark.parametrize(("loss", "wants"), [(plain, False), (by_name, True), (second, True), (closed, False)])
def test_a_loss_says_by_its_signature_whether_it_wants_the_step(loss, wants):
    assert takes_step(loss) is wants


def test_every_update_has_a_batch_of_its_own_and_none_is_that_which_is_read():
    seen = []

    def factory(depth):
        model = models.Stack(depth)
        return model, lambda model, step: seen.append(step) or models.next_word(model, models.text(step))

    made = make(factory, "factory", 2, 0, 0.0)
    assert made.fresh and ONE_BATCH not in made.notes
    seen.clear()
    found = record(made, 4)
    assert list(dict.fromkeys(seen)) == [1, 2, 3, 4, 5], "no update sees step 0, whose batch is read"
    assert torch.equal(made.call.args[0], models.text(0)) and len(found.records["loss"].steps) == 5


def test_batches_of_an_iterable_come_in_their_order_and_again():
    made = make(models.loader, "loader", 2, 0, 0.0)
    assert made.fresh and torch.equal(made.call.args[0], models.text(0))
    by = objective((models.next_word, [models.text(0), models.text(1)]), "x")
    model = models.Stack(2)
    with torch.no_grad():
        assert float(by.at(model, 3)) == float(by.at(model, 1)) != float(by.at(model, 0))
    with pytest.raises(UsageError, match="the iterable is empty"):
        objective((models.next_word, []), "x")


@pytest.mark.parametrize("name", ["one_batch", "deaf_to_the_step"])
def test_one_batch_for_all_updates_is_said(name):
    def deaf_to_the_step(depth):
        model, loss = models.one_batch(depth)
        return model, lambda model, step: loss(model)

    made = make(deaf_to_the_step if name == "deaf_to_the_step" else models.one_batch, name, 2, 0, 0.0)
    assert not made.fresh and ONE_BATCH in made.notes


def test_a_warm_up_and_a_scheduler_set_the_rate_of_each_update_and_are_known():
    own = record(make(models.post_ln_warm, "post_ln_warm", 2, 0, 0.0), 4)
    ours = record(make(models.post_ln, "post_ln", 2, 0, 1e-3, 50), 4)
    none = record(make(models.post_ln, "post_ln", 2, 0, 1e-3), 4)
    assert (own.warmup, ours.warmup, none.warmup) == (50, 50, 0)
    assert own.rate == pytest.approx(1e-3) and ours.rate == pytest.approx(1e-3)
    moved = [found.records["update"].value("state", 1) for found in (own, ours, none)]
    assert moved[0] == pytest.approx(moved[1], rel=1e-6) and moved[2] > 10 * moved[0]
    with pytest.raises(UsageError, match="--warmup is for a factory without a scheduler"):
        make(models.post_ln_warm, "post_ln_warm", 2, 0, 0.0, 10)


def rates_of(factory, **asked):
    """What was recorded, and the rate of every update of a probe."""
    made = make(factory, "factory", 2, 0, 0.0)
    seen = []
    made.optimizers[0].register_step_pre_hook(lambda own, *given: seen.append(own.param_groups[0]["lr"]))
    return record(made, UPDATES, **asked), seen


def test_on_the_ramp_the_rate_rises_geometrically_from_the_highest_to_sixteen_times_it():
    found, seen = rates_of(models.post_ln, ramped=True)
    assert seen[:UPDATES] == [1e-3] * UPDATES
    assert np.allclose(seen[UPDATES:], 1e-3 * np.geomspace(1, TOP, RAMP))
    scores, loss = found.records["ramp_scores"], found.records["ramp_loss"]
    assert list(scores.steps) == list(range(UPDATES, UPDATES + RAMP + 1, EVERY))
    assert len(loss.steps) == RAMP + 1 and scores.value("information", UPDATES) == pytest.approx(
        found.records["scores"].value("information", UPDATES)
    )
    assert not any(name.startswith("ramp_") for name in rates_of(models.post_ln)[0].records)


def test_a_schedule_that_has_yet_to_rise_is_led_up_to_its_highest_first():
    found, seen = rates_of(models.post_ln_warm, ramped=True)
    led = seen[UPDATES : UPDATES + RISE]
    assert np.allclose(np.diff(np.log(led)), np.log(50 / (UPDATES + 1)) / RISE) and led[-1] == pytest.approx(1e-3)
    begin = UPDATES + RISE + HOLD
    assert np.allclose(seen[begin:], 1e-3 * np.geomspace(1, TOP, RAMP)) and set(seen[begin - HOLD : begin]) == {1e-3}
    assert found.records["ramp_scores"].steps[0] == begin


def test_a_schedule_that_has_fallen_begins_the_ramp_at_its_highest():
    def falling(depth):
        model, loss = models.pre_ln(depth)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        return model, loss, optimizer, lr_scheduler.ExponentialLR(optimizer, 0.9)

    found, seen = rates_of(falling, ramped=True)
    assert found.rate == pytest.approx(1e-3) and seen[UPDATES - 1] < 3e-4
    assert np.allclose(seen[UPDATES:], 1e-3 * np.geomspace(1, TOP, RAMP))


def test_every_group_is_led_to_its_own_highest_rate():
    peak = Peak(update=0, highest=[[1e-3, 2e-3], [math.nan]], now=[[1e-3, 1e-4], [math.nan]], rises=True)
    rates = ramp(peak)
    assert len(rates) == RISE + HOLD + RAMP and all(math.isnan(own[1][0]) for own in rates)
    first, second = ([own[0][i] for own in rates] for i in (0, 1))
    assert first[: RISE + HOLD] == [1e-3] * (RISE + HOLD) and first[-1] == pytest.approx(16e-3)
    assert np.allclose(second[:RISE], 1e-4 * 20 ** (np.arange(1, RISE + 1) / RISE)) and second[-1] == pytest.approx(
        32e-3
    )
    assert len(ramp(replace(peak, rises=False))) == RAMP and ramp(replace(peak, rises=False))[0][0] == [1e-3, 2e-3]


def test_settings_that_a_scheduler_cycles_are_those_of_now_on_the_ramp():
    def cycled(depth):
        model, loss = models.pre_ln(depth)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        return model, loss, optimizer, lr_scheduler.OneCycleLR(optimizer, 1e-3, total_steps=200)

    made, seen = make(cycled, "cycled", 2, 0, 0.0), []
    made.optimizers[0].register_step_pre_hook(lambda own, *given: seen.append(own.param_groups[0]["betas"]))
    record(made, UPDATES, ramped=True)
    assert len(set(seen[:UPDATES])) == UPDATES and len(set(seen[UPDATES:])) == 1


def test_what_the_users_code_raises_on_the_ramp_is_its_end_and_loses_nothing():
    def raising(depth):
        model, loss = models.pre_ln(depth)

        def checked(model, step):
            if step > UPDATES + 8:
                raise ValueError("scale is negative")
            return loss(model, step)

        return model, checked

    made = make(raising, "raising", 2, 0, 0.0)
    own = cell(made, record(made, UPDATES, ramped=True), factory="a:b", depth=2, lr=0.0, seed=0, steps=UPDATES)
    assert ramp_information(own)[-1] == SILENT and ramp_information(own)[0] > SILENT
    assert own.facts.broke is None and measured(own).finite
    assert any("update 25 raised ValueError: scale is negative" in note for note in own.facts.notes)


def test_a_batch_that_is_not_there_and_a_full_memory_are_errors_of_their_own_on_the_ramp():
    def ending(error):
        def factory(depth):
            model, loss = models.pre_ln(depth)

            def short(model, step):
                if step > UPDATES + 8:
                    raise error
                return loss(model, step)

            return model, short

        return factory

    for error in (IndexError("list index out of range"), torch.OutOfMemoryError("no room")):
        with pytest.raises(type(error)):
            record(make(ending(error), "ending", 2, 0, 0.0), UPDATES, ramped=True)


@pytest.mark.parametrize(
    ("rows", "classes", "axes"), [(8, 100, ("few scores",)), (16, 9, ("few scores",)), (16, 10, ())]
)
def test_few_scores_at_a_time_are_out_of_range(rows, classes, axes):
    class Pooled(models.Stack):
        def forward(self, tokens):
            return super().forward(tokens).mean(1)

    def classifier(depth):
        model = Pooled(depth)
        model.head = torch.nn.Linear(models.WIDTH, classes)
        labels = torch.randint(classes, (64, rows), generator=torch.Generator().manual_seed(0))
        words = Words(50, 0)
        return model, lambda model, step: functional.cross_entropy(model(words.batch((rows, 8), step)), labels[step])

    made = make(classifier, "classifier", 4, 0, 1e-3)
    own = cell(made, record(made, UPDATES, ramped=True), factory="a:b", depth=4, lr=1e-3, seed=0, steps=UPDATES)
    assert verdict([own]).forecast.axes == axes


def test_a_loss_that_is_no_cross_entropy_of_the_scores_is_out_of_range():
    def regression(depth):
        model = models.Stack(depth)
        return model, lambda model, step: (model(models.text(step)) - 1).square().mean() / 4

    made = make(regression, "regression", 4, 0, 1e-3)
    own = cell(made, record(made, UPDATES, ramped=True), factory="a:b", depth=4, lr=1e-3, seed=0, steps=UPDATES)
    assert verdict([own]).forecast.axes == ("no scores",)


def test_what_breaks_on_the_ramp_tells_nothing_from_there_on():
    made = make(models.exploding_on_the_ramp, "exploding_on_the_ramp", 2, 0, 0.0)
    found = record(made, UPDATES, ramped=True)
    own = cell(made, found, factory="a:b", depth=2, lr=0.0, seed=0, steps=UPDATES)
    told = ramp_information(own)
    there = len(found.records["ramp_scores"].steps)
    assert found.broke is None and 0 < there < RAMP // EVERY + 1
    assert (told[:there] > SILENT).all() and (told[there:] == SILENT).all()
    seen = measured(own)
    assert seen.ramp_information_least == SILENT


def test_a_rate_asked_for_is_that_of_the_schedules_peak():
    made = make(models.post_ln_warm, "post_ln_warm", 2, 0, 3e-3)
    assert record(made, 2).rate == pytest.approx(3e-3)


def test_a_schedule_that_ends_and_one_that_waits_for_a_loss_are_no_crash():
    def one(depth):
        model, loss = models.pre_ln(depth)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        return model, loss, optimizer, lr_scheduler.OneCycleLR(optimizer, 1e-2, total_steps=30)

    def plateau(depth):
        model, loss = models.pre_ln(depth)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        return model, loss, optimizer, lr_scheduler.ReduceLROnPlateau(optimizer)

    found = record(make(one, "one", 2, 0, 0.0), 3)
    assert found.rate == pytest.approx(1e-2) and found.warmup > 1
    assert any("ReduceLROnPlateau" in note for note in make(plateau, "plateau", 2, 0, 0.0).notes)


@given(st.integers(1, 5000))
def test_what_is_read_begins_at_0_and_ends_with_two_in_a_row(steps):
    read = readings(steps)
    assert {0, steps, max(0, steps - 1)} <= read and max(read) == steps and len(read) <= 2 * math.log2(steps) + 4


@given(st.integers(3, 50_000), st.integers(0, 100))
def test_words_are_of_the_vocabulary_and_a_function_of_seed_and_step(vocabulary, seed):
    words = Words(vocabulary, seed)
    batch = words.batch((4, 8), 3)
    assert 0 <= int(batch.min()) and int(batch.max()) < vocabulary - 1, "the last hides others"
    assert torch.equal(batch, Words(vocabulary, seed).batch((4, 8), 3))
    assert not torch.equal(words.batch((8, 32), 3), words.batch((8, 32), 4))
    hidden = words.hidden(batch, 3)
    assert hidden.any() and hidden.shape == batch.shape


def test_the_loss_of_who_knows_the_order_is_that_of_the_chain_itself_on_its_batches():
    words = Words(200, 0)
    tokens = np.searchsorted(words.ids, words.batch((2000, 32), 5).numpy())
    known = -np.log(words.after[tokens[:, :-1], tokens[:, 1:]]).mean()
    assert known == pytest.approx(words.entropy, abs=0.01) and words.entropy < words.frequencies - 2


def test_the_level_of_frequencies_is_the_entropy_of_what_comes():
    words = Words(100, 0)
    tokens = torch.stack([words.batch((64, 64), step) for step in range(40)]).flatten()
    counts = torch.bincount(tokens, minlength=100).double() / len(tokens)
    counts = counts[counts > 0]
    assert float(-(counts * counts.log()).sum()) == pytest.approx(words.frequencies, abs=0.05)
    assert np.allclose(words.often @ words.after, words.often, atol=1e-9), "the chain keeps its frequencies"
    bigram = float((words.often * -(words.after * np.log(np.maximum(words.after, 1e-300))).sum(1)).sum())
    assert bigram < words.frequencies - 2, "there is much to be learnt beyond frequencies"


def test_classes_of_images_are_told_by_their_means():
    pictures = Pictures(10, (3, 32, 32), 0)
    images, labels = pictures.batch(64, 5)
    means = torch.from_numpy(pictures.means).float().flatten(1)
    nearest = (images.flatten(1) @ means.T - means.square().sum(1) / 2).argmax(1)
    assert (nearest == labels).float().mean() > 0.9 and pictures.frequencies == pytest.approx(math.log(10))


def test_a_model_that_sees_what_comes_guesses_hidden_words():
    class Seeing(models.Stack):
        def forward(self, tokens):
            x = self.embed(tokens)
            for block in self.blocks:
                x = block(x)
            return self.head(self.norm(x + x.mean(1, keepdim=True)))

    made = make(lambda depth: Seeing(depth), "seeing", 2, 0, 0.0)
    (given_,) = made.call.args
    assert (given_ == models.WORDS - 1).float().mean() == pytest.approx(0.25, abs=0.1)
    next_ = make(models.alone, "alone", 2, 0, 0.0)
    assert (next_.call.args[0] == models.WORDS - 1).sum() == 0


def test_a_learnable_task_is_learnt_past_its_frequencies():
    made = make(models.alone, "alone", 2, 0, 3e-3)
    for step in range(1, 61):
        made.optimizers[0].zero_grad()
        made.objective.at(made.model, step).backward()
        made.optimizers[0].step()
    with torch.no_grad():
        assert float(made.objective.at(made.model, 10_000)) < made.objective.frequencies - 1


def test_information_is_of_scores_from_the_first_token_to_the_last():
    """One token of three says something else: H of (1/3, 2/3)."""
    scores = torch.tensor([[50.0, 0.0], [0.0, 50.0], [0.0, 50.0]])
    assert information(scores) == pytest.approx(math.log(3) - 2 / 3 * math.log(2), rel=1e-6)
    assert information(scores.flip(0)) == pytest.approx(information(scores), rel=1e-6)
