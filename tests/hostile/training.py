"""A tiny Transformer and the loop around it that all of `loops.py` share, with a watch or without."""

from __future__ import annotations

import copy
import hashlib
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn import functional

import stabkit
from stabkit.errors import UsageError

WIDTH, WORDS, UPDATES = 16, 24, 12
CHANCE = torch.Generator()
CALLS = [0]
"""What forwards below keep outside of their module."""


class Block(nn.Module):
    """Attention and a feed-forward part, each added to the stream."""

    def __init__(self, multihead: bool = False) -> None:
        super().__init__()
        self.before, self.between = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.mix = nn.MultiheadAttention(WIDTH, 2, batch_first=True) if multihead else nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)
        self.feed = nn.Sequential(nn.Linear(WIDTH, 2 * WIDTH), nn.GELU(), nn.Linear(2 * WIDTH, WIDTH))
        self.dropout, self.fused = nn.Dropout(0.1), True

    def attention(self, x: torch.Tensor) -> torch.Tensor:
        if isinstance(self.mix, nn.MultiheadAttention):
            return self.mix(x, x, x, need_weights=False)[0]
        q, k, v = self.mix(x).chunk(3, -1)
        if self.fused:
            return functional.scaled_dot_product_attention(q, k, v)
        return (q @ k.transpose(-1, -2) / WIDTH**0.5).softmax(-1) @ v

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.dropout(self.out(self.attention(self.before(x))))
        return x + self.feed(self.between(x))


class Tiny(nn.Module):
    """A Transformer of three blocks."""

    def __init__(self, multihead: bool = False, sparse: bool = False, blocks: int = 3) -> None:
        super().__init__()
        self.embed = nn.Embedding(WORDS, WIDTH, sparse=sparse)
        self.blocks = nn.ModuleList(Block(multihead) for _ in range(blocks))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WORDS)
        self.cache: list[torch.Tensor] = []
        self.bend: Any = None

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.embed(tokens)
        for block in self.blocks:
            x = block(x)
        x = self.head(self.norm(x))
        return x if self.bend is None else self.bend(x)


class Wrapper(nn.Module):
    """Holds a model, as libraries do."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.inner(tokens)


class Counter:
    """Counts its calls, and bends what it is called with accordingly."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, *values: Any) -> Any:
        self.calls += 1
        return values[-1] * (1 + 1e-2 * self.calls)


def counted(x: torch.Tensor) -> torch.Tensor:
    CALLS[0] += 1
    return x * (1 + 1e-2 * CALLS[0])


class Raising:
    """A tracker that is never in reach."""

    def add_scalar(self, *values: Any) -> None:
        raise ConnectionError("no route to the tracker")


class Nobody:
    """Stands where a watch would in a training without one: takes every call and does nothing."""

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *values, **options: None

    def __enter__(self) -> Nobody:
        return self

    def __exit__(self, *error: object) -> None:
        return None


def tokens(at: int, length: int = 8) -> torch.Tensor:
    return torch.randint(0, WORDS, (4, length), generator=torch.Generator().manual_seed(at))


class Training:
    """The loop that all rows share: `run` opens a watch, makes updates and closes it; `then` acts before an update."""

    def __init__(self, out: Path, watched: bool) -> None:
        torch.manual_seed(0), random.seed(0), CHANCE.manual_seed(0)
        CALLS[0] = 0
        self.out, self.watched, self.refused = out, watched, ""
        self.losses: list[float] = []
        self.more: list[torch.optim.Optimizer] = []
        self.watch: Any = Nobody()
        self.state = ""
        self.use(Tiny())

    def use(self, model: nn.Module, kind: Any = torch.optim.AdamW, **options: Any) -> Training:
        self.model: Any = model
        self.optimizer = kind([p for p in model.parameters() if p.requires_grad], **{"lr": 1e-3, **options})
        return self

    def open(self, model: Any = None, optimizer: Any = "usual", **options: Any) -> Any:
        if self.watched:
            usual = [self.optimizer, *self.more] if self.more else self.optimizer
            chosen = usual if isinstance(optimizer, str) else optimizer
            try:
                self.watch = stabkit.watch(model or self.model, chosen, **{"out": self.out, **options})
            except UsageError as error:
                self.refused = str(error)
        return self.watch

    def loss(self, at: int, length: int = 8) -> torch.Tensor:
        batch = tokens(at, length)
        return functional.cross_entropy(self.model(batch).flatten(0, 1), batch.roll(-1, 1).flatten())

    def update(self, at: int, loss: Any = None, given: Any = "its own", between: Any = lambda: None) -> None:
        for optimizer in (self.optimizer, *self.more):
            optimizer.zero_grad()
        value = self.loss(at) if loss is None else loss
        value.backward()
        between()
        self.losses.append(float(value.detach()))
        self.watch.loss(value if isinstance(given, str) and given == "its own" else given)
        for optimizer in (self.optimizer, *self.more):
            optimizer.step()

    def run(
        self,
        updates: int = UPDATES,
        then: Any = None,
        update: Any = None,
        close: bool = True,
        first: Any = None,
        **options: Any,
    ) -> None:
        self.open(**options)
        (first or (lambda: None))()
        for at in range(updates):
            (then or {}).get(at, lambda: None)()
            (update or self.update)(at)
        if close:
            self.watch.close()

    def digest(self) -> str:
        """Of the weights, the losses, and torch's random state."""
        if self.state:
            return self.state
        weights = [x.detach().clone().contiguous().cpu() for x in self.model.state_dict().values()]
        parts = [
            x.view(torch.uint8) if x.dim() else x[None].view(torch.uint8) for x in (*weights, torch.get_rng_state())
        ]
        body = b"".join(bytes(x.flatten().tolist()) for x in parts)
        return hashlib.sha256(body + repr(self.losses).encode()).hexdigest()


def accumulated(t: Training, at: int) -> None:
    (t.loss(4 * at) / 2).backward()
    t.update(at, t.loss(4 * at + 1) / 2)


def half(t: Training, at: int) -> None:
    with torch.autocast("cpu", torch.bfloat16):
        loss = t.loss(at)
    t.update(at, loss)


def scaled(t: Training, infinite: int = -1) -> None:
    scaler = torch.amp.GradScaler("cpu", init_scale=64.0)
    t.open()
    for at in range(UPDATES):
        t.optimizer.zero_grad()
        scaler.scale(t.loss(at) * (float("inf") if at == infinite else 1)).backward()
        scaler.step(t.optimizer), scaler.update()
    t.watch.close()


def averaged(t: Training, at: int) -> None:
    """Updates, and an evaluation at the average of the weights."""
    t.update(at)
    own = copy.deepcopy(t.model.state_dict())
    t.ema = {n: x.lerp(own[n], 0.5) for n, x in getattr(t, "ema", own).items()}
    t.model.load_state_dict(t.ema)
    with torch.no_grad():
        t.model.eval(), t.loss(at), t.model.train()
    t.model.load_state_dict(own)


def perturbed(t: Training, at: int) -> None:
    """Foret et al. 2021: the gradient at the worst weights nearby, stepped from those before."""
    t.loss(at).backward()
    moves = [(p, p.grad * 1e-2) for p in t.model.parameters()]
    with torch.no_grad():
        [p.add_(e) for p, e in moves]
    t.update(at, between=lambda: [p.data.sub_(e) for p, e in moves])


def by_closure(t: Training, at: int) -> None:
    def closure() -> torch.Tensor:
        t.optimizer.zero_grad()
        loss = t.loss(at)
        loss.backward()
        return loss

    t.losses.append(float(t.optimizer.step(closure)))


def by_hand(t: Training, at: int) -> None:
    """Plain descent, without an optimiser."""
    t.model.zero_grad()
    t.loss(at).backward()
    with torch.no_grad():
        [p.sub_(p.grad, alpha=1e-2) for p in t.model.parameters()]
    t.watch.step()
