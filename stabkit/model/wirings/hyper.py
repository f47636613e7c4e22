"""n streams that are mixed before and after every sub-layer: hyper-connections, free (Zhu et al. 2024, arXiv
2409.19606) and with mixings whose rows and columns sum to one (mHC: Xie et al. 2025, arXiv 2512.24880).

X holds n streams, all the embedding at first. A sub-layer reads p·X, f goes back to every stream with a weight of its
own, and between the streams are mixed:

    X ← R·X + q ⊗ f        R (n, n), p and q (n), of each token; at the end Σ_i X_i

What is watched of a stack's state is the mean of its streams. R passes a tap of its own, for the probe `mixing`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import torch
from torch import nn

from stabkit.kernels import wirings as fused
from stabkit.methods.base import Site
from stabkit.methods.wirings import STREAMS
from stabkit.model import part
from stabkit.model.tap import Tap
from stabkit.model.wirings.base import ChainWiring, States
from stabkit.spec import Norm
from stabkit.streams import stream

ROUNDS = 20
"""Of Sinkhorn's, rows then columns: the paper's."""
LEAST = 1e-6
"""What a sum counts as at least, as in Megatron-LM: a column may be nothing beside the others of its rows."""
Start = Literal["uniform", "identity", "static"]


class Hyper(ChainWiring):
    """R, p and q as a number each and a part that follows the token: Zhu et al.'s Alg. 2.

        [p | R] = A + s·tanh(N(X)·W),  q = B + s'·tanh(N(X)·w)      N of each stream, W (D, 1 + n), w (D)

    A has p the (i mod n)-th unit vector at sub-layer i and R = I, B = 1, W = w = 0, s = s' = 0.01 at first.
    """

    adds = True

    def __init__(self, places: Sequence[Site], norm: Norm) -> None:
        super().__init__()
        count, width = len(places), places[0].width
        one_hot = torch.eye(STREAMS).repeat(-(-count // STREAMS), 1)[:count, :, None]
        self.static = nn.Parameter(torch.cat([one_hot, torch.eye(STREAMS).expand(count, -1, -1)], dim=2))
        self.spread = nn.Parameter(torch.ones(count, STREAMS))
        self.mix, self.back = (nn.Parameter(torch.zeros(count, width, size)) for size in (1 + STREAMS, 1))
        self.sizes = nn.Parameter(torch.full((count, 2), 0.01))
        self.norms = nn.ModuleList(part.norm(norm, width) for _ in places)
        self.mixings = nn.ModuleList(Tap() for _ in places)

    def taps(self) -> list[Tap]:
        """What R of every sub-layer passes."""
        return [tap for tap in self.mixings if isinstance(tap, Tap)]

    def begin(self, x: torch.Tensor) -> States:
        return (x, x[:, :, None].expand(-1, -1, STREAMS, -1), self._by_sublayer())

    def _by_sublayer(self) -> list[tuple[torch.Tensor, ...]]:
        """Every sub-layer's weights, taken apart at once: the gradient of one that is taken by itself has zeros for all
        others."""
        return list(zip(*(weight.unbind() for weight in self.weights()), strict=True))

    def weights(self) -> tuple[nn.Parameter, ...]:
        """What each sub-layer has a row of."""
        return self.static, self.spread, self.mix, self.back, self.sizes

    def read(self, states: States, at: int) -> tuple[torch.Tensor, States]:
        mean, x, weights = states
        static, spread, mix, back, sizes = weights[at]
        normed = self.norms[at](x)
        mixing = static + sizes[0] * torch.tanh(normed @ mix)  # (T, B, from, to)
        q = spread + sizes[1] * torch.tanh(normed @ back)[..., 0]
        self.mixings[at](mixing[..., 1:].mT)
        mixed = mixing.mT @ x
        return mixed[:, :, 0], (mean, mixed[:, :, 1:], weights, q)

    def join(self, states: States, y: torch.Tensor, branch: torch.Tensor | None, at: int) -> States:
        assert branch is not None  # it `adds`
        _, mixed, weights, q = states
        x = torch.addcmul(mixed, q[..., None], branch[:, :, None])
        return (x.mean(2), x, weights)

    def end(self, states: States) -> torch.Tensor:
        total: torch.Tensor = states[1].sum(2)
        return total


class Constrained(Hyper):
    """R doubly stochastic, p and q positive: Xie et al.'s eq. 5 to 9.

        (p̃, q̃, R̃) = α·(x̃/rms(x̃))·W + b,  x̃ all n streams of a token as one vector;   one α for each of the three
        p = σ(p̃),  q = 2σ(q̃),  R = exp(R̃) with rows and columns brought to sum 1, ROUNDS times

    They differ in where they start, as the public implementations do:

        uniform    b = 0, W by Xavier, α = 0.01: R = 1/n, p = ½, q = 1                      (Megatron-LM)
        identity   W = 0, α = 1, R̃ = 10·I, p = 1/n, q̃ from −0.2 to 0.2: R = I, q from 0.9 to 1.1     (SkyRL)
        static     W = 0, α = 0.01, R̃ = I, q̃ = 1, p̃ the (i mod n)-th unit vector at sub-layer i: R = 0.475 and
                   0.175, q = 1.46, p = 0.73 of that stream and ½ of the others    (lucidrains, there a random stream)
    """

    def __init__(self, places: Sequence[Site], norm: Norm, start: Start) -> None:
        ChainWiring.__init__(self)
        count, width, n = len(places), places[0].width, STREAMS
        self.drawn = start == "uniform"
        self.map = nn.Parameter(torch.zeros(count, n * width, n * n + 2 * n))
        self.bias = nn.Parameter(torch.stack([_bias(start, i) for i in range(count)]))
        self.sizes = nn.Parameter(torch.full((count, 3), 1.0 if start == "identity" else 0.01))
        self.mixings = nn.ModuleList(Tap() for _ in places)

    def weights(self) -> tuple[nn.Parameter, ...]:
        return self.map, self.bias, self.sizes

    def fill(self, seed: int, stack: str) -> None:
        if self.drawn:
            bound = math.sqrt(6.0 / sum(self.map.shape[1:]))
            for at, weight in enumerate(self.map):
                drawn = stream(seed, "init", f"{stack}.{at}", "mixing").uniform(-bound, bound, weight.shape)
                weight.copy_(torch.from_numpy(drawn))

    def read(self, states: States, at: int) -> tuple[torch.Tensor, States]:
        mean, x, weights = states
        mapped, bias, sizes = weights[at]
        flat, n = x.flatten(2), STREAMS
        sizes = torch.cat([size.expand(count) for size, count in zip(sizes.unbind(), (n, n, n * n), strict=True)])
        scale = torch.rsqrt(flat.square().mean(-1, keepdim=True) + part.EPS)
        p, q, r = torch.addcmul(bias, scale * (flat @ mapped), sizes).split_with_sizes([n, n, n * n], dim=-1)
        r = r.reshape(*r.shape[:-1], n, n)
        mixing = fused.sinkhorn(r, ROUNDS) if self.fused else sinkhorn(r)
        self.mixings[at](mixing)
        return (p.sigmoid()[..., None, :] @ x)[:, :, 0], (mean, mixing @ x, weights, 2.0 * q.sigmoid())


def sinkhorn(logits: torch.Tensor) -> torch.Tensor:
    """(…, n, n) → exp of them, rows and then columns divided by their sums, ROUNDS times."""
    x = torch.exp(logits - logits.amax(-1, keepdim=True))
    for _ in range(ROUNDS):
        x = x / x.sum(-1, keepdim=True).clamp(min=LEAST)
        x = x / x.sum(-2, keepdim=True).clamp(min=LEAST)
    return x


def _bias(start: Start, at: int) -> torch.Tensor:
    """b of sub-layer `at`."""
    n = STREAMS
    nothing, eye = torch.zeros(n), torch.eye(n).flatten()
    if start == "identity":
        return torch.cat([torch.full((n,), -math.log(n - 1.0)), torch.linspace(-0.2, 0.2, n), 10.0 * eye])
    if start == "static":
        return torch.cat([torch.eye(n)[at % n], torch.ones(n), eye])
    return torch.cat([nothing, nothing, 0.0 * eye])
