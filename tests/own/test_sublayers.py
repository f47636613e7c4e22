"""Sub-layers by running: sums in every spelling, branches side by side, several streams, and where each is read."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from stabkit.errors import UsageError
from stabkit.own.sublayers import reading, run
from stabkit.own.sublayers.anatomy import dissect
from stabkit.own.sublayers.graph import Node
from stabkit.own.sublayers.joins import _longest
from tests.own.probe_models import SHAPE, WIDTH, WORDS, Attention, FeedForward, Stack

TOKENS = torch.randint(0, WORDS, SHAPE, generator=torch.Generator().manual_seed(3))


class Model(nn.Module):
    """`depth` blocks of one kind between an embedding and a head."""

    def __init__(self, block, depth=3):
        super().__init__()
        self.embed, self.head = nn.Embedding(WORDS, WIDTH), nn.Linear(WIDTH, WORDS)
        self.blocks = nn.ModuleList(block() for _ in range(depth))

    def forward(self, tokens):
        x = self.embed(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.more = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attention, self.ffn = Attention(), FeedForward()
        self.weight = nn.Parameter(torch.full((WIDTH,), 0.25))


class Lerp(Block):
    def forward(self, x):
        return torch.lerp(x, self.attention(self.norm(x)), 0.25)


class Turned(Block):
    """nGPT: x + λ·(h − x)."""

    def forward(self, x):
        h = self.norm(self.attention(x))
        return x + self.weight * (h - x)


class Beside(Block):
    """GPT-NeoX: one sum of attention and feed-forward."""

    def forward(self, x):
        return x + self.attention(self.norm(x)) + self.ffn(self.more(x))


class BesideInOne(Block):
    def forward(self, x):
        return self.attention(self.norm(x)) + self.ffn(self.more(x)) + x


class InPlace(Block):
    def forward(self, x):
        x = x.clone()
        x += self.attention(self.norm(x))
        x += self.ffn(self.more(x))
        return x


class Stopped(Block):
    """A sum that is subtracted from: x − f(x)."""

    def forward(self, x):
        return x - self.ffn(self.norm(x))


class TwoStreams(nn.Module):
    """Hyper-connections: each sub-layer reads a mix of two streams and writes to both."""

    def __init__(self, depth=3):
        super().__init__()
        self.embed, self.head = nn.Embedding(WORDS, WIDTH), nn.Linear(WIDTH, WORDS)
        self.parts = nn.ModuleList(FeedForward() for _ in range(depth))
        self.mix = nn.Parameter(torch.tensor([0.3, 0.7]))

    def forward(self, tokens):
        a = b = self.embed(tokens)
        for part in self.parts:
            x = a * self.mix[0] + b * self.mix[1]
            f = part(x)
            a, b = a + f, b + 0.5 * f
        return self.head(a + b)


def found(block):
    model = Model(block)
    stream = reading.found(model, (TOKENS,))
    (stack,) = dissect(run.watched(model, (TOKENS,))).stacks
    return model, stream, stack


@pytest.mark.parametrize(
    ("block", "kinds", "omega", "gamma"),
    [
        (Lerp, ["self"] * 3, 0.75, 0.25),
        (Turned, ["self"] * 3, 0.75, 0.25),
        (Beside, ["self+ffn"] * 3, 1.0, 1.0),
        (BesideInOne, ["self+ffn"] * 3, 1.0, 1.0),
        (InPlace, ["self", "ffn"] * 3, 1.0, 1.0),
        (Stopped, ["ffn"] * 3, 1.0, -1.0),
    ],
    ids=["lerp", "turned", "beside", "beside-in-one-sum", "in-place", "subtracted"],
)
def test_a_residual_in_another_spelling_is_found_with_its_scales(block, kinds, omega, gamma):
    _, stream, stack = found(block)
    assert [place.kind for place in stream.sublayers] == kinds
    assert [own.omega for own in stack.sublayers] == pytest.approx([omega] * len(kinds))
    assert [own.gamma for own in stack.sublayers] == pytest.approx([gamma] * len(kinds))


@pytest.mark.parametrize("block", [Lerp, Turned, Beside, BesideInOne, InPlace, Stopped])
def test_the_stream_is_what_leaves_the_blocks_and_what_is_added_is_the_branch(block):
    model, stream, _ = found(block)
    seen = []
    handles = [part.register_forward_hook(lambda m, i, o: seen.append(o.detach().clone())) for part in model.blocks]
    with torch.no_grad():
        model(TOKENS)
    for handle in handles:
        handle.remove()
    states = stream.read(model, (TOKENS,))
    per = len(stream.sublayers) // len(seen)
    assert all(torch.allclose(x, y, atol=1e-6) for x, y in zip(states.x["stack"][per::per], seen, strict=True))
    for place, (branch, total) in zip(stream.sublayers, states.branches, strict=True):
        x = states.x["stack"][stream.sublayers.index(place)]
        omega = 0.75 if block in (Lerp, Turned) else 1.0
        assert torch.allclose(total - branch, omega * x, atol=1e-5)


@pytest.mark.parametrize("block", [Lerp, Turned, Beside, InPlace])
def test_every_parameter_of_a_block_is_its_sub_layers(block):
    model, stream, _ = found(block)
    owned = [name for place in stream.sublayers for name in place.parameters]
    used = {n for n, p in model.blocks.named_parameters(prefix="blocks") if uses(block, n)}
    assert len(owned) == len(set(owned)) and set(owned) == used


def uses(block, name):
    """Whether this kind of block reads the parameter."""
    unused = {
        Lerp: ("more", "ffn", "weight"),
        Turned: ("more", "ffn"),
        Beside: ("weight",),
        InPlace: ("weight",),
    }[block]
    return name.split(".")[2] not in unused


class Projected(Block):
    """A matrix between one sum and the next: each sum is a stack of its own."""

    def __init__(self):
        super().__init__()
        self.between = nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        return self.between(x + self.ffn(self.norm(x)))


def test_stacks_of_one_sub_layer_that_follow_one_another_are_joined():
    model = Model(Projected)
    assert len(dissect(run.watched(model, (TOKENS,))).stacks) == 1
    stream = reading.found(model, (TOKENS,))
    assert stream.stacks == ("stack",)
    assert [place.name for place in stream.sublayers] == ["stack.1.ffn", "stack.2.ffn", "stack.3.ffn"]


def test_several_streams_are_told_apart():
    stream = reading.found(TwoStreams(), (TOKENS,))
    assert stream.stacks == ("stack1", "stack2") and len(stream.sublayers) == 6
    assert "counted in none" in stream.notes[-1]


def test_f_is_read_after_the_final_norm():
    model = Stack(2)
    states = reading.found(model, (TOKENS,)).read(model, (TOKENS,))
    assert torch.allclose(states.output, model.norm(states.x["stack"][-1]), atol=1e-6)
    assert torch.allclose(states.logits, model.head(states.output), atol=1e-6)


def test_a_model_whose_operations_change_from_pass_to_pass_is_told_so():
    model = Stack(2)
    stream = reading.found(model, (TOKENS,))
    model.head = nn.Sequential(model.head, nn.ReLU())
    with pytest.raises(UsageError, match="operations differ from pass to pass"):
        stream.read(model, (TOKENS,))


def test_reading_leaves_the_model_as_it_was():
    model = Stack(2)
    model.train()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    random = torch.get_rng_state()
    stream = reading.found(model, (TOKENS,))
    stream.read(model, (TOKENS,))
    assert model.training and torch.equal(torch.get_rng_state(), random)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert not any(part._forward_hooks or part._forward_pre_hooks for part in model.modules())


def test_a_history_that_grows_by_one_value_is_one_run_however_it_is_stacked():
    def node(at, op, *inputs):
        return Node(at=at, op=op, inputs=inputs, value=torch.zeros(2, 3))

    anew = [node(0, "input"), node(1, "add"), node(2, "move", 0, 1), node(3, "add"), node(4, "move", 0, 1, 3)]
    onto = [*anew[:4], node(4, "move", 2, 3)]
    apart = [*anew[:4], node(4, "move", 1, 3)]
    assert [one.values for one in _longest(anew)] == [one.values for one in _longest(onto)] == [(0, 1), (0, 1, 3)]
    assert [one.values for one in _longest(apart)] == [(0, 1)]
