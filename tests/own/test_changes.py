"""Changes that may mend a model: each is what its line of code says, on a copy, and says where it finds nothing."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn
from torch.nn import functional

from stabkit.own.probe.built_model import make
from stabkit.own.probe.changes import EDITS, changed
from stabkit.own.probe.loop import cell, record
from stabkit.results.own.cure import BY_KEY, CHANGES, CLIP, HEAD
from stabkit.results.own.forecast import AXES, FAST, RATE, TESTED, ours
from stabkit.results.own.judged import judged
from tests.own import probe_models as models


def built(name="pre_ln", depth=4, lr=1e-3):
    return make(getattr(models, name), name, depth, 0, lr)


def weights(made):
    return {name: p.detach().clone() for name, p in made.model.named_parameters()}


def test_what_each_change_does_is_one_of_the_edits_and_each_edit_is_of_some_change():
    assert set(EDITS) == {change.edit for change in CHANGES}


@pytest.mark.parametrize(("key", "factor"), [("rate/3", 1 / 3), ("rate/10", 0.1), ("rate*3", 3.0), ("rate*10", 10.0)])
def test_a_rate_is_that_many_times_the_models_own(key, factor):
    made = changed(built(), key)
    assert made.optimizers[0].param_groups[0]["lr"] == pytest.approx(1e-3 * factor)
    assert record(made, 2).rate == pytest.approx(1e-3 * factor)


@pytest.mark.slow
@pytest.mark.parametrize(("lr", "there"), [(0.06, True), (1e-6, True), (0.01, False), (1e-4, False)])
def test_a_rate_beyond_those_of_all_tested_models_gets_no_forecast_and_the_usual_one_is_tried(lr, there):
    own = cell(made := built(lr=lr), record(made, 16, ramped=True), factory="a:b", depth=4, lr=lr, seed=0, steps=16)
    found = judged([own])
    assert (found.worst.forecast.axes == ("rate",)) is there
    again = changed(built(lr=lr), "rate=usual")
    assert (again is not None) is there
    if again is not None:
        assert again.optimizers[0].param_groups[0]["lr"] == pytest.approx(1e-3)
        facts = cell(again, record(again, 2), factory="a:b", depth=4, lr=lr, seed=0, steps=2, change="rate=usual").facts
        assert BY_KEY["rate=usual"].code(facts) == f"lr = 1e-3  # was {'6e-2' if lr > 1e-3 else '1e-6'}"


def test_a_rate_that_counts_as_far_lies_beyond_those_of_the_corpus():
    region = ours().region
    rates = region.places[:, -1] * region.spread[-1]
    assert list(AXES)[-1] == RATE and -math.log2(FAST) - 0.1 < rates.min() and rates.max() < math.log2(FAST)
    assert (2 ** rates.min(), 2 ** rates.max()) == pytest.approx(TESTED, rel=0.02)


def test_a_warm_up_is_left_out_where_there_is_a_schedule():
    assert record(changed(built(), "warmup"), 2).warmup == 200
    assert changed(built("post_ln_warm", lr=0.0), "warmup") is None


def test_clipping_is_that_of_all_gradients_once_an_update():
    made, alone = changed(built(lr=1e-2), "clip"), built(lr=1e-2)
    for step in range(1, 4):
        for one in (made, alone):
            one.optimizers[0].zero_grad()
            (10 * one.objective.at(one.model, step)).backward()
        nn.utils.clip_grad_norm_(alone.model.parameters(), CLIP)
        for one in (made, alone):
            one.optimizers[0].step()
    assert all(torch.equal(a, b) for a, b in zip(weights(made).values(), weights(alone).values(), strict=True))


def test_a_head_is_divided_unless_it_is_the_embedding_too():
    before, after = weights(built()), weights(changed(built(), "head"))
    assert torch.allclose(after["head.weight"], before["head.weight"] / HEAD)
    assert all(torch.equal(after[name], before[name]) for name in before if name != "head.weight")

    def tied(depth):
        model, loss = models.pre_ln(depth)
        model.head.weight = model.embed.weight
        return model, loss

    assert changed(make(tied, "tied", 4, 0, 1e-3), "head") is None


def test_an_embedding_gets_a_standard_deviation_of_1_unless_it_has_it():
    def small(depth):
        model, loss = models.pre_ln(depth)
        nn.init.normal_(model.embed.weight, std=0.02)
        return model, loss

    assert float(weights(changed(make(small, "small", 4, 0, 1e-3), "embedding"))["embed.weight"].std()) == (
        pytest.approx(1.0)
    )
    assert changed(built(), "embedding") is None, "torch draws it so"


def test_the_last_matrices_are_those_that_end_the_branches():
    before, after = weights(built(depth=4)), weights(changed(built(depth=4), "last/sqrt(2N)"))
    moved = {name for name in before if not torch.equal(before[name], after[name])}
    assert moved == {f"blocks.{i}.{place}" for i in range(4) for place in ("0.f.out.weight", "1.f.2.weight")}
    one = "blocks.2.1.f.2.weight"
    assert torch.allclose(after[one], before[one] / math.sqrt(8))


@pytest.mark.parametrize(("key", "power"), [("branch/sqrt(N)", -0.5), ("branch/N", -1.0)])
def test_a_scaled_branch_is_the_model_written_so(key, power):
    ours = changed(built("pre_ln", depth=4), key)
    theirs = make(lambda depth: models.with_loss(models.Stack(depth, gamma=depth**power)), "theirs", 4, 0, 1e-3)
    theirs.model.load_state_dict(ours.model.state_dict())
    tokens = models.text(3)
    assert torch.allclose(ours.model(tokens), theirs.model(tokens), atol=1e-5)
    assert changed(built("deepnorm"), key) is None, "its sums are not plain"


def test_deepnorm_in_place_of_post_ln_is_the_model_written_so():
    """Weights as drawn with gain β; outputs as those of N(αx + f(x)), but for the norm's ε."""
    ours, theirs = changed(built("post_ln", depth=6), "deepnorm"), built("deepnorm", depth=6)
    for (name, mine), other in zip(weights(ours).items(), weights(theirs).values(), strict=True):
        assert torch.allclose(mine, other, atol=1e-6), name
    tokens = models.text(3)
    assert torch.allclose(ours.model(tokens), theirs.model(tokens), atol=1e-4)
    facts = cell(ours, record(ours, 2), factory="a:b", depth=6, lr=0.0, seed=0, steps=2, change="deepnorm").facts
    assert BY_KEY["deepnorm"].code(facts).startswith("x = norm(1.86 * x + f(x))")
    assert "*= 0.38" in BY_KEY["deepnorm"].code(facts)


@pytest.mark.parametrize("name", ["pre_ln", "deepnorm", "keel"])
def test_deepnorm_is_not_offered_to_what_is_not_post_ln(name):
    assert changed(built(name), "deepnorm") is None


def torchs_own(depth):
    """torch's own layers, Post-LN: their attention never calls its last matrix as a module."""
    layers = [nn.TransformerEncoderLayer(models.WIDTH, 2, 128, 0.0, batch_first=True) for _ in range(depth)]
    model = nn.Sequential(nn.Embedding(models.WORDS, models.WIDTH), *layers, nn.Linear(models.WIDTH, models.WORDS))
    return models.with_loss(model)


@pytest.mark.parametrize("key", ["branch/N", "deepnorm"])
def test_a_branch_of_torchs_own_layer_is_scaled_whole(key):
    ours, tokens = changed(make(torchs_own, "torchs_own", 4, 0, 1e-3), key), models.text(3)
    alpha = 4 if key == "branch/N" else 8**0.25
    x = ours.model[0](tokens)
    for layer in list(ours.model)[1:-1]:
        by_hand = (
            (layer.norm1, lambda x, layer=layer: plain_attention(layer.self_attn, x)),
            (layer.norm2, layer._ff_block),
        )
        for norm, branch in by_hand:
            x = norm(x + branch(x) / (alpha if norm is layer.norm1 else 1))  # linear2's hook has scaled the other
    assert torch.allclose(ours.model(tokens), ours.model[-1](x), atol=1e-4)
    if key == "branch/N":
        facts = cell(ours, record(ours, 2), factory="a:b", depth=4, lr=0.0, seed=0, steps=2, change=key).facts
        assert BY_KEY[key].code(facts) == "x = norm(x + f(x) / 4)"


def plain_attention(attention, x):
    q, k, v = functional.linear(x, attention.in_proj_weight, attention.in_proj_bias).chunk(3, -1)
    q, k, v = (y.unflatten(-1, (2, -1)).transpose(1, 2) for y in (q, k, v))
    mixed = functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
    return functional.linear(mixed, attention.out_proj.weight, attention.out_proj.bias)


def large(depth):
    """Every matrix twenty times as large as its own initialisation."""
    model, loss = models.pre_ln(depth)
    with torch.no_grad():
        for name, p in model.named_parameters():
            if p.dim() > 1 and "embed" not in name:
                p.mul_(20)
    return model, loss


def test_matrices_drawn_far_too_large_are_made_as_small_as_is_usual():
    before, made = weights(make(large, "large", 4, 0, 1e-3)), changed(make(large, "large", 4, 0, 1e-3), "smaller")
    after = weights(made)
    moved = {name for name in before if not torch.equal(before[name], after[name])}
    assert moved == {name for name, p in before.items() if p.dim() > 1 and "embed" not in name}
    sizes = [float(p.std()) * p.shape[1] ** 0.5 for name, p in after.items() if name in moved and "head" not in name]
    assert 0.5 < min(sizes) <= 1.0 <= max(sizes) < 1.5
    facts = cell(made, record(made, 2), factory="a:b", depth=4, lr=0.0, seed=0, steps=2, change="smaller").facts
    again = make(large, "large", 4, 0, 1e-3)
    exec(BY_KEY["smaller"].code(facts), {"model": again.model})
    assert all(torch.allclose(a, b, rtol=1e-2) for a, b in zip(weights(again).values(), after.values(), strict=True))


@pytest.mark.parametrize("name", ["pre_ln", "post_ln", "deepnorm", "keel"])
def test_matrices_of_usual_size_are_left_alone(name):
    assert changed(built(name), "smaller") is None


@pytest.mark.slow
def test_no_forecast_is_given_of_matrices_larger_than_any_of_the_corpus():
    for name, axes in (("large", ("size of matrices",)), ("pre_ln", ())):
        made = make(large if name == "large" else models.pre_ln, name, 4, 0, 1e-3)
        own = cell(made, record(made, 16, ramped=True), factory="a:b", depth=4, lr=0.0, seed=0, steps=16)
        found = judged([own])
        assert found.worst.forecast.axes == axes
        assert (found.worst.forecast.probability is None) is (name == "large")


def written_before(model, tokens):
    """x + f(N(x)) with the weights of a Post-LN stack, and its last norm once more at the end."""
    x = model.embed(tokens)
    for block in model.blocks:
        for own in block:
            x = x + own.f(own.after(x))
    return model.head(own.after(x))


class Dropping(models.Sublayer):
    def forward(self, x):
        return self.after(functional.dropout(self.drop(x + self.f(x)), 0.0))


def dropping(depth):
    """Dropout as a module between the sum and its norm."""
    model, loss = models.post_ln(depth)
    for own in (own for block in model.blocks for own in block):
        own.__class__, own.drop = Dropping, nn.Dropout(0.1)
    return model, loss


@pytest.mark.parametrize("factory", [models.post_ln, dropping])
def test_the_norm_before_the_branch_is_the_model_written_so(factory):
    ours, plain = changed(make(factory, "f", 4, 0, 1e-3), "norm before"), make(factory, "f", 4, 0, 1e-3)
    for step in range(3):
        tokens = models.text(step)
        assert torch.equal(ours.model.eval()(tokens), written_before(plain.model, tokens))
        for one, scores in ((ours, ours.model), (plain, lambda tokens: written_before(plain.model, tokens))):
            one.optimizers[0].zero_grad()
            models.next_word(scores, tokens).backward()
            one.optimizers[0].step()
    assert all(torch.equal(a, b) for a, b in zip(weights(ours).values(), weights(plain).values(), strict=True))


def test_the_norm_of_torchs_own_layer_goes_before_its_branches():
    ours, plain = changed(make(torchs_own, "f", 3, 0, 1e-3), "norm before"), make(torchs_own, "f", 3, 0, 1e-3)
    tokens = models.text(3)
    x = plain.model[0](tokens)
    for layer in list(plain.model)[1:-1]:
        x = x + plain_attention(layer.self_attn, layer.norm1(x))
        x = x + layer.linear2(functional.relu(layer.linear1(layer.norm2(x))))
    assert torch.allclose(ours.model(tokens), plain.model[-1](layer.norm2(x)), atol=1e-5)


@pytest.mark.parametrize("name", ["pre_ln", "deepnorm", "keel"])
def test_a_norm_is_moved_only_from_behind_a_plain_sum(name):
    assert changed(built(name), "norm before") is None


def test_the_code_of_a_change_is_of_the_model_that_it_was_tried_on():
    facts = cell(
        changed(built(), "rate/10"), record(changed(built(), "rate/10"), 2), factory="a:b", depth=4, lr=0.0, seed=0,
        steps=2, change="rate/10",
    ).facts  # fmt: skip
    assert BY_KEY["rate/10"].code(facts) == "lr = 1e-4  # was 1e-3"
    assert "math.sqrt(8)" in BY_KEY["last/sqrt(2N)"].code(facts) and "/ 4" in BY_KEY["branch/N"].code(facts)


def test_the_code_for_last_matrices_does_what_was_tried():
    """The line that is shown, run on a model as it was."""
    made = changed(built(depth=4), "last/sqrt(2N)")
    facts = cell(made, record(made, 2), factory="a:b", depth=4, lr=0.0, seed=0, steps=2, change="last/sqrt(2N)").facts
    ours, theirs = built(depth=4), changed(built(depth=4), "last/sqrt(2N)")
    exec(BY_KEY["last/sqrt(2N)"].code(facts), {"math": math, "model": ours.model})
    assert all(torch.equal(a, b) for a, b in zip(weights(ours).values(), weights(theirs).values(), strict=True))


def test_the_code_of_the_head_is_of_the_model():
    made = changed(built(), "head")
    facts = cell(made, record(made, 2), factory="a:b", depth=4, lr=0.0, seed=0, steps=2, change="head").facts
    assert "'head.weight'" in BY_KEY["head"].code(facts)
