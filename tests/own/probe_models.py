"""Factories as a user would write them: `factory(depth)`, one plain stack in the order that each method asks for.

Controls: branches times 1/N are flat in depth, Post-LN's gradient vanishes, Pre-LN, DeepNorm and Keel hold.
"""

from __future__ import annotations

import math
import os

import torch
import torch.utils.checkpoint
from torch import nn
from torch.nn import functional

WIDTH, HEADS, WORDS, SHAPE = 64, 2, 100, (8, 32)


class Attention(nn.Module):
    def __init__(self, gain: float = 1.0) -> None:
        super().__init__()
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        for i, part in enumerate(self.qkv.weight.chunk(3)):
            nn.init.xavier_normal_(part, gain if i == 2 else 1.0)
        nn.init.xavier_normal_(self.out.weight, gain)
        nn.init.zeros_(self.qkv.bias), nn.init.zeros_(self.out.bias)

    def forward(self, x):
        q, k, v = (y.unflatten(-1, (HEADS, -1)).transpose(1, 2) for y in self.qkv(x).chunk(3, -1))
        return self.out(functional.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))


class FeedForward(nn.Sequential):
    def __init__(self, gain: float = 1.0) -> None:
        super().__init__(nn.Linear(WIDTH, 4 * WIDTH), nn.ReLU(), nn.Linear(4 * WIDTH, WIDTH))
        for part in (self[0], self[2]):
            nn.init.xavier_normal_(part.weight, gain)
            nn.init.zeros_(part.bias)


class Sublayer(nn.Module):
    """N_out(ω·x + γ·f(N_in(x))), either norm if it is asked for."""

    def __init__(self, f: nn.Module, pre: bool, post: bool, omega: float, gamma: float) -> None:
        super().__init__()
        self.f, self.omega, self.gamma = f, omega, gamma
        self.before = nn.LayerNorm(WIDTH) if pre else nn.Identity()
        self.after = nn.LayerNorm(WIDTH) if post else nn.Identity()

    def forward(self, x):
        return self.after(self.omega * x + self.gamma * self.f(self.before(x)))


class Stack(nn.Module):
    """A language model of `depth` blocks."""

    def __init__(self, depth, *, pre=True, post=False, omega=1.0, gamma=1.0, gain=1.0) -> None:
        super().__init__()
        self.embed = nn.Embedding(WORDS, WIDTH)
        self.blocks = nn.ModuleList(
            nn.Sequential(
                *(Sublayer(kind(gain), pre, post, omega, gamma) for kind in (Attention, FeedForward)),
            )
            for _ in range(depth)
        )
        self.norm = nn.LayerNorm(WIDTH) if not post else nn.Identity()
        self.head = nn.Linear(WIDTH, WORDS)

    def forward(self, tokens):
        x = self.embed(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


AFTER = torch.randint(4, WORDS, (WORDS, 4), generator=torch.Generator().manual_seed(7))
"""Four words that may follow each word."""


def text(step):
    """(sentences × tokens) of a chain, a function of the step alone: neither depth nor seed changes it."""
    chance = torch.Generator().manual_seed(step)
    words = [torch.randint(4, WORDS, SHAPE[:1], generator=chance)]
    for _ in range(SHAPE[1] - 1):
        words.append(AFTER[words[-1], torch.randint(0, 4, SHAPE[:1], generator=chance)])
    return torch.stack(words, 1)


def next_word(model, tokens):
    return functional.cross_entropy(model(tokens)[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())


def with_loss(model):
    """(model, loss) on a fresh batch at every step."""
    return model, lambda model, step=0: next_word(model, text(step))


def one_batch(depth):
    """The same tokens at every step."""
    tokens = text(0)
    return Stack(depth), lambda model: next_word(model, tokens)


def loader(depth):
    """Batches of an iterable, and a loss of a batch."""
    return Stack(depth), (next_word, [text(step) for step in range(20)])


def post_ln_warm(depth):
    """Its own optimiser and scheduler: a warm-up over 50 updates."""
    model, loss = post_ln(depth)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    return model, loss, optimizer, torch.optim.lr_scheduler.LambdaLR(optimizer, lambda t: min(1.0, (t + 1) / 50))


def pre_ln(depth):
    return with_loss(Stack(depth))


def lost_at_once(depth):
    """Its scores are no numbers before any update."""
    model, loss = pre_ln(depth)
    nn.init.constant_(model.head.weight, math.inf)
    return model, loss


def half(depth):
    return with_loss(Stack(depth, gamma=depth**-0.5))


def flat(depth):
    """CompleteP: branches over N."""
    return with_loss(Stack(depth, gamma=1 / depth))


def post_ln(depth):
    return with_loss(Stack(depth, pre=False, post=True))


def slipped(depth):
    model = Stack(depth)
    model.forward = lambda words: nowhere(words)  # noqa: F821
    return model


def bare_post_ln(depth):
    """Without a loss: stabkit makes batches."""
    return Stack(depth, pre=False, post=True)


def deepnorm(depth):
    return with_loss(Stack(depth, pre=False, post=True, omega=(2 * depth) ** 0.25, gain=(8 * depth) ** -0.25))


def keel(depth):
    return with_loss(Stack(depth, pre=True, post=True, omega=2.0 * depth))


def shared_weights(depth):
    """One block, so many times over (ALBERT)."""
    model = Stack(1)
    model.blocks = nn.ModuleList([model.blocks[0]] * depth)
    return with_loss(model)


def alone(depth):
    """The model alone: the probe draws tokens."""
    return Stack(depth)


def single():
    return pre_ln(6)


def deaf(depth):
    """Ignores the depth."""
    return pre_ln(4)


def growing(depth):
    """Every sub-layer's shortcut is times √1.3 and no norm stands at the end: the scores grow exponentially."""
    model = Stack(depth, omega=math.sqrt(1.3))
    model.norm = nn.Identity()
    return with_loss(model)


def growing_normed(depth):
    """The same with a norm at the end."""
    return with_loss(Stack(depth, omega=math.sqrt(1.3)))


def diluted(depth):
    """… times 1.5: the upper branches are nothing beside what has grown."""
    return with_loss(Stack(depth, omega=1.5))


def fresh(depth):
    """A new batch at every call."""
    model = Stack(depth)

    def loss(model):
        tokens = torch.randint(0, WORDS, SHAPE)
        return functional.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten())

    return model, loss


def vector(depth):
    model, _ = pre_ln(depth)
    return model, lambda model: model(torch.zeros(1, 4, dtype=torch.long))[0, :, 0]


def detached(depth):
    model, loss = pre_ln(depth)
    return model, lambda model: loss(model).detach()


def around(depth):
    """The loss calls a part of the model."""
    model, _ = pre_ln(depth)
    return model, lambda model: model.head(model.norm(model.embed(torch.arange(8)))).square().mean()


def frozen(depth):
    model, loss = pre_ln(depth)
    return model.requires_grad_(False), loss


def foreign(depth):
    model, loss = pre_ln(depth)
    return model, loss, torch.optim.Adam(Stack(1).parameters())


def closure(depth):
    model, loss = pre_ln(depth)
    return model, loss, torch.optim.LBFGS(model.parameters())


def on_meta(depth):
    with torch.device("meta"):
        return Stack(depth)


def nothing(depth):
    """No sum, no blocks of one shape."""
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    return model, lambda model: model(torch.ones(3, 4)).square().mean()


def wrong(depth):
    return "a model"


def raises(depth):
    raise ValueError("no such layer")


def deep_raises(depth):
    if depth > 8:
        raise MemoryError("no room for so many")
    return pre_ln(depth)


def hangs(depth):
    import time

    time.sleep(1000)


def exploding(depth):
    """Not a number after the first update."""
    model, loss = pre_ln(depth)
    return model, loss, torch.optim.SGD(model.parameters(), lr=1e30)


def exploding_on_the_ramp(depth):
    """Its loss is no number from update 25 on."""
    model, loss = pre_ln(depth)
    return model, lambda model, step: loss(model, step) * (math.nan if step > 24 else 1)


def stepping(depth):
    """The loss steps by itself."""
    model, loss = pre_ln(depth)
    optimizer = torch.optim.AdamW(model.parameters())

    def own(model):
        value = loss(model)
        if model.training:
            value.backward(retain_graph=True)
            optimizer.step()
        return loss(model)

    return model, own, optimizer


class Gated(nn.Module):
    """Highway: no sum x + f(x)."""

    def __init__(self) -> None:
        super().__init__()
        self.gate, self.f = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        g = self.gate(x).sigmoid()
        return g * x + (1 - g) * self.f(x).tanh()


def gated(depth):
    model = nn.Sequential(nn.Embedding(WORDS, WIDTH), *(Gated() for _ in range(depth)), nn.Linear(WIDTH, WORDS))
    model = nn.Sequential(model[0], nn.Sequential(*model[1:-1]), model[-1])
    return with_loss(model)


# — what a hostile user came with —


class Boom(nn.Module):
    def __init__(self, depth):
        super().__init__()
        self.embed, self.head = nn.Embedding(WORDS, WIDTH), nn.Linear(WIDTH, WORDS)
        self.n = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(depth))
        self.g, self.f = (nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(depth)) for _ in range(2))

    def forward(self, tokens):
        x = self.embed(tokens)
        for n, g, f in zip(self.n, self.g, self.f, strict=True):
            x = x * (1 + 2 * g(n(x)).sigmoid()) + f(n(x))
        return self.head(x)


def gated_boom(depth):
    return with_loss(Boom(depth))


def half_frozen(depth):
    model, loss = pre_ln(depth)
    for block in model.blocks[: depth // 2]:
        block.requires_grad_(False)
    return model, loss


class LayerDrop(Stack):
    def forward(self, tokens):
        x = self.embed(tokens)
        for block in self.blocks:
            if not self.training or torch.rand(()) > 0.4:
                x = block(x)
        return self.head(self.norm(x))


def layer_drop(depth):
    return with_loss(LayerDrop(depth))


class Basic(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = (nn.Conv2d(8, 8, 3, padding=1) for _ in range(2))

    def forward(self, x):
        return (x + self.b(self.a(x).relu())).relu()


def pictures(depth):
    """Convolutions are followed by no sums; a picture's rows of zeros have no direction."""
    model = nn.Sequential(nn.Conv2d(3, 8, 1), nn.Sequential(*(Basic() for _ in range(depth))), nn.Flatten())
    images = torch.zeros(4, 3, 8, 8)
    images[:, :, 4:] = torch.randn(4, 3, 4, 8, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        for part in model.modules():
            if isinstance(part, nn.Conv2d):
                part.bias.zero_()
    return model, lambda model: model(images).square().mean()


class WithoutRate(torch.optim.Optimizer):
    def __init__(self, parameters):
        super().__init__(parameters, {})

    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                p.data.add_(p.grad, alpha=-0.01)


def no_rate(depth):
    model, loss = pre_ln(depth)
    return model, loss, WithoutRate(model.parameters())


def alone_at_one(depth):
    """At depth 1 a single sub-layer, without blocks."""

    class One(Stack):
        def forward(self, tokens):
            return self.head(self.blocks[0][0](self.embed(tokens)))

    return with_loss(One(1)) if depth == 1 else pre_ln(depth)


class Wordless(Exception):
    def __str__(self):
        raise RuntimeError("no words")


def wordless(depth):
    raise Wordless


def odd(depth):
    return pre_ln({2: 2, 4: 4, 8: 6}[depth])


def forks(depth):
    os.fork()
    return pre_ln(depth)


def noisy(depth):
    """Dropout and BatchNorm in every block."""
    model = Stack(depth)
    for block in model.blocks:
        block[1].f = nn.Sequential(
            FeedForward(), nn.Flatten(0, 1), nn.BatchNorm1d(WIDTH), nn.Dropout(0.2), nn.Unflatten(0, SHAPE)
        )
    return with_loss(model)


def talks(depth):
    print("said aloud")
    os.write(1, b"past sys.stdout")
    os.write(2, b"past sys.stderr")
    raise RuntimeError("enough")


def where(depth):
    raise RuntimeError(os.getcwd())


def cut_off(depth):
    """The loss hangs on a tensor that is no parameter."""
    model, loss = pre_ln(depth)
    loose = torch.ones((), requires_grad=True)
    return model, lambda model: loss(model).detach() * loose


class Looped(nn.Module):
    """The same gated blocks, three times over."""

    def __init__(self, depth):
        super().__init__()
        self.embed, self.head = nn.Embedding(WORDS, WIDTH), nn.Linear(WIDTH, WORDS)
        self.blocks = nn.ModuleList(Gated() for _ in range(depth))

    def forward(self, tokens):
        x = self.embed(tokens)
        for block in [*self.blocks] * 3:
            x = block(x)
        return self.head(x)


def looped(depth):
    return with_loss(Looped(depth))


def overflows(depth):
    """A loss that is +inf after an update."""
    model, loss = pre_ln(depth)
    before = {name: p.detach().clone() for name, p in model.named_parameters()}

    def own(model):
        same = all(torch.equal(p, before[name]) for name, p in model.named_parameters())
        return loss(model) * (1.0 if same else math.inf)

    return model, own


class Checkpointed(Stack):
    def forward(self, tokens):
        x = self.embed(tokens)
        for block in self.blocks:
            x = torch.utils.checkpoint.checkpoint(block, x, use_reentrant=True)
        return self.head(self.norm(x))


def checkpointed(depth):
    return with_loss(Checkpointed(depth))


class Masked(nn.Module):
    def forward(self, tokens, attention_mask=None):
        return tokens


CALLS: list[int] = []


def counting(depth):
    """Other weights at every call."""
    CALLS.append(depth)
    model, loss = pre_ln(depth)
    with torch.no_grad():
        model.head.weight.mul_(1 + 0.1 * len(CALLS))
    return model, loss
