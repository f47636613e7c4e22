"""The largest attention logit of a pass, however the attention is written, and the warning of a watch."""

from __future__ import annotations

import math
import warnings
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn import functional

import stabkit
from stabkit.own.chain.reader import Reader
from stabkit.own.sublayers import attention, reading
from stabkit.results.own.alarm import GROWN, LOGIT, Alarms
from stabkit.results.own.cell import Sublayer
from stabkit.results.records import Recorder

WIDTH, HEADS, LENGTH = 16, 2, 7


class Attention(nn.Module):
    """Causal, written in one of the usual ways."""

    def __init__(self, how: str) -> None:
        super().__init__()
        shared = 1 if how == "grouped" else HEADS
        self.how, self.head = how, WIDTH // HEADS
        self.query, self.out = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)
        self.key, self.value = (nn.Linear(WIDTH, shared * self.head) for _ in range(2))
        nn.init.normal_(self.query.weight, std=2.0)

    def logits(self, x: torch.Tensor) -> torch.Tensor:
        """By hand."""
        q, k = (y.unflatten(-1, (-1, self.head)).transpose(1, 2) for y in (self.query(x), self.key(x)))
        z = q @ k.repeat_interleave(q.shape[1] // k.shape[1], 1).transpose(-1, -2) / math.sqrt(self.head)
        return z if self.how == "whole" else z.masked_fill(torch.ones(LENGTH, LENGTH).triu(1).bool(), -math.inf)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = (
            y.unflatten(-1, (-1, self.head)).transpose(1, 2) for y in (self.query(x), self.key(x), self.value(x))
        )
        seen = torch.ones(LENGTH, LENGTH).tril().bool()
        match self.how:
            case "written out":
                mixed = torch.softmax(self.logits(x), -1) @ v
            case "masked":
                mixed = functional.scaled_dot_product_attention(q, k, v, attn_mask=seen)
            case "added":
                added = torch.zeros(LENGTH, LENGTH).masked_fill(~seen, -math.inf)
                mixed = functional.scaled_dot_product_attention(q, k, v, attn_mask=added)
            case "grouped":
                mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
            case _:
                mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=self.how != "whole")
        return self.out(mixed.transpose(1, 2).flatten(2))


class Model(nn.Module):
    """Pre-LN of two blocks, a feed-forward each."""

    def __init__(self, how: str = "causal") -> None:
        super().__init__()
        self.embed = nn.Embedding(20, WIDTH)
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(4))
        self.attention = nn.ModuleList(Attention(how) for _ in range(2))
        self.feed = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(2))
        self.head = nn.Linear(WIDTH, 20)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.embed(tokens)
        for i in range(2):
            x = x + self.attention[i](self.norms[2 * i](x))
            x = x + self.feed[i](self.norms[2 * i + 1](x))
        return self.head(x)


def largest(model: nn.Module, tokens: torch.Tensor) -> dict[str, float]:
    """As it is recorded."""
    stream, recorder = reading.found(model, tokens), Recorder()
    Reader(stream, {}, model).read(recorder, 0, stream.read(model, tokens))
    table = recorder.tables()["attention"]
    return dict(zip(table.sites, table.values[0].tolist(), strict=True))


@pytest.mark.parametrize("how", ["causal", "written out", "masked", "added", "grouped", "whole"])
def test_the_largest_logit_is_that_by_hand_however_attention_is_written(
    how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attention, "AT_ONCE", 100)  # some queries at a time
    torch.manual_seed(0)
    model, tokens = Model(how).eval(), torch.randint(0, 20, (3, LENGTH))
    by_hand: list[float] = []
    for own in model.attention:
        own.register_forward_pre_hook(lambda module, given: by_hand.append(float(module.logits(given[0]).max())))
    with torch.no_grad():
        model(tokens)
    expected = list(by_hand)
    found = largest(model, tokens)
    assert found["largest"] == pytest.approx(max(expected), rel=1e-5)
    assert [found["stack.1.self"], found["stack.2.self"]] == pytest.approx(expected, rel=1e-5)


def test_torchs_own_attention_is_seen_and_a_model_without_any_has_no_row() -> None:
    layer = nn.TransformerEncoderLayer(WIDTH, HEADS, 32, batch_first=True, norm_first=True)
    found = largest(nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), torch.randn(2, LENGTH, WIDTH))
    assert found["largest"] > 0
    model = Model()
    for own in model.attention:
        own.forward = own.out.forward  # type: ignore[method-assign]
    with pytest.raises(KeyError):
        largest(model, torch.randint(0, 20, (3, LENGTH)))


def test_two_attentions_of_a_layer_have_a_name_each() -> None:
    model = Model()
    model.feed = nn.ModuleList(Attention("whole") for _ in range(2))
    found = largest(model, torch.randint(0, 20, (3, LENGTH)))
    assert len(found) == 5 and all(".self" in name for name in found if name != "largest"), found


def test_half_precision_does_not_overflow_and_a_scale_of_nothing_is_one() -> None:
    q = torch.full((2, 2, 3, 64), 100.0, dtype=torch.float16)
    func = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default
    name = "_scaled_dot_product_flash_attention_for_cpu"
    found = attention.largest_logit(name, func, (q, q, q), {})
    assert found is not None and float(found) == pytest.approx(80_000.0)
    none = attention.largest_logit(name, func, (q, q, q), {"scale": 0.0})
    assert none is not None and float(none) == 0.0
    assert attention.largest_logit("_softmax", None, (torch.randn(2, 5, 4), -1, False), {}) is None, "a router"


def alarms() -> Alarms:
    return Alarms([Sublayer(stack="stack", layer=1, kind="self", parameters=1, module="h.0")])


def test_a_logit_beyond_the_limit_that_has_grown_is_warned_of_by_name_and_one_that_was_there_is_not() -> None:
    watched = alarms()
    assert watched.see("attention", 0, {"largest": 4.0, "stack.1.self": 4.0}) is None
    assert watched.see("attention", 8, {"largest": LOGIT, "stack.1.self": LOGIT}) is None
    alarm = watched.see("attention", 16, {"largest": 2 * LOGIT, "stack.1.self": 2 * LOGIT})
    assert alarm is not None and alarm.link == "logits" and "stack.1.self (h.0) is 2e+03" in alarm.sentence
    pretrained = alarms()
    assert pretrained.see("attention", 0, {"largest": 2 * LOGIT}) is None
    assert pretrained.see("attention", 9, {"largest": 2 * LOGIT * GROWN}) is None


def test_a_watch_warns_of_attention_logits_at_a_rate_far_too_high(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model, tokens = Model(), torch.randint(0, 20, (3, LENGTH))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with stabkit.watch(model, optimizer, out=tmp_path) as watch:
            for _ in range(8):
                optimizer.zero_grad()
                functional.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten()).backward()
                optimizer.step()
    assert "logits" in {alarm.link for alarm in watch.warnings}
