"""Factories for `stabkit transfer`: tiny, quick, and each wrong in one way."""

from __future__ import annotations

import math
import sys

import torch
from torch import nn

WORDS = 20


class Tiny(nn.Module):
    def __init__(self, depth: int, width: int) -> None:
        super().__init__()
        self.embed = nn.Embedding(WORDS, width)
        self.blocks = nn.ModuleList(nn.Sequential(nn.LayerNorm(width), nn.Linear(width, width)) for _ in range(depth))
        self.head = nn.Linear(width, WORDS)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.embed(tokens)
        for block in self.blocks:
            x = x + block(x)
        return self.head(x)


def loss(model: nn.Module, step: int) -> torch.Tensor:
    """The next word is the last but one's, a fresh batch at every step."""
    tokens = torch.randint(0, WORDS, (4, 8), generator=torch.Generator().manual_seed(step))
    return nn.functional.cross_entropy(model(tokens).flatten(0, 1), (tokens.flatten() * 3 + 1) % WORDS)


def tiny(depth: int, width: int = 8):
    return Tiny(depth, width), loss


def stepped(depth: int):
    """With an optimiser of its own, of two groups, and a scheduler."""
    model = Tiny(depth, 8)
    groups = [{"params": model.blocks.parameters(), "lr": 1e-3}, {"params": model.head.parameters(), "lr": 5e-4}]
    optimizer = torch.optim.SGD(groups, momentum=0.9)
    return model, loss, optimizer, torch.optim.lr_scheduler.LinearLR(optimizer, 0.1, 1.0, 5)


def unrated(depth: int):
    """Its optimiser has no rate to scale."""
    model = Tiny(depth, 8)
    return model, loss, torch.optim.SGD(model.parameters(), lr=0.0)


def exploding(depth: int):
    """Whatever the rate, its second loss is lost."""
    return Tiny(depth, 8), lambda model, step: loss(model, step) * (math.nan if step > 1 and model.training else 1.0)


def raising(depth: int):
    """Its own code checks the loss, and raises where it is large."""

    def checked(model: nn.Module, step: int) -> torch.Tensor:
        value = loss(model, step)
        if step > 3 and model.training:
            raise FloatingPointError(f"loss {value.item():.3g} at step {step}")
        return value

    return Tiny(depth, 8), checked


def faulty(depth: int):
    """Reads past its data after the fourth batch, whatever the rate."""
    return Tiny(depth, 8), lambda model, step: loss(model, [1, 2, 3, 4].index(min(max(step, 1), 5)) + 1)


def asserting(depth: int):
    """Its own code checks the loss by an assertion."""

    def checked(model: nn.Module, step: int) -> torch.Tensor:
        value = loss(model, step)
        assert value.item() < 1e3, "loss exploded"
        return value

    return Tiny(depth, 8), checked


def leaving(depth: int):
    sys.exit(3)


def scaled(depth: int, width: int):
    """μP: entries of hidden matrices of order 1/√d whose rate falls as 1/d, scores divided by d, the rest as it is."""
    model = Tiny(depth, width)
    for block in model.blocks:
        nn.init.normal_(block[1].weight, std=1 / math.sqrt(width))
    nn.init.normal_(model.embed.weight)
    nn.init.normal_(model.head.weight)
    model.head.register_forward_pre_hook(lambda module, given: given[0] / width)
    hidden = [block[1].weight for block in model.blocks]
    own = {id(p) for p in hidden}
    rest = [p for p in model.parameters() if id(p) not in own]
    groups = [{"params": hidden, "lr": 1e-2 * 16 / width}, {"params": rest, "lr": 1e-2}]
    return model, loss, torch.optim.Adam(groups)


def narrow(depth: int, width: int):
    """As wide whatever it is asked for."""
    return Tiny(depth, 8), loss


def shrinking(depth: int):
    """With a law of its own: the rate falls as 1/depth."""
    model = Tiny(depth, 8)
    return model, loss, torch.optim.SGD(model.parameters(), lr=1e-2 / depth)


def tensor_rate(depth: int):
    model = Tiny(depth, 8)
    return model, loss, torch.optim.Adam(model.parameters(), lr=torch.tensor(1e-3))


class Strict(torch.optim.SGD):
    """Raises at the third update, as one that inverts a matrix does."""

    def step(self, closure: object = None):
        self.count = getattr(self, "count", 0) + 1
        if self.count == 3:
            raise torch.linalg.LinAlgError("the factorization could not be completed")
        return super().step()


def strict(depth: int):
    model = Tiny(depth, 8)
    return model, loss, Strict(model.parameters(), lr=1e-2)


def three_batches(depth: int):
    return Tiny(depth, 8), (loss, [1, 2, 3])


def one_batch(depth: int):
    return Tiny(depth, 8), lambda model: loss(model, 1)


def bare(depth: int):
    """Without a loss."""
    return Tiny(depth, 8)


def breaking(depth: int, width: int):
    """Where it is 64 wide its loss is lost at the third update."""
    model = Tiny(depth, width)
    return model, lambda model, step: loss(model, step) * (math.nan if width == 64 and step > 2 else 1.0)
