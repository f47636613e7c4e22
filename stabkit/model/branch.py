"""The two kinds of residual branch, G: attention and feed-forward. Weights are left empty here and drawn by `fill`.

    G(u) = I_end( W₂·I_last( relu( I_mid( W₁·v ) ) ) ), v = I_first(u)                feed-forward
    G(u) = I_end( W₂·I_last( SiLU( I_mid( W_g·v ) ) ⊙ W₁·v ) ), of two thirds width   feed-forward, gated (SwiGLU)
    G(u) = I_end( W_O·I_last( σ(W_g·u) ⊙ attention( I_first(u), memory ) ) )          attention, a gate where asked for

with what the method, or the block, puts at the places I (`part.py`). Each head's query, key and value may pass a part
of their own; then the positions turn queries and keys where they are rotary (`positions.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import torch
from torch import nn
from torch.nn import functional

from stabkit.kernels.reference import attend, attended, linear, scores
from stabkit.methods.base import HEADED, Method, Place, Role, Site
from stabkit.methods.blocks import biased, inner, inner_width
from stabkit.methods.count import width
from stabkit.model import draw
from stabkit.model.part import part
from stabkit.model.positions import Positions
from stabkit.model.tap import Tap
from stabkit.spec import FfnKind, ModelConfig

Carried = dict[str, torch.Tensor]
"""What one layer of a stack hands to all others in a pass: made for the pass, gone after it."""


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


class Scores(nn.Module):
    """softmax(Q·Kᵀ/√E)·V of every head, from what the maps gave. Without a gradient the scores (G, T, S) pass the tap
    `logits`.

    The scores are laid out keys first and normalised over that outermost axis: the softmax then runs over contiguous
    memory whatever the sentence length (on a CPU an innermost axis of 15 costs ten times one of 16).
    """

    def __init__(self, heads: int, size: int) -> None:
        super().__init__()
        self.heads, self.scale = heads, 1.0 / math.sqrt(size)
        self.logits = Tap()

    def forward(
        self, queries: torch.Tensor, memory: torch.Tensor | None, mask_GST: torch.Tensor | None
    ) -> torch.Tensor:
        """As `reference.attend` has them: (T, B, D)."""
        if torch.is_grad_enabled():
            return attend(queries, memory, mask_GST, self.heads, self.scale)
        s_SQ = scores(queries, memory, mask_GST, self.heads, self.scale)
        self.logits(s_SQ.view(len(s_SQ), -1, len(queries)).permute(1, 2, 0))
        return attended(s_SQ, queries, memory, self.heads)[0]


class Attention(nn.Module):
    """softmax(Q·Kᵀ/√E)·V·W_O over `heads` heads; keys and values from `memory`, or from x itself when it is None."""

    def __init__(self, config: ModelConfig, method: Method, site: Site, positions: Positions) -> None:
        super().__init__()
        d, self.heads, bias = config.hidden, config.heads, biased(method, site, config)
        size = d // self.heads
        self.own = site.kind == "self"
        if self.own:
            self.qkv = Linear(("query", "key", "value"), self.heads, size, d, bias)
        else:
            self.q = Linear(("query",), self.heads, size, d, bias)
            self.kv = Linear(("key", "value"), self.heads, size, d, bias)
        self.out = Linear(("out",), 1, d, d, bias)
        self.first, self.last, self.end = (_at(name, config, method, site) for name in ("first", "last", "end"))
        self.query, self.key, self.value = (_at(name, config, method, site) for name in HEADED)
        self.turn: Callable[[torch.Tensor], torch.Tensor] = positions.turned
        """Not a module of its own: one object, held by the Transformer, serves all."""
        self.changed = any((self.query, self.key, self.value)) or (self.own and positions.turning)
        self.scores = Scores(self.heads, size)
        gate = method.gate(site)
        self.gate = Linear(("gate",), self.heads, size if gate == "entry" else 1, d, bias=False) if gate else None
        self.hands_on = method.value_residual and self.own

    def forward(
        self,
        x_TBD: torch.Tensor,
        memory_SBD: torch.Tensor | None,
        mask_GST: torch.Tensor | None,
        carried: Carried | None = None,
    ) -> torch.Tensor:
        """(T, B, D) → (T, B, D). `mask_GST` is added to the scores: 0 where a key may be seen, −∞ where not. `carried`:
        the pass's own."""
        u = x_TBD if self.first is None else self.first(x_TBD)
        queries = self.qkv(u) if self.own else self.q(u)
        if self.hands_on and carried is not None:
            queries = self._with_first_values(queries, carried)
        if self.changed:
            roles = HEADED if self.own else HEADED[:1]
            queries = self._of_heads(queries, roles)
        memory = None if self.own else self._memory(memory_SBD)
        heads = self.scores(queries, memory, mask_GST)
        if self.gate is not None:
            t, b, _ = heads.shape
            gate = torch.sigmoid(self.gate(u)).view(t, b, self.heads, -1)
            heads = (heads.view(t, b, self.heads, -1) * gate).view(t, b, -1)
        y: torch.Tensor = self.out(heads if self.last is None else self.last(heads))
        return y if self.end is None else self.end(y)

    def _with_first_values(self, packed_TBC: torch.Tensor, carried: Carried) -> torch.Tensor:
        """The first attention of a pass leaves its values in `carried`; every later one takes the mean of both."""
        parts = packed_TBC.view(*packed_TBC.shape[:2], self.heads, 3, -1)
        if "values" not in carried:
            carried["values"] = parts[..., 2, :]
            return packed_TBC
        mixed = 0.5 * parts[..., 2, :] + 0.5 * carried["values"]
        return torch.stack([parts[..., 0, :], parts[..., 1, :], mixed], dim=-2).flatten(-3)

    def _memory(self, memory_SBD: torch.Tensor | None) -> torch.Tensor:
        kv: torch.Tensor = self.kv(memory_SBD)
        return self._of_heads(kv, HEADED[1:]) if self.changed else kv

    def _of_heads(self, packed_TBC: torch.Tensor, roles: tuple[Place, ...]) -> torch.Tensor:
        """(T, B, H·len(roles)·E): each head's vectors through their parts, and turned by where they stand."""
        t, b, _ = packed_TBC.shape
        held = []
        for role, x_TBHE in zip(roles, packed_TBC.view(t, b, self.heads, len(roles), -1).unbind(3), strict=True):
            of_head = getattr(self, role)
            x_TBHE = x_TBHE if of_head is None else of_head(x_TBHE)
            held.append(self.turn(x_TBHE) if self.own and role != "value" else x_TBHE)
        return torch.stack(held, dim=3).view(t, b, -1)


class FeedForward(nn.Module):
    """W₂·relu(W₁·x + b₁) + b₂."""

    def __init__(self, config: ModelConfig, method: Method, site: Site) -> None:
        super().__init__()
        bias, f = biased(method, site, config), inner_width(config)
        self.up = Linear(self.upwards(), 1, f, config.hidden, bias)
        self.down = Linear(("down",), 1, config.hidden, f, bias)
        self.first, self.mid, self.last, self.end = (
            _at(name, config, method, site) for name in ("first", "mid", "last", "end")
        )

    @staticmethod
    def upwards() -> tuple[Role, ...]:
        """The matrices that read u."""
        return ("up",)

    def hidden(self, u: torch.Tensor) -> torch.Tensor:
        """φ(I_mid(W₁·u)): (T, B, D) → (T, B, F)."""
        if self.mid is None:
            return linear(u, self.up.weight, self.up.bias, relu=True)
        h: torch.Tensor = self.mid(self.up(u))
        return h.relu()

    def forward(
        self,
        x_TBD: torch.Tensor,
        memory_SBD: torch.Tensor | None,
        mask_GST: torch.Tensor | None,
        carried: Carried | None = None,
    ) -> torch.Tensor:
        """(T, B, D) → (T, B, D); reads nothing else."""
        h = self.hidden(x_TBD if self.first is None else self.first(x_TBD))
        y: torch.Tensor = self.down(h if self.last is None else self.last(h))
        return y if self.end is None else self.end(y)


class SwiGLU(FeedForward):
    """W₂·(SiLU(W_g·x) ⊙ W₁·x), of two thirds of the width (Shazeer 2020, eq. 6)."""

    @staticmethod
    def upwards() -> tuple[Role, ...]:
        return ("gate", "up")

    def hidden(self, u: torch.Tensor) -> torch.Tensor:
        gate, up = self.up(u).chunk(2, dim=-1)
        h: torch.Tensor = functional.silu(gate if self.mid is None else self.mid(gate)) * up
        return h


FEED_FORWARDS: Mapping[FfnKind, Callable[[ModelConfig, Method, Site], FeedForward]] = {
    "relu": FeedForward,
    "swiglu": SwiGLU,
}


def _at(place: Place, config: ModelConfig, method: Method, site: Site) -> nn.Module | None:
    """What stands at a place of this branch."""
    return part(inner(method, site, place, config), config.norm, width(site, place, config), config.heads)
