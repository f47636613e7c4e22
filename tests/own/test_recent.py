"""Models as they are trained in 2026: layers counted right, growth judged by what it costs."""

from __future__ import annotations

from importlib.util import find_spec

import pytest
import torch

from stabkit.own.sublayers import reading
from stabkit.wording.chain import why
from tests.conftest import need
from tests.own import probe_models as plain
from tests.own import recent_models as models
from tests.own.test_reported import probed
from tests.own.test_watch import tokens

NAMES = ("nanochat", "attention_residuals", "mhc", "u_net")


def built(name, depth):
    torch.manual_seed(0)
    if name.startswith("hyper"):
        need("libraries", find_spec("hyper_connections") is not None, "hyper-connections")
    made = getattr(models, name)(depth)
    return made[0] if isinstance(made, tuple) else made


@pytest.mark.parametrize(
    "name",
    [*NAMES, *(pytest.param(n, marks=pytest.mark.libraries) for n in ("hyper_connections", "hyper_connections_mhc"))],
)
def test_layers_are_counted_right_and_read_again_after_an_update(name):
    model = built(name, 4)
    stream = reading.found(model, (tokens(0),))
    assert [place.name for place in stream.sublayers] == [
        f"stack.{layer}.{kind}" for layer in (1, 2, 3, 4) for kind in ("self", "ffn")
    ]
    assert stream.how == "sums x + f(x)" and stream.normed == ("stack",)
    assert all(place.parameters for place in stream.sublayers)
    before = stream.read(model, (tokens(0),))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.01 * torch.randn_like(parameter))
    after = stream.read(model, (tokens(0),))
    assert len(before.x["stack"]) == len(after.x["stack"]) == 9
    assert not torch.equal(before.output, after.output)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_none_of_them_fails(name):
    found = probed(getattr(models, name), (2, 4, 8))
    assert not found.failing, found
    assert found.stream.verdict == "pass"


@pytest.mark.slow
def test_shortcuts_that_multiply_fail_by_the_head_room_of_float16_and_by_nothing_else_of_the_stream():
    found = probed(models.nanochat_steep, (3, 6, 12, 18), steps=1).stream
    assert found.verdict == "fail" and "of the largest float16 number" in why(found) and found.limit == 10.0
    beyond = probed(models.nanochat_steep, (3, 6, 24), steps=1).stream
    assert beyond.verdict == "fail" and "overflows float16 at 24 layers" in why(beyond)


def test_the_head_room_is_that_of_the_largest_entry_and_none_where_one_is_no_number():
    one = torch.ones(2, dtype=torch.float16)
    assert reading.headroom([one, 8 * one]) == torch.finfo(torch.float16).max / 8
    assert reading.headroom([one, one * float("nan")]) == reading.headroom([one * float("inf"), one]) == 0.0
    assert reading.headroom([0 * one]) == torch.finfo(torch.float16).max


@pytest.mark.slow
def test_growth_that_a_norm_divides_out_passes_until_the_upper_branches_are_nothing_beside_it():
    found = probed(plain.growing_normed, (2, 4, 8)).stream
    assert found.verdict == "pass" and "the final norm divides this out" in why(found)
    assert probed(plain.growing, (2, 4, 8)).stream.verdict == "fail"
    found = probed(plain.diluted, (3, 6, 12)).stream
    assert found.verdict == "fail" and "too little to count" in why(found) and found.limit == 1e-3
