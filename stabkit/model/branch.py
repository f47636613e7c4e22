"""The two kinds of residual branch, G: attention and feed-forward. Weights are left empty here and drawn by `fill`.

    G(u) = I_end( W₂·I_last( φ( I_mid( W₁·I_first(u) ) ) ) )        feed-forward, φ = relu
    G(u) = I_end( W_O·I_last( attention( I_first(u), memory ) ) )   attention

with what the method puts at the places I (`inner.py`).
"""

from __future__ import annotations

import math

import torch
from torch import nn

from stabkit.methods.base import Method, Role, Site
from stabkit.model import draw
from stabkit.model.inner import place
from stabkit.model.kernels import attend, linear
from stabkit.model.past import Past
from stabkit.spec import ModelConfig


class Linear(nn.Module):
    """y = x·Wᵀ + b whose rows hold several roles, head by head: weight (heads · len(roles) · size, in).

    One matrix product serves query, key and value, and the output splits into heads without a copy. `fill` draws every
    role on its own, as if they were separate matrices of shape (heads · size, in).
    """

    def __init__(self, roles: tuple[Role, ...], heads: int, size: int, fan_in: int, bias: bool) -> None:
        super().__init__()
        self.roles, self.heads, self.size = roles, heads, size
        self.weight = nn.Parameter(torch.empty(heads * len(roles) * size, fan_in))
        self.bias = nn.Parameter(torch.zeros(len(self.weight))) if bias else None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return linear(x, self.weight, self.bias)

    def role(self, name: Role) -> torch.Tensor:
        """A view (heads, size, in) of one role's weights."""
        return self.weight.view(self.heads, len(self.roles), self.size, -1)[:, self.roles.index(name)]

    def fill(self, config: ModelConfig, method: Method, site: Site, seed: int) -> None:
        """Draw every role's initial weights."""
        shape = (self.heads * self.size, self.weight.shape[1])
        for role in self.roles:
            drawn = draw.matrix(config.base_init, seed, site.name, role, shape, method.gain(site, role))
            self.role(role).copy_(drawn.view(self.heads, self.size, -1))


class Attention(nn.Module):
    """softmax(Q·Kᵀ/√E)·V·W_O over `heads` heads; keys and values from `memory`, or from x itself when it is None.

    The scores are laid out keys first and normalised over that outermost axis: the softmax then runs over contiguous
    memory whatever the sentence length (on a CPU an innermost axis of 15 costs ten times one of 16).
    """

    def __init__(self, config: ModelConfig, method: Method, site: Site) -> None:
        super().__init__()
        width, self.heads, bias = config.hidden, config.heads, method.bias(site)
        size = width // self.heads
        self.scale = 1.0 / math.sqrt(size)
        self.own = site.kind == "self"
        if self.own:
            self.qkv = Linear(("query", "key", "value"), self.heads, size, width, bias)
        else:
            self.q = Linear(("query",), self.heads, size, width, bias)
            self.kv = Linear(("key", "value"), self.heads, size, width, bias)
        self.out = Linear(("out",), 1, width, width, bias)
        self.first = place(method.inner(site, "first"), width, self.heads)
        self.last = place(method.inner(site, "last"), width, self.heads)
        self.end = place(method.inner(site, "end"), width, self.heads)

    def forward(
        self,
        x_TBD: torch.Tensor,
        memory_SBD: torch.Tensor | None,
        mask_GST: torch.Tensor | None,
        past: Past | None = None,
    ) -> torch.Tensor:
        """(T, B, D) → (T, B, D). `mask_GST` is added to the scores: 0 where a key may be seen, −∞ where not. With a
        `past`, x holds the positions that follow it, and sees all of it."""
        u = x_TBD if self.first is None else self.first(x_TBD)
        queries = self.qkv(u) if self.own else self.q(u)
        memory: torch.Tensor | None
        if past is None:
            memory = None if self.own else self.kv(memory_SBD)
        elif self.own:
            queries, memory = past.extended(queries, self.heads)
        else:
            memory = past.once(lambda: self.kv(memory_SBD))
        heads = attend(queries, memory, mask_GST, self.heads, self.scale)
        y: torch.Tensor = self.out(heads if self.last is None else self.last(heads))
        return y if self.end is None else self.end(y)


class FeedForward(nn.Module):
    """W₂·relu(W₁·x + b₁) + b₂."""

    def __init__(self, config: ModelConfig, method: Method, site: Site) -> None:
        super().__init__()
        bias = method.bias(site)
        self.up = Linear(("up",), 1, config.ffn, config.hidden, bias)
        self.down = Linear(("down",), 1, config.hidden, config.ffn, bias)
        self.first = place(method.inner(site, "first"), config.hidden, config.heads)
        self.mid = place(method.inner(site, "mid"), config.ffn, config.heads)
        self.last = place(method.inner(site, "last"), config.ffn, config.heads)
        self.end = place(method.inner(site, "end"), config.hidden, config.heads)

    def forward(
        self,
        x_TBD: torch.Tensor,
        memory_SBD: torch.Tensor | None,
        mask_GST: torch.Tensor | None,
        past: Past | None = None,
    ) -> torch.Tensor:
        """(T, B, D) → (T, B, D); reads neither memory, mask nor past."""
        u = x_TBD if self.first is None else self.first(x_TBD)
        if self.mid is None:
            h = linear(u, self.up.weight, self.up.bias, relu=True)
        else:
            h = self.mid(self.up(u)).relu()
        y: torch.Tensor = self.down(h if self.last is None else self.last(h))
        return y if self.end is None else self.end(y)
