"""What people have reported of models that went wrong, each beside its healthy twin: audit, probe and watch say it."""

from __future__ import annotations

import math
import re
import warnings

import pytest
import torch

import stabkit
from stabkit import methods
from stabkit.figures.model_curves import WATCHED
from stabkit.own.audit import audit
from stabkit.own.probe.built_model import make
from stabkit.own.probe.loop import record
from stabkit.own.sublayers import reading
from stabkit.own.watch.journal import StabilityWarning
from stabkit.results.own.cell import Facts, ModelCell
from stabkit.results.own.guess import Guess
from stabkit.results.own.verdict import verdict
from stabkit.wording.chain import why
from tests.own import reported_models as models
from tests.own.test_optimizers import held
from tests.own.test_watch import loss_of, tokens

AUDITED = {
    "two norms": ("norm placement", "self-attention in all 3 layers: 2 norms stand in a row before the branch"),
    "raw keys and values": ("norm placement", "self-attention in all 3 layers: key and value read the stream without"),
    "normed shortcut": ("shortcut", "feed-forward in all 3 layers: the shortcut takes the normed x"),
    "attention's normed shortcut": ("shortcut", "self-attention in all 3 layers: the shortcut takes the normed x"),
    "no logit scale": ("scale", "logits are multiplied by 1, not 1/√32 = 0.1768"),
    "logits over d": ("scale", "logits are multiplied by 0.03125, not 1/√32 = 0.1768"),
    "shared attention": ("shared layers", "decoder, self-attention in all 3 layers: layers share one set of weights"),
    "κ 0": ("scale", "the branch's input is multiplied by 0, not 1: every branch reads 0"),
    "κ": ("scale", "the branch's input is multiplied by 0.57735 … 0.70711, not 1"),
}


def judged(slip, method="pre-ln", **more):
    torch.manual_seed(0)
    return audit(models.Decoder(3, slip, **more), methods.build(method, {}), 0, 3)


@pytest.mark.parametrize("slip", AUDITED)
def test_an_audit_names_the_slip_at_its_place_and_nothing_else(slip):
    topic, said = AUDITED[slip]
    (finding,) = judged(slip).findings
    assert finding.topic == topic and said in finding.what
    assert judged("").findings == ()


def test_kappa_is_compared_with_a_recipe_that_has_one():
    assert judged("κ", "layernorm-scaling").findings == ()
    (finding,) = judged("", "layernorm-scaling").findings
    assert "multiplied by 1, not 0.57735 … 0.70711" in finding.what


def test_a_stack_that_looks_ahead_is_an_encoder_and_one_that_does_not_a_decoder():
    torch.manual_seed(0)
    for slip, stack in (("no mask", "encoder"), ("", "decoder")):
        assert {row.stack for row in audit(models.Decoder(3, slip)).rows} == {stack}


def test_gpt2s_own_initialisation_passes_at_any_width_and_its_missing_factor_is_named():
    torch.manual_seed(0)
    model = models.Decoder(4, std=0.02)
    method = methods.build("gpt2-init", {})
    (finding,) = audit(model, method, 0, 4).findings
    assert re.search("out and down in all 4 layers, 2.8. × too large: not scaled at all", finding.what)
    with torch.no_grad():
        for block in model.blocks:
            block.o.weight /= math.sqrt(8)
            block.down.weight /= math.sqrt(8)
    assert audit(model, method, 0, 4).findings == ()
    (base,) = audit(models.Decoder(4, std=0.02), methods.build("pre-ln", {}), 0, 4).findings
    assert base.topic == "base initialisation" and "N(0, 0.02²) for every shape" in base.what


def test_an_audit_tells_of_a_head_that_is_too_large():
    (note,) = [note for note in judged("a large head").notes if "scores" in note]
    assert re.search(
        "a uniform guess over 100 classes gives ln 100 = 4.61; the standard deviation of head.weight is (8|8.1|7.9) ",
        note,
    )
    assert not any("scores" in note for note in judged("").notes)


def facts(name, depth, recorded, made):
    return Facts(
        factory=name, depth=depth, lr=0.0, seed=0, steps=4, sublayers=recorded.sublayers, how="", notes=made.notes,
        model="", parameters=1, width=64, tokens=1, batch="", start=made.start, broke=recorded.broke, optimizer="",
        rate=1e-3, guess=recorded.guess, normed=recorded.stream.normed, dtype=recorded.dtype,
        unreached=recorded.unreached, unreached_share=recorded.unreached_share,
        unregistered=recorded.stream.unregistered,
    )  # fmt: skip


def probed(factory, depths=(2, 4, 8), steps=4):
    cells = []
    for depth in depths:
        made = make(factory, "factory", depth, 0, 1e-3)
        recorded = record(made, steps)
        cells.append(ModelCell(facts("factory", depth, recorded, made), recorded.records))
    return verdict(cells)


@pytest.mark.slow
def test_a_probe_fails_where_blocks_are_registered_nowhere_or_no_gradient_arrives():
    found = probed(models.of("a plain list"))
    assert found.gradient.verdict == "fail"
    assert "all 16 sub-layers are not among the model's parameters (blocks, a plain list)" in why(found.gradient)
    found = probed(models.of("κ 0"))
    assert found.gradient.verdict == "fail" and "received no non-zero gradient" in why(found.gradient)
    assert probed(models.of("")).gradient.verdict == "pass"


def test_of_nested_sums_the_outer_one_is_the_stream():
    torch.manual_seed(0)
    stream = reading.found(models.Decoder(3, "inner sum"), (tokens(0),))
    assert [place.name for place in stream.sublayers] == [f"stack.{i}.{k}" for i in (1, 2, 3) for k in ("self", "ffn")]
    assert not any("shortcuts" in note for note in stream.notes)


def test_a_row_that_is_wholly_masked_is_told_as_that_row():
    made = make(models.masked, "masked", 3, 0, 1e-3)
    broke = record(made, 2).broke
    assert broke is not None and broke.where == "stream of stack.1.self" and "1 of 8 rows" in broke.detail
    assert f"the loss is {made.start:.3g}" in broke.detail and "gradients are not finite" in broke.detail


def test_a_first_loss_far_above_a_guess_is_told_with_its_cause():
    made = make(models.of("a large head"), "factory", 3, 0, 1e-3)
    said = record(made, 1).guess.high(made.start)
    assert re.search(
        r"a uniform guess over 100 classes gives ln 100 = 4.61; "
        r"the standard deviation of head.weight is (8|8.1|7.9) × 1/√d",
        said,
    )
    well = make(models.of(""), "factory", 3, 0, 1e-3)
    assert record(well, 1).guess.high(well.start) == ""
    sound = Guess(classes=100, cost=24.0, head="head.weight", scale=8.0)
    assert "a uniform guess" in sound.high(24.1) and "10 times what the logits cost" in sound.high(240.0)
    assert not Guess(classes=100, cost=5.2, head="", scale=1.0).high(5.2)


def watched(tmp_path, slip="", steps=9, rate=1e-3, dtype=torch.float32, **more):
    """The warnings of a training."""
    torch.manual_seed(0)
    model = models.Decoder(4, slip).to(dtype)
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate, weight_decay=0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StabilityWarning)
        with stabkit.watch(model, optimizer, out=tmp_path, **more) as watch:
            for step in range(steps):
                optimizer.zero_grad()
                loss = loss_of(model, tokens(step))
                loss.backward()
                watch.loss(loss)
                optimizer.step()
    return watch.warnings


@pytest.mark.slow
def test_a_watch_tells_of_what_no_optimizer_holds_and_what_no_gradient_reaches(tmp_path):
    (said,) = watched(tmp_path, "a plain list")
    assert (said.link, said.step) == ("owned", 0) and "(blocks, a plain list)" in said.sentence
    tmp_path = tmp_path / "detached"
    (said,) = watched(tmp_path, "detached")
    assert (said.link, said.step) == ("reach", 1)
    assert "no gradient reaches the trainable stack.1 … stack.2: something before stack.3.self cuts" in said.sentence
    (page,) = (figure for figure in WATCHED if figure.name.endswith("gradient"))
    assert page.title(held(tmp_path)) == "Gradient: none arrives at 2 of 4 layers"
    (said,) = watched(tmp_path, "κ 0")
    assert (said.link, said.step) == ("reach", 8) and "norm tensors" in said.sentence
    assert watched(tmp_path) == []


@pytest.mark.slow
def test_a_watch_tells_of_what_has_a_gradient_and_stays(tmp_path):
    (said,) = watched(tmp_path, rate=2e-4, dtype=torch.bfloat16)
    assert (said.link, said.step) == ("still", 8)
    assert "norm tensors" in said.sentence and "weights in bfloat16" in said.sentence
    (said,) = watched(tmp_path, rate=0.0)
    assert said.link == "still" and "did not move in 8 readings" in said.sentence
    assert watched(tmp_path, steps=7, rate=0.0) == []


def test_a_watch_tells_of_a_first_loss_far_above_a_guess(tmp_path):
    (said,) = watched(tmp_path, "a large head", steps=2)
    assert (said.link, said.step) == ("start", 0) and "head.weight is" in said.sentence
