"""The first look: tensors by name, and what an output depends on; and that a rule less reads less, never wrongly."""

from __future__ import annotations

import math
import re

import pytest
import torch
from torch import nn

from stabkit.options import audit as options
from stabkit.own import audit
from stabkit.own.first_look import first_look, gains, sight
from stabkit.own.probe import built_model
from stabkit.own.sublayers import graph, sublayer
from stabkit.own.sublayers import watch as traced
from tests.own import zoo_models
from tests.own.page import gpt

TOKENS = torch.randint(2, 50, (3, 7), generator=torch.Generator().manual_seed(0))


def topics(model, *optimizers):
    return [(remark.topic, remark.names) for remark in first_look(model, optimizers)]


def test_a_healthy_model_is_remarked_on_nowhere_and_a_mask_may_hold_infinities():
    model = gpt(2)
    model.register_buffer("mask", torch.full((4, 4), -math.inf).triu(1))
    adam = torch.optim.AdamW(model.parameters())
    assert topics(model, adam) == []


def test_tensors_that_nobody_drew_are_named():
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
    model[0].bias.data[1] = math.nan
    model[1].weight.data.fill_(1e-38)
    model.register_buffer("scale", torch.tensor([math.nan]))
    assert topics(model) == [("not finite", ("0.bias", "scale")), ("never drawn", ("1.weight",))]
    assert "parameter 0.bias has 1 of 4 numbers that are not finite and 1 more" in first_look(model)[0].sentence


def test_a_norm_that_starts_at_another_gain_is_a_note():
    model = gpt(2)
    assert gains(model) == ()
    nn.init.zeros_(model.ln_f.weight)
    assert gains(model) == ("ln_f.weight is 0 throughout: what it feeds starts closed",)


def test_what_two_optimizers_step_is_named_and_a_table_that_muon_does():
    model = nn.Sequential(nn.Embedding(9, 4), nn.Linear(4, 9, bias=False))
    muon, adam = torch.optim.Muon(model.parameters(), lr=0.02), torch.optim.AdamW(model[1].parameters())
    assert topics(model, muon, adam) == [("optimizer", ("1.weight",)), ("optimizer", ("0.weight",))]


class Mixed(nn.Module):
    """Over one of its axes, or both."""

    def __init__(self, rows=False, ahead=True):
        super().__init__()
        self.embed, self.rows, self.ahead = nn.Embedding(60, 8), rows, ahead

    def forward(self, tokens):
        x = self.embed(tokens)
        x = x + (x.mean(1, keepdim=True) if self.ahead else (x * torch.arange(1, 8)[:, None]).cumsum(1))
        return x + self.rows * x.mean(0)


@pytest.mark.parametrize("rows", [False, True])
@pytest.mark.parametrize("ahead", [False, True])
def test_what_an_output_depends_on_is_found_by_changing_entries(rows, ahead):
    found = sight(Mixed(rows, ahead), TOKENS)
    assert (found.rows, found.ahead) == (rows, ahead)
    assert found.order is not ahead, "a mean does not know places"
    assert sight(Mixed(), (TOKENS, TOKENS)) is None, "of two inputs it is not told which has the tokens"


FORMS = {
    "a loss of the step": lambda model, loss: (model, lambda model, step: loss(model)),
    "batches": lambda model, loss: (model, (lambda model, batch: model(batch)[..., 0].sum(), [TOKENS, TOKENS])),
    "an optimizer": lambda model, loss: (model, loss, torch.optim.SGD(model.parameters(), lr=0.1)),
    "a scheduler": lambda model, loss: (
        model, loss, own := torch.optim.SGD(model.parameters(), lr=0.1), torch.optim.lr_scheduler.ConstantLR(own),
    ),
    "inputs": lambda model, loss: (model, (TOKENS,)),
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_audit_takes_every_form_of_a_factory(form):
    built_model.seeded(0)
    model, inputs = options.of(FORMS[form](gpt(2), lambda model: model(TOKENS)[..., 0].sum()), "form")
    done = audit.audit(model, inputs=inputs)
    assert done.depth == "2L" and done.coverage.read == {"self": 2, "ffn": 2}


def share(name):
    built_model.seeded(0)
    done = audit.audit(*(given := options.of(zoo_models.factory(name)(2), name))[:1], inputs=given[1])
    return done.coverage.share, {re.sub(r": .* in all", ": … in all", finding.what) for finding in done.findings}


RULES = {
    "adapters": ("lora", sublayer, "_adapters", lambda nodes, region: (set(), set())),
    "conditions": ("dit", sublayer, "_below", lambda nodes, at, own: _plain(nodes[at])),
    "streams": ("streams_in_one_tensor", traced, "mixes_streams", lambda *given: False),
    "pairs": ("rotary_complex", traced, "COMPLEX", {}),
}


def _plain(node):
    return node.inputs[0] if node.op in graph.PASS | graph.NORM else None


@pytest.mark.slow
@pytest.mark.parametrize("rule", RULES)
def test_without_a_rule_less_is_read_and_nothing_more_is_said(rule, monkeypatch):
    name, where, attribute, instead = RULES[rule]
    before, whole = share(name)
    monkeypatch.setattr(where, attribute, instead)
    after, part = share(name)
    assert after < before and part <= whole
