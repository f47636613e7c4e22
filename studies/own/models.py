"""The corpus' models: plain PyTorch, as people write them. Blocks of attention and feed-forward, joined as SCHEMES say.

    y = N_out( ω·x + γ·N_branch( f( N_in(x) ) ) )      a sub-layer; norms, ω, γ and the gain of f's matrices by scheme

Decoders guess the next token, encoders hidden tokens, vision models the class of patches; of a series the next numbers,
of a noisy image its noise. Nothing of stabkit's own models is used.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn import functional

HEAD, BASE = 32, 64
"""Width of a head, and the width that laws over width begin at."""
PATCH = 8


@dataclass(frozen=True, kw_only=True)
class Scheme:
    """How sub-layer l of 2N is joined; `of` gets (l from 0, N)."""

    before: bool = False
    branch: bool = False
    after: bool = False
    final: bool = False
    omega: Callable[[int, int], float] = lambda place, blocks: 1.0
    gamma: Callable[[int, int], float] = lambda place, blocks: 1.0
    gain: Callable[[int], float] = lambda blocks: 1.0
    """On values, outputs and the feed-forward."""
    trained: float | None = None
    """γ is trained, a scalar each, and starts here."""
    vector: float | None = None
    """γ is trained, an entry each (LayerScale), and starts here."""
    inner: bool = False
    """A norm before the branch's last matrix (Sub-LN)."""
    early: bool = False
    """Norms stand after the sum in the lowest quarter of blocks, before the branch above (Mix-LN)."""
    dyt: bool = False
    """tanh(0.5·x) instead of norms."""
    embedding: float = 1.0
    """Times what is embedded."""
    heads: bool = False
    """Queries and keys are normalised, a head each (QK-norm)."""
    over_width: bool = False
    """μP's laws over width, from BASE on: scores times BASE/d, Adam's rate and ε of the blocks' matrices too; embedding
    and head are drawn as at BASE."""


def _root(n: float) -> Callable[[int, int], float]:
    return lambda place, blocks: (2 * blocks) ** n


PRE: dict[str, Any] = {"before": True, "final": True}
SCHEMES: dict[str, Scheme] = {
    # as published
    "pre": Scheme(**PRE),
    "pre-no-final": Scheme(before=True),
    "post": Scheme(after=True),
    "deepnorm": Scheme(after=True, omega=lambda place, n: (2 * n) ** 0.25, gain=lambda n: (8 * n) ** -0.25),
    "peri": Scheme(branch=True, **PRE),
    "branch-norm": Scheme(branch=True, final=True),
    "sub-ln": Scheme(inner=True, gain=lambda n: math.sqrt(math.log(2 * n)), **PRE),
    "mix-ln": Scheme(early=True, final=True),
    "lns": Scheme(gamma=lambda place, n: (place // 2 + 1) ** -0.5, **PRE),
    "depth-mup": Scheme(gamma=_root(-0.5), **PRE),
    "completep": Scheme(gamma=lambda place, n: 4.0 / n, **PRE),
    "keel": Scheme(before=True, after=True, omega=lambda place, n: 2.0 * n),
    "rezero": Scheme(trained=0.0),
    "layerscale": Scheme(vector=1e-4, **PRE),
    "dyt": Scheme(dyt=True, **PRE),
    "none-scaled": Scheme(gain=lambda n: (2 * n) ** -0.5),
    # as people get them wrong, or try
    "none": Scheme(),
    "none-final": Scheme(final=True),
    "deepnorm-no-alpha": Scheme(after=True, gain=lambda n: (8 * n) ** -0.25),
    "deepnorm-no-beta": Scheme(after=True, omega=lambda place, n: (2 * n) ** 0.25),
    "deepnorm-alpha-half": Scheme(
        after=True, omega=lambda place, n: 0.5 * (2 * n) ** 0.25, gain=lambda n: (8 * n) ** -0.25
    ),
    "deepnorm-beta-four": Scheme(
        after=True, omega=lambda place, n: (2 * n) ** 0.25, gain=lambda n: 4 * (8 * n) ** -0.25
    ),
    "post-half": Scheme(after=True, gamma=lambda place, n: 0.5),
    "post-double": Scheme(after=True, gamma=lambda place, n: 2.0),
    "pre-four": Scheme(gamma=lambda place, n: 4.0, **PRE),
    "shrinking": Scheme(omega=lambda place, n: 0.9, **PRE),
    "growing": Scheme(omega=lambda place, n: 1.1, **PRE),
    "scaled-twice": Scheme(gamma=_root(-0.5), gain=lambda n: (2 * n) ** -0.5, **PRE),
    "embedding-wide": Scheme(embedding=30.0, **PRE),
    "post-embedding-small": Scheme(after=True, embedding=0.02),
}  # fmt: skip
BEYOND = {
    "qk-norm": Scheme(heads=True, **PRE),
    "completep-width": Scheme(gamma=lambda place, n: 4.0 / n, over_width=True, **PRE),
}
"""Schemes of other studies: the corpus, whose design draws from all of SCHEMES, has none of them."""
INITS = ("xavier", "normal-0.02", "gpt2", "torch", "orthogonal", "small", "kaiming")
ACTIVATIONS = ("gelu", "relu", "swiglu")


class RMSNorm(nn.Module):
    """x/rms(x)·g."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) * self.weight


class Tanh(nn.Module):
    """g·tanh(αx) + b (DyT)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.alpha = nn.Parameter(torch.tensor(0.5))
        self.weight, self.bias = nn.Parameter(torch.ones(width)), nn.Parameter(torch.zeros(width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.weight * torch.tanh(self.alpha * x) + self.bias


Norm = Callable[[int], nn.Module]


class Attention(nn.Module):
    """Of heads HEAD wide."""

    def __init__(self, width: int, bias: bool, causal: bool, inner: nn.Module | None, heads: Norm | None) -> None:
        super().__init__()
        self.query, self.key, self.value, self.out = (nn.Linear(width, width, bias=bias) for _ in range(4))
        self.inner, self.causal = inner, causal
        self.norms = None if heads is None else nn.ModuleList([heads(HEAD), heads(HEAD)])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = (y.unflatten(-1, (-1, HEAD)).transpose(1, 2) for y in (self.query(x), self.key(x), self.value(x)))
        if self.norms is not None:
            q, k = self.norms[0](q), self.norms[1](k)
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=self.causal).transpose(1, 2).flatten(2)
        mixed = mixed if self.inner is None else self.inner(mixed)
        out: torch.Tensor = self.out(mixed)
        return out


class FeedForward(nn.Module):
    """Four times as wide inside, of SwiGLU 8/3."""

    def __init__(self, width: int, bias: bool, activation: str, inner: Norm | None) -> None:
        super().__init__()
        hidden = 4 * width if activation != "swiglu" else 8 * width // 3
        self.up = nn.Linear(width, hidden, bias=bias)
        self.gate = nn.Linear(width, hidden, bias=bias) if activation == "swiglu" else None
        self.down = nn.Linear(hidden, width, bias=bias)
        self.inner, self.activation = None if inner is None else inner(hidden), activation

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.gate is not None:
            h = functional.silu(self.gate(x)) * self.up(x)
        else:
            h = functional.gelu(self.up(x)) if self.activation == "gelu" else functional.relu(self.up(x))
        out: torch.Tensor = self.down(h if self.inner is None else self.inner(h))
        return out


class Join(nn.Module):
    """One sub-layer of a scheme."""

    def __init__(self, f: nn.Module, scheme: Scheme, place: int, blocks: int, width: int, norm: Norm) -> None:
        super().__init__()
        post = scheme.after or (scheme.early and place // 2 < blocks // 4)
        pre = scheme.before or (scheme.early and not post)
        self.f, self.omega, self.gamma = f, scheme.omega(place, blocks), scheme.gamma(place, blocks)
        self.before = norm(width) if pre else nn.Identity()
        self.branch = norm(width) if scheme.branch else nn.Identity()
        self.after = norm(width) if post else nn.Identity()
        self.scale: nn.Parameter | None = None
        if scheme.trained is not None:
            self.scale = nn.Parameter(torch.tensor(scheme.trained))
        elif scheme.vector is not None:
            self.scale = nn.Parameter(torch.full((width,), scheme.vector))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.branch(self.f(self.before(x)))
        if self.scale is not None:
            y = self.scale * y
        if self.gamma != 1.0:
            y = self.gamma * y
        out: torch.Tensor = self.after((x if self.omega == 1.0 else self.omega * x) + y)
        return out


@dataclass(frozen=True, kw_only=True)
class Shape:
    """All that a model is made of."""

    kind: str
    """`decoder`, `encoder`, `vision`, `series`, `denoiser`."""
    scheme: str
    width: int
    depth: int
    init: str
    activation: str
    norm: str
    """`layer`, `rms`."""
    tied: bool
    bias: bool
    words: int
    """Vocabulary, classes, or numbers of an answer."""
    length: int
    """Tokens of a sentence."""
    size: int = 32
    """Height and width of images of three channels."""


def scheme_of(shape: Shape) -> Scheme:
    """How its sub-layers are joined."""
    return (SCHEMES | BEYOND)[shape.scheme]


class Model(nn.Module):
    """A stack of `depth` blocks."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        scheme, width = scheme_of(shape), shape.width
        norm: Norm = Tanh if scheme.dyt else RMSNorm if shape.norm == "rms" else nn.LayerNorm
        self.kind, self.times = shape.kind, scheme.embedding
        self.out = BASE / width if scheme.over_width else 1.0
        self.vision = shape.kind in ("vision", "denoiser")
        if self.vision:
            self.patches = nn.Conv2d(3, width, PATCH, PATCH)
            places = (shape.size // PATCH) ** 2
        else:
            places, words = shape.length, shape.words
            self.tokens = nn.Linear(words, width) if shape.kind == "series" else nn.Embedding(words, width)
        self.positions = nn.Parameter(torch.zeros(places, width))
        inner = norm if scheme.inner else None
        self.blocks = nn.ModuleList()
        for i in range(shape.depth):
            causal = shape.kind in ("decoder", "series")
            heads = norm if scheme.heads else None
            attention = Attention(width, shape.bias, causal, inner(width) if inner else None, heads)
            feed = FeedForward(width, shape.bias, shape.activation, inner)
            parts = (Join(f, scheme, 2 * i + j, shape.depth, width, norm) for j, f in enumerate((attention, feed)))
            self.blocks.append(nn.Sequential(*parts))
        self.norm = norm(width) if scheme.final else nn.Identity()
        self.head = nn.Linear(width, shape.words, bias=False)
        draw(self, shape)
        if shape.tied and not self.vision:
            self.head.weight = self.tokens.weight

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.patches(x).flatten(2).transpose(1, 2) if self.vision else self.tokens(x)
        x = self.times * (x + self.positions)
        for block in self.blocks:
            x = block(x)
        x = self.norm(x)
        scores: torch.Tensor = self.head(x.mean(1) if self.kind == "vision" else x)
        return scores if self.out == 1.0 else self.out * scores


@torch.no_grad()
def draw(model: Model, shape: Shape) -> None:
    """θ_0 by `shape.init`, then the scheme's gain."""
    gain = scheme_of(shape).gain(shape.depth)
    for module in model.blocks.modules():
        if isinstance(module, nn.Linear):
            _matrix(module.weight, shape)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
    for module in model.blocks.modules():
        if isinstance(module, Attention):
            module.value.weight.mul_(gain), module.out.weight.mul_(gain)
        elif isinstance(module, FeedForward):
            module.up.weight.mul_(gain), module.down.weight.mul_(gain)
        if shape.init in ("gpt2", "small") and isinstance(module, (Attention, FeedForward)):
            last = module.out if isinstance(module, Attention) else module.down
            if shape.init == "gpt2":
                nn.init.normal_(last.weight, std=0.02 / math.sqrt(2 * shape.depth))
            else:  # Nguyen & Salazar 2019, Wang's 2/(N√d)
                nn.init.normal_(last.weight, std=2 / (shape.depth * math.sqrt(shape.width)))
            last.weight.mul_(gain)
    wide = {"normal-0.02": 0.02, "gpt2": 0.02, "small": math.sqrt(2 / (5 * shape.width)), "torch": 1.0}
    width = BASE if scheme_of(shape).over_width else shape.width
    std = wide.get(shape.init, width**-0.5)
    if not model.vision and isinstance(model.tokens, nn.Embedding):  # a Linear is as torch draws it
        tied = shape.tied and shape.init == "torch"  # scores of variance d are nobody's choice
        nn.init.normal_(model.tokens.weight, std=0.02 if tied else std)
    nn.init.normal_(model.positions, std=min(std, 0.02))
    if shape.init == "torch":
        model.head.reset_parameters()
    else:
        nn.init.normal_(model.head.weight, std=min(std, width**-0.5))


def _matrix(weight: torch.Tensor, shape: Shape) -> None:
    match shape.init:
        case "xavier":
            nn.init.xavier_normal_(weight)
        case "normal-0.02" | "gpt2":
            nn.init.normal_(weight, std=0.02)
        case "torch":
            nn.init.kaiming_uniform_(weight, a=math.sqrt(5))
        case "orthogonal":
            nn.init.orthogonal_(weight)
        case "small":
            nn.init.normal_(weight, std=math.sqrt(2 / (5 * shape.width)))
        case "kaiming":
            nn.init.kaiming_normal_(weight)
