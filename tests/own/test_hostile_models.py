"""Models written to be misread, each healthy, and bugs that a reader of the output alone does not see."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn
from torch.nn import functional

from stabkit import methods
from stabkit.options import audit as options
from stabkit.own import audit
from stabkit.own.probe import built_model
from tests.own import library_models
from tests.own.zoo_models import (
    WIDTH,
    WORDS,
    Apart,
    Fused,
    PreLN,
    Words,
    ids,
    join_heads,
    mlp,
    normal,
    split_heads,
    xavier,
)

TOKENS = ids(4, 16)
EXPERTS, INNER = 4, 48


def judged(model, method=None, **more):
    recipe = methods.build(*methods.parse(method)) if method else None
    return audit.audit(model, recipe, inputs=(TOKENS,), **more)


def words_of(found):
    return " | ".join((*found.notes, *(finding.what for finding in found.findings)))


def gpt(feed=mlp, attention=lambda: Fused(causal=True), depth=3):
    return normal(Words(PreLN(attention(), feed()) for _ in range(depth)))


class Experts(nn.Module):
    """All experts of one tensor at once, weighed by a router, the best two of them."""

    def __init__(self):
        super().__init__()
        self.up = nn.Parameter(torch.randn(EXPERTS, WIDTH, INNER) * 0.02)
        self.down = nn.Parameter(torch.randn(EXPERTS, INNER, WIDTH) * 0.02)
        self.router = nn.Linear(WIDTH, EXPERTS, bias=False)

    def forward(self, x):
        weights = self.router(x).softmax(-1)
        best = weights.topk(2, dim=-1).indices
        weights = torch.zeros_like(weights).scatter(-1, best, weights.gather(-1, best))
        made = functional.gelu(torch.einsum("btd,edf->btef", x, self.up))
        return torch.einsum("bted,bte->btd", torch.einsum("btef,efd->bted", made, self.down), weights)


class Adapted(nn.Module):
    """h + B·gelu(A·h) of what a part makes (Houlsby et al. 2019)."""

    def __init__(self, part):
        super().__init__()
        self.part, self.low, self.high = part, nn.Linear(WIDTH, 8), nn.Linear(8, WIDTH)

    def forward(self, x):
        h = self.part(x)
        return h + self.high(functional.gelu(self.low(h)))


class Gated(Fused):
    """The heads' output times a sigmoid of what they read."""

    def __init__(self):
        super().__init__(causal=True)
        self.gate = nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        q, k, v = map(split_heads, self.qkv(x).chunk(3, dim=-1))
        heads = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.proj(join_heads(heads) * self.gate(x).sigmoid())


@pytest.mark.parametrize(
    ("model", "aside"),
    [
        (gpt(feed=Experts), "blocks.0.mlp.router.weight"),
        (gpt(feed=lambda: Adapted(mlp())), "blocks.0.mlp.low.weight"),
        (gpt(attention=Gated), "blocks.0.attn.gate.weight"),
    ],
    ids=["experts", "adapters", "gates"],
)
def test_what_stands_beside_is_named_and_the_rest_is_read_whole(model, aside):
    found = judged(model)
    assert found.coverage.whole and found.coverage.read == {"self": 3, "ffn": 3}
    assert any(aside in note and "not judged" in note for note in found.notes)
    assert {row.kind: set(row.deviations) for row in found.rows}["ffn"] == {"up", "down"}
    assert "0.02²) for every shape" in found.base
    assert all(0.9 < low <= high < 1.1 for row in found.rows for low, high in row.deviations.values())


class ByCondition(nn.Module):
    """adaLN, its gates applied by addcmul."""

    def __init__(self):
        super().__init__()
        self.norm, self.attn = nn.LayerNorm(WIDTH, elementwise_affine=False), Fused()
        self.mlp, self.scales = mlp(), nn.Linear(WIDTH, 4 * WIDTH)

    def forward(self, x):
        a, b, c, d = self.scales(x.detach().mean(1, keepdim=True)).chunk(4, dim=-1)
        x = torch.addcmul(x, a, self.attn(self.norm(x) * (1 + b)))
        return torch.addcmul(x, c, self.mlp(self.norm(x) * (1 + d)))


def test_a_gate_that_is_computed_is_read_in_addcmul_too():
    found = judged(xavier(Words(ByCondition() for _ in range(3))))
    assert found.coverage.read == {"self": 3, "ffn": 3} and not found.findings


def test_a_draw_that_folds_the_logits_factor_is_one_finding():
    class Folded(Apart):
        def forward(self, x):
            q, k, v = (split_heads(part(x)) for part in (self.q, self.k, self.v))
            return self.out(join_heads(functional.scaled_dot_product_attention(q, k, v, scale=1.0)))

    model = xavier(Words(PreLN(Folded()) for _ in range(3)))
    for block in model.blocks:
        block.attn.q.weight.data *= (WIDTH // 2) ** -0.5
    (finding,) = judged(model, "pre-ln").findings
    assert "the query is drawn smaller or larger by as much" in finding.what and "keep both" in finding.remedy


def test_of_two_matrices_that_differ_no_one_factor_is_told():
    model = xavier(Words(PreLN(Fused()) for _ in range(3)))
    for block in model.blocks:
        for linear in (block.mlp[0], block.mlp[2]):
            nn.init.normal_(linear.weight, std=linear.in_features**-0.5)
    (finding,) = judged(model, "pre-ln").findings
    assert " to 1.5" in finding.what and "LeCun's" in finding.what


def test_matrices_that_are_zero_are_told_apart_from_those_that_are_not():
    model = xavier(Words(PreLN(Fused()) for _ in range(3)))
    for block in model.blocks[1:]:
        nn.init.zeros_(block.attn.proj.weight)
    assert "out in layers 2–3, all zero" in words_of(judged(model, "pre-ln"))


def test_a_base_that_explains_little_is_not_named():
    model = xavier(Words(PreLN(Fused()) for _ in range(3)))
    for linear in (m for m in model.modules() if isinstance(m, nn.Linear)):
        nn.init.normal_(linear.weight, std=math.sqrt(0.1 / linear.in_features))
    found = judged(model, "pre-ln")
    assert found.base.startswith("not recognised") and "0.02²" not in words_of(found)


def test_shapes_are_those_of_the_module():
    (head,) = (shape for name, shape, _ in judged(gpt()).outside if name == "head.weight")
    assert head == (WORDS, WIDTH)


def test_one_missing_norm_does_not_change_which_recipe_fits():
    class Sandwich(PreLN):
        def __init__(self):
            super().__init__(Fused())
            self.norm3, self.norm4 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)

        def forward(self, x):
            x = x + self.norm3(self.attn(self.norm1(x)))
            return x + self.norm4(self.mlp(self.norm2(x)))

    model = xavier(Words(Sandwich() for _ in range(3)))
    assert judged(model).method.key == "sandwich-ln"
    model.norm = nn.Identity()
    found = judged(model)
    assert found.method.key == "sandwich-ln"
    assert [finding.what for finding in found.findings] == ["encoder: no norm stands after the last layer"]


# — what a token sees —


class Late(Apart):
    """A mask that is one place late: each token sees the one that it is asked for."""

    def forward(self, x):
        t = x.shape[1]
        seen = torch.ones(t, t, dtype=torch.bool).tril(1)
        q, k, v = (split_heads(part(x)) for part in (self.q, self.k, self.v))
        return self.out(join_heads(functional.scaled_dot_product_attention(q, k, v, seen)))


def test_a_mask_that_is_one_place_late_is_seen_at_any_depth():
    found = judged(gpt(attention=Late, depth=2), arch=("decoder",))
    assert found.findings[0].topic == "mask" and {row.stack for row in found.rows} == {"decoder"}
    assert not [f for f in judged(gpt(), arch=("decoder",)).findings if f.topic == "mask"]


def closed(model):
    for block in model.blocks:
        nn.init.zeros_(block.attn.proj.weight)
        nn.init.zeros_(block.mlp[2].weight)
    nn.init.zeros_(model.head.weight)
    return model


def test_what_a_closed_model_will_see_is_found_and_its_zeros_are_put_back():
    model = closed(gpt())
    assert {row.stack for row in judged(model).rows} == {"decoder"}
    assert not model.head.weight.any()
    assert {row.stack for row in judged(closed(gpt(attention=Fused))).rows} == {"encoder"}


def test_batches_are_told_apart_by_what_they_hold_where_a_head_is_zero():
    def factory(depth):
        def loss(model, step):
            tokens = torch.randint(0, WORDS, (4, 17), generator=torch.Generator().manual_seed(step))
            return functional.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())

        return closed(gpt(depth=depth)), loss

    assert built_model.make(factory, "factory", 2, 0, 0.0).fresh


class Pair(nn.Module):
    """Two towers: one of tokens, one of another input."""

    def __init__(self, attention):
        super().__init__()
        self.one, self.other = gpt(attention=attention, depth=3), gpt(depth=1)

    def forward(self, tokens, others):
        return self.other(others).mean(1) @ self.one(tokens)[:, -1].T


@pytest.mark.parametrize(("attention", "topics"), [(lambda: Fused(causal=True), set()), (Fused, {"mask"})])
def test_a_mask_is_judged_on_the_stack_where_there_are_several_inputs(attention, topics):
    found = audit.audit(Pair(attention), methods.build("pre-ln", {}), inputs=(TOKENS, ids(4, 9)), arch=("decoder",))
    assert topics == {finding.topic for finding in found.findings} - {"base initialisation", "bias"}
    assert "2 sub-layers of other stacks (other.blocks.0" in words_of(found) and found.unjudged


def test_a_decoder_that_sees_what_it_is_asked_for_is_told_beside_an_encoder():
    class Both(nn.Module):
        def __init__(self, causal):
            super().__init__()
            self.encoder = Words([PreLN(Fused()) for _ in range(2)])
            self.attn, self.cross, self.mlp = Fused(causal=causal), Apart(), mlp()
            self.embed, self.norm = nn.Embedding(WORDS, WIDTH), nn.LayerNorm(WIDTH)

        def forward(self, given, asked):
            memory = self.encoder.embed(given)
            for block in self.encoder.blocks:
                memory = block(memory)
            memory, x = self.encoder.norm(memory), self.embed(asked)
            x = x + self.attn(self.norm(x))
            x = x + self.cross(self.norm(x), memory)
            return self.norm(x + self.mlp(self.norm(x)))

    for causal in (True, False):
        found = audit.audit(xavier(Both(causal)), inputs=(TOKENS, ids(4, 9)), arch=("encoder", "decoder"))
        assert ("mask" in {finding.topic for finding in found.findings}) == (not causal)


class LastToken(nn.Module):
    """A causal model that scores a row by its last token, in as many classes as it has tokens."""

    def __init__(self):
        super().__init__()
        self.words, self.scores = gpt(), nn.Linear(WIDTH, TOKENS.shape[1])

    def forward(self, tokens):
        x = self.words.embed(tokens)
        for block in self.words.blocks:
            x = block(x)
        return self.scores(self.words.norm(x)[:, -1])


def test_what_a_last_token_is_scored_by_is_no_missing_mask():
    for said in ((), ("decoder",)):
        found = judged(LastToken(), arch=said)
        assert {row.stack for row in found.rows} == {"decoder"} and "mask" not in {f.topic for f in found.findings}


@pytest.mark.libraries
def test_a_decoder_that_reads_what_its_encoder_reads_is_not_said_to_see_ahead():
    bart = library_models.bart(2)[0]  # it shifts its own input for the decoder
    found = audit.audit(bart, inputs={"input_ids": TOKENS}, arch=("encoder", "decoder"))
    assert "mask" not in {finding.topic for finding in found.findings}
    assert "its mask is not judged" in words_of(found)


# — what a recipe has no place for —


class Reads(nn.Module):
    """Layers that read an input of features too, without a norm (PixArt)."""

    def __init__(self):
        super().__init__()
        self.words = Words(PreLN(Fused()) for _ in range(3))
        self.cross = nn.ModuleList(Apart() for _ in range(3))

    def forward(self, tokens, context):
        x = self.words.embed(tokens)
        for block, cross in zip(self.words.blocks, self.cross, strict=True):
            x = x + block.attn(block.norm1(x))
            x = x + cross(x, context)
            x = x + block.mlp(block.norm2(x))
        return self.words.head(self.words.norm(x))


def test_cross_attention_in_one_stack_is_said_to_be_not_judged():
    given = (TOKENS, torch.randn(4, 5, WIDTH, generator=torch.Generator().manual_seed(0)))
    found = audit.audit(xavier(Reads()), methods.build("pre-ln", {}), inputs=given)
    assert "cross-attention (3 sub-layers)" in words_of(found) and found.undecided


class Heads(nn.Module):
    """A trunk, and heads of one layer each that all read it (multi-token prediction)."""

    def __init__(self):
        super().__init__()
        self.trunk, self.heads = gpt(depth=3), nn.ModuleList(PreLN(Fused(causal=True)) for _ in range(3))

    def forward(self, tokens):
        x = self.trunk.embed(tokens)
        for block in self.trunk.blocks:
            x = block(x)
        return torch.stack([self.trunk.head(self.trunk.norm(head(x))) for head in self.heads], dim=2)


def test_heads_that_read_one_trunk_are_no_further_layers():
    found = judged(Heads())
    assert found.depth == "4L" and "4 sub-layers of other stacks (heads.1" in words_of(found)


def test_the_depth_does_not_change_what_a_stack_is_called(tmp_path, monkeypatch):
    (tmp_path / "plain.py").write_text(
        "from tests.own.zoo_models import Fused, PreLN, Words, ids\n"
        "def make(depth=2):\n    return Words(PreLN(Fused()) for _ in range(depth)), (ids(4, 16),)\n"
    )
    monkeypatch.chdir(tmp_path)
    assert {row.stack for row in options.audit("plain.py:make", None, "2", None).rows} == {"encoder"}
