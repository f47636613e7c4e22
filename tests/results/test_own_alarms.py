"""What a watch warns of, on rows whose reason is known."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from stabkit.results.own.alarm import BEFORE, IN_A_ROW, JUMP, LATE, LEVEL, Alarms
from stabkit.results.own.cell import Sublayer, module_of

LAYERS = tuple(Sublayer(stack="stack", layer=i, kind="self", parameters=4) for i in (1, 2, 3))


def alarms():
    return Alarms(LAYERS)


def test_scores_that_say_nothing_of_the_input_are_the_level_of_frequencies_after_a_while():
    looking = alarms()
    row = {"information": LEVEL / 2}
    assert looking.see("scores", LATE // 2, row) is None, "a model may begin so"
    assert looking.see("scores", LATE, row) is None, "once is no reason"
    assert looking.see("scores", 2 * LATE, row).link == "level"
    assert looking.see("scores", 3 * LATE, row) is None, "each is told once"


def test_scores_that_come_to_say_something_start_the_count_again():
    looking = alarms()
    for step, value in ((LATE, LEVEL / 2), (2 * LATE, 2 * LEVEL), (3 * LATE, LEVEL / 2)):
        assert looking.see("scores", step, {"information": value}) is None


def test_a_step_many_times_its_own_median_jumps_and_one_that_grows_with_the_rate_does_not():
    looking = alarms()
    growing = alarms()
    for step in range(1, BEFORE + 1):
        assert looking.see("delta", step, {f"{own.name}@relative": 1e-4 for own in LAYERS}) is None
        assert growing.see("delta", step, {f"{own.name}@relative": 1e-4 * 2**step for own in LAYERS}) is None
    assert growing.see("delta", 9, {f"{own.name}@relative": 1e-4 * 2 ** (BEFORE + 1) for own in LAYERS}) is None
    row = {f"{own.name}@relative": 1e-4 for own in LAYERS} | {"stack.2.self@relative": 1.1e-4 * JUMP}
    alarm = looking.see("delta", 9, row)
    assert alarm.link == "jump" and "stack.2.self" in alarm.sentence


@pytest.mark.parametrize(("ratio", "warned"), [(0.005, True), (0.02, False), (300.0, True)])
def test_a_gradient_beyond_its_limit_is_warned_of_after_some_readings(ratio, warned):
    looking = alarms()
    row = {"stack.1.self": ratio, "stack.2.self": 1.0, "stack.3.self": 1.0}
    told = [looking.see("gradient", step, row) for step in range(IN_A_ROW)]
    assert told[:-1] == [None] * (IN_A_ROW - 1) and (told[-1] is not None) == warned


def test_a_warning_names_a_part_as_the_models_own_code_does():
    names = [f"h.{own.layer - 1}.attn" for own in LAYERS]
    looking = Alarms([replace(own, module=name) for own, name in zip(LAYERS, names, strict=True)])
    fast = looking.see("delta", 1, {f"{own.name}@relative": float(own.layer) for own in LAYERS})
    assert fast.sentence.startswith("one update moved stack.3.self (h.2.attn) by 3 times")
    row = {"stack.1.self": 1e-3, "stack.2.self": 1.0, "stack.3.self": 1.0}
    told = [looking.see("gradient", step, row) for step in range(IN_A_ROW)][-1]
    assert told.sentence.startswith("stack.1 (h.0.attn) receives")


def test_the_smallest_part_that_holds_a_sublayers_parameters():
    assert module_of(["h.5.mlp.up", "h.5.mlp.down"]) == "h.5.mlp"
    assert module_of(["h.5.mlp.up", "h.5.norm"]) == "h.5"
    assert module_of(["attn.up", "h.up"]) == "" == module_of([])
    assert module_of(["_orig_mod.h.5.mlp"]) == "h.5.mlp"


@pytest.mark.parametrize(
    ("rate", "tried"),
    [
        (math.nan, "a tenth of the rate (helped"),
        (5e-3, "a tenth of the rate, 5e-4 (helped"),
        (0.06, "the usual rate, 1e-3 (a tenth of the rate helped"),
    ],
)
def test_a_warning_names_the_change_to_try_and_the_rate_that_it_comes_to(rate, tried):
    looking = alarms()
    looking.rate, looking.usual = rate, 1e-3
    alarm = looking.see("delta", 1, {f"{own.name}@relative": 2.0 for own in LAYERS})
    assert alarm.link == "step"
    assert alarm.advice == f"try {tried} 8 of 26 failing models); stabkit probe tries changes on a copy"
    assert alarm.to_json()["advice"] == alarm.advice


def test_a_stream_that_grows_is_no_reason_and_one_that_its_type_hardly_holds_is():
    looking = alarms()
    names = {own.name: 1.0 for own in LAYERS}
    assert looking.see("stream", 0, {"stack": 1.0, **names, "stack@room": 1e30}) is None
    assert looking.see("stream", 1, {"stack": 1.0, **dict.fromkeys(names, 50.0), "stack@room": 1e30}) is None
    assert looking.see("stream", 2, {"stack": 1.0, **names, "stack@room": 5.0}).link == "stream"
