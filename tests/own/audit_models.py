"""Small Transformers as people write them, each correct by its recipe, and the defects that real ones have had.

Three attentions (separate maps; one fused map and torch's attention function; nn.MultiheadAttention) in one plain
encoder-decoder of width 64, batch first, and torch's own encoder layers. `deepnorm` and `xavier` draw weights;
everything else here breaks one thing.
"""

from __future__ import annotations

import copy
import math

import torch
from torch import nn
from torch.nn import functional

WIDTH, INNER, HEADS, WORDS = 64, 128, 2, 50


class Separate(nn.Module):
    """W_q, W_k, W_v and W_o as four maps; scores, softmax and sum by hand."""

    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(WIDTH, WIDTH) for _ in range(4))

    def forward(self, x, memory, causal):
        b, t, _ = x.shape
        q, k, v = (f(y).view(b, -1, HEADS, WIDTH // HEADS).transpose(1, 2) for f, y in self.reads(x, memory))
        scores = q @ k.transpose(-1, -2) / math.sqrt(WIDTH // HEADS)
        if causal:
            scores = scores.masked_fill(torch.ones(t, t).triu(1).bool(), -math.inf)
        return self.o((scores.softmax(-1) @ v).transpose(1, 2).reshape(b, t, WIDTH))

    def reads(self, x, memory):
        return (self.q, x), (self.k, memory), (self.v, memory)

    def weights(self):
        return {"query": self.q.weight, "key": self.k.weight, "value": self.v.weight, "out": self.o.weight}

    def biases(self):
        return [f.bias for f in (self.q, self.k, self.v, self.o)]


class Fused(nn.Module):
    """One map for query, key and value, cut in three; torch's attention function."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.o = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x, memory, causal):
        b, t, _ = x.shape
        if memory is x:
            q, k, v = self.qkv(x).chunk(3, dim=-1)
        else:
            q = functional.linear(x, self.qkv.weight[:WIDTH], self.qkv.bias[:WIDTH])
            k, v = functional.linear(memory, self.qkv.weight[WIDTH:], self.qkv.bias[WIDTH:]).chunk(2, dim=-1)
        q, k, v = (y.unflatten(-1, (HEADS, -1)).transpose(1, 2) for y in (q, k, v))
        return self.o(functional.scaled_dot_product_attention(q, k, v, is_causal=causal).transpose(1, 2).flatten(2))

    def weights(self):
        q, k, v = self.qkv.weight.chunk(3)
        return {"query": q, "key": k, "value": v, "out": self.o.weight}

    def biases(self):
        return [self.qkv.bias, self.o.bias]


class Torch(nn.Module):
    """nn.MultiheadAttention, positions first inside as it likes them."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(WIDTH, HEADS)

    def forward(self, x, memory, causal):
        x, memory = x.transpose(0, 1), memory.transpose(0, 1)
        mask = torch.ones(len(x), len(x)).triu(1).bool() if causal else None
        return self.attention(x, memory, memory, attn_mask=mask, need_weights=causal)[0].transpose(0, 1)

    def weights(self):
        q, k, v = self.attention.in_proj_weight.chunk(3)
        return {"query": q, "key": k, "value": v, "out": self.attention.out_proj.weight}

    def biases(self):
        return [self.attention.in_proj_bias, self.attention.out_proj.bias]


class FeedForward(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(WIDTH, INNER), nn.Linear(INNER, WIDTH)

    def forward(self, x, memory, causal):
        return self.down(functional.gelu(self.up(x)))

    def weights(self):
        return {"up": self.up.weight, "down": self.down.weight}

    def biases(self):
        return [self.up.bias, self.down.bias]


class HandNorm(nn.Module):
    """LayerNorm as an equation."""

    def __init__(self) -> None:
        super().__init__()
        self.gain, self.shift = nn.Parameter(torch.ones(WIDTH)), nn.Parameter(torch.zeros(WIDTH))

    def forward(self, x):
        return self.gain * (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True) + 1e-6) + self.shift


class RMSNorm(nn.Module):
    """Root mean square, as in T5 and LLaMA."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(WIDTH))

    def forward(self, x):
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))


class Layer(nn.Module):
    """Sub-layers in Post-LN or Pre-LN order, α on the shortcut or (a known slip) on the branch."""

    def __init__(self, cross, attention, norm, pre, alpha, on_branch, causal) -> None:
        super().__init__()
        self.branches = nn.ModuleList([attention(), *([attention()] if cross else []), FeedForward()])
        self.norms = nn.ModuleList(norm() for _ in self.branches)
        self.pre, self.alpha, self.on_branch, self.causal = pre, alpha, on_branch, causal
        self.dropout = nn.Dropout(0.1)

    def forward(self, x, memory):
        for i, (branch, norm) in enumerate(zip(self.branches, self.norms, strict=True)):
            y = norm(x) if self.pre else x
            f = self.dropout(
                branch(y, memory if i and len(self.branches) == 3 and i == 1 else y, self.causal and not i)
            )
            x = x + self.alpha * f if self.on_branch else x * self.alpha + f
            x = x if self.pre else norm(x)
        return x


class Net(nn.Module):
    """Tokens to logits: an encoder-decoder, or one stack when n or m is 0."""

    def __init__(
        self, n, m, attention=Separate, norm=lambda: nn.LayerNorm(WIDTH), alpha=(1.0, 1.0), pre=(False, False),
        on_branch=False, final=None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.embedding = nn.Embedding(WORDS, WIDTH)
        depths, self.both = (n, m), bool(n and m)
        self.stacks = nn.ModuleList(
            nn.ModuleList(
                Layer(self.both and i == 1, attention, norm, pre[i], alpha[i], on_branch, i == 1) for _ in range(depth)
            )
            for i, depth in enumerate(depths)
        )
        final = pre if final is None else final
        self.final = nn.ModuleList(norm() if there else nn.Identity() for there in final)

    def forward(self, source, target=None):
        memory = None
        for i, tokens in enumerate((source, target) if self.both else (source, source)):
            x = self.embedding(tokens) * math.sqrt(WIDTH)
            for layer in self.stacks[i]:
                x = layer(x, memory)
            if len(self.stacks[i]):
                memory = self.final[i](x)
        return memory @ self.embedding.weight.T


def betas(n, m):
    """DeepNet's table: (α, β) of the encoder and of the decoder."""
    if not m or not n:
        return ((2 * (n or m)) ** 0.25, (8 * (n or m)) ** -0.25), ((2 * (n or m)) ** 0.25, (8 * (n or m)) ** -0.25)
    return (0.81 * (n**4 * m) ** 0.0625, 0.87 * (n**4 * m) ** -0.0625), ((3 * m) ** 0.25, (12 * m) ** -0.25)


@torch.no_grad()
def xavier(net, gains=(1.0, 1.0), seed=0, fairseq=False, only=("value", "out", "up", "down")):
    """Draw every matrix at Xavier times its gain (Q and K at 1, or 1/√2 with V as fairseq's fused ones); biases 0."""
    torch.manual_seed(seed)
    nn.init.normal_(net.embedding.weight, std=WIDTH**-0.5)
    for stack, gain in zip(net.stacks, gains, strict=True):
        for layer in stack:
            for branch in layer.branches:
                for role, weight in branch.weights().items():
                    base = math.sqrt(0.5) if fairseq and role in ("query", "key", "value") else 1.0
                    nn.init.xavier_normal_(weight, gain=base * (gain if role in only else 1.0))
                for bias in branch.biases():
                    nn.init.zeros_(bias)
    return net


def deepnorm(n, m, fairseq=False, only=("value", "out", "up", "down"), **options):
    """A correct DeepNorm model."""
    (alpha_e, beta_e), (alpha_d, beta_d) = betas(n, m)
    return xavier(Net(n, m, **{"alpha": (alpha_e, alpha_d), **options}), (beta_e, beta_d), fairseq=fairseq, only=only)


@torch.no_grad()
def scaled(net, stack, factor):
    """V, O, W₁ and W₂ of one stack times a factor."""
    for layer in net.stacks[stack]:
        for branch in layer.branches:
            for role, weight in branch.weights().items():
                if role not in ("query", "key"):
                    weight.mul_(factor)
    return net


def cloned(net):
    """Every layer a deep copy of the first, as nn.TransformerEncoder makes them."""
    for stack in net.stacks:
        for i in range(1, len(stack)):
            stack[i] = copy.deepcopy(stack[0])
    return net


class TorchLayers(nn.Module):
    """Layers of nn.TransformerEncoderLayer, each built anew, positions first; out_proj and feed-forward at Xavier."""

    def __init__(self, layers, norm_first=False, final=False) -> None:
        super().__init__()
        self.embedding = nn.Embedding(WORDS, WIDTH)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(WIDTH, HEADS, INNER, norm_first=norm_first) for _ in range(layers)
        )
        self.final = nn.LayerNorm(WIDTH) if final else nn.Identity()
        for layer in self.layers:
            for linear in (layer.self_attn.out_proj, layer.linear1, layer.linear2):
                nn.init.xavier_uniform_(linear.weight)
                nn.init.zeros_(linear.bias)

    def forward(self, tokens):
        x = self.embedding(tokens)
        for layer in self.layers:
            x = layer(x)
        return self.final(x)
