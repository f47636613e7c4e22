"""What a watch tells of weights between two updates, of restarts, of sums, and of gradients that are rounding."""

from __future__ import annotations

import warnings
from dataclasses import replace

import pytest
import torch
from torch import nn
from torch.nn import functional

import stabkit
from stabkit.own.watch.journal import StabilityWarning
from stabkit.own.watch.still import unchosen
from stabkit.results.own.alarm import Alarm, Alarms
from stabkit.results.own.guess import Guess
from tests.own.page import gpt

WORDS = torch.randint(0, 50, (40, 8, 17), generator=torch.Generator().manual_seed(3))


def trained(tmp_path, *, rate=1e-3, updates=9, model=None, optimizer=None, around=lambda step, model: None, times=1.0):
    """[(update, link)] of a training."""
    torch.manual_seed(0)
    model = model or gpt(2)
    optimizer = optimizer or torch.optim.AdamW(model.parameters(), lr=rate)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StabilityWarning)
        with stabkit.watch(model, optimizer, out=tmp_path) as watch:
            for step in range(updates):
                words = WORDS[step % len(WORDS)]
                loss = times * functional.cross_entropy(model(words[:, :-1]).flatten(0, 1), words[:, 1:].flatten())
                optimizer.zero_grad()
                loss.backward()
                watch.loss(loss)
                optimizer.step()
                around(step, model)
    return [(alarm.step, alarm.link) for alarm in watch.warnings]


def test_an_average_written_over_the_model_is_told_of_and_a_projection_is_not(tmp_path):
    first = []

    def written(step, model):
        first[:] = first or [p.detach().clone() for p in model.parameters()]
        for p, old in zip(model.parameters(), first, strict=True):
            p.data.copy_(old)

    def projected(step, model):
        for p in model.parameters():
            p.data.mul_(0.999999)

    assert trained(tmp_path / "written", around=written) == [(4, "undone")]
    assert trained(tmp_path / "projected", around=projected) == []


def test_steps_that_move_nothing_are_told_of_and_those_of_a_warm_up_are_not(tmp_path):
    model = gpt(2)
    adam = torch.optim.AdamW(model.parameters(), lr=1e-9, weight_decay=0.0)
    assert (8, "small") in trained(tmp_path / "small", model=model, optimizer=adam)
    again = gpt(2)
    rising = torch.optim.AdamW(again.parameters(), lr=1e-9, weight_decay=0.0)

    def warm(step, model):
        rising.param_groups[0]["lr"] *= 1.5

    links = [link for _, link in trained(tmp_path / "warm", model=again, optimizer=rising, around=warm)]
    assert "small" not in links


def test_a_sum_is_told_of_once_and_its_outlook_is_that_of_the_mean(tmp_path):
    assert trained(tmp_path / "sum", times=4.0) == [(0, "start")]
    guess = Guess(classes=50, cost=4.0, head="head.weight", scale=1.0)
    assert guess.summed(4.2) == 1.0 and guess.summed(16.0) == 4.0
    assert Guess(classes=10, cost=2.3, head="head", scale=1.0).summed(9.2) == 1.0, "of few classes it is not told"


def test_a_restart_with_an_empty_state_is_told_of_where_the_loss_or_the_rate_leaps():
    guess = Guess(classes=100, cost=4.6, head="head", scale=1.0)
    for anew, after, links in ((True, 2.8, ["resume"]), (True, 1.9, []), (False, 2.8, [])):
        alarms = Alarms((), guess=guess, anew=anew)
        for step, loss in enumerate((1.7, after)):
            alarms.see("loss", step, {"train": loss})
        assert list(alarms.raised) == links
    alarms = Alarms(())
    assert alarms.replaced(60, "AdamW", 1e-5, 1e-2, empty=True).link == "resume"
    assert alarms.replaced(60, "AdamW", 1e-5, 1e-2, empty=False) is None
    assert alarms.replaced(60, "AdamW", 1e-3, 1e-3, empty=True) is None


def test_a_link_is_told_of_again_for_other_tensors_only():
    alarms = Alarms(())
    said = [Alarm(step=i, link="reach", sentence="", numbers={}) for i in range(3)]
    of = [replace(alarm, names=frozenset(own)) for alarm, own in zip(said, ("ab", "b", "bc"), strict=True)]
    assert [alarms.add(alarm) is not None for alarm in of] == [True, False, True]
    assert [alarm.step for alarm in alarms.raised.values()] == [0, 2]


def test_nothing_is_advised_before_an_update():
    alarm = Alarm(step=0, link="finite", sentence="", numbers={})
    assert alarm.advice == "" and "a tenth" in Alarm(step=1, link="finite", sentence="", numbers={}).advice


def test_an_expert_that_no_token_chose_is_no_fault_and_all_of_them_are():
    groups = {f"{h}": [f"h.{h}.many.{i}.{part}.weight" for i in range(3) for part in ("up", "down")] for h in range(3)}
    lists = {"h", *(f"h.{h}.many" for h in range(3))}
    first = groups["0"]
    assert set(unchosen(first[:2], groups, lists).values()) == {"h.0.many.0"}
    assert unchosen(first[:1], groups, lists) == {}, "a part of an expert"
    assert unchosen(first, groups, lists) == {}, "no token chose any"
    assert unchosen([name for own in groups.values() for name in own[:2]], groups, lists) == {}, (
        "the first of all layers"
    )
    assert unchosen(first[:2], groups, {"h"}) == {}, "no list of modules"


@pytest.mark.parametrize("share", [1e-9, 1.0])
def test_a_gradient_of_rounding_is_none(share):
    from stabkit.own.chain.gradients import arrived, sizes_of

    wide, weak = nn.Parameter(torch.zeros(4, 4)), nn.Parameter(torch.zeros(4, 2))
    pair = {"ffn": [wide, weak]}
    there = arrived(torch.tensor([1.0, share**2]), pair, sizes_of(pair))
    assert there.tolist() == [True, share == 1.0]
