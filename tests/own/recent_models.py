"""Models as they are trained in 2026, small, as factories of the depth, after their published formulas:
nanochat, Attention Residuals (2603.15031), mHC (2512.24880), hyper-connections (2409.19606), a U-Net of layers."""

from __future__ import annotations

from importlib import import_module

import torch
from torch import nn
from torch.nn import functional

WIDTH, HEADS, WORDS, STREAMS = 64, 2, 100, 4


def rms(x):
    return functional.rms_norm(x, (x.shape[-1],))


class Attention(nn.Module):
    """Normed queries and keys, no bias; value embeddings where they are given."""

    def __init__(self, gated=False):
        super().__init__()
        self.q, self.k, self.v, self.out = (nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(4))
        self.gate = nn.Linear(12, HEADS, bias=False) if gated else None

    def forward(self, x, embedded=None):
        q, k, v = (part(x).unflatten(-1, (HEADS, -1)) for part in (self.q, self.k, self.v))
        if embedded is not None:
            v = v + 3 * torch.sigmoid(self.gate(x[..., :12]))[..., None] * embedded.unflatten(-1, (HEADS, -1))
        q, k, v = (part.transpose(1, 2) for part in (rms(q), rms(k), v))
        return self.out(functional.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))


class FeedForward(nn.Module):
    """relu²."""

    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH, bias=False), nn.Linear(4 * WIDTH, WIDTH, bias=False)

    def forward(self, x):
        return self.down(functional.relu(self.up(x)).square())


class NanoChat(nn.Module):
    """x ← λ_i·x + λ0_i·x_0 before block i; a gate mixes each token with the one before ahead of block 1; every other
    block's values have embeddings of their own; N(x − 0.2·x_{N/2}) at the end; scores within ±15."""

    def __init__(self, depth, first=1.15, last=1.05, dtype=torch.float32):
        super().__init__()
        self.wte = nn.Embedding(WORDS, WIDTH)
        self.smear, self.mix = nn.Linear(12, 1, bias=False), nn.Parameter(torch.zeros(()))
        self.attention = nn.ModuleList(Attention(gated=i % 2 == 1) for i in range(depth))
        self.feed = nn.ModuleList(FeedForward() for _ in range(depth))
        self.values = nn.ModuleDict({str(i): nn.Embedding(WORDS, WIDTH) for i in range(1, depth, 2)})
        share = [i / max(1, depth - 1) for i in range(depth)]
        self.keep = nn.Parameter(torch.tensor([first + (last - first) * s for s in share]))
        self.again = nn.Parameter(torch.tensor([0.20 - 0.15 * s for s in share]))
        self.back = nn.Parameter(torch.tensor(0.2))
        self.head = nn.Linear(WIDTH, WORDS, bias=False)
        for parameter in self.parameters():
            if parameter.dim() == 2:
                nn.init.uniform_(parameter, -((3 / WIDTH) ** 0.5), (3 / WIDTH) ** 0.5)
        nn.init.normal_(self.wte.weight)
        nn.init.normal_(self.head.weight, std=0.001)
        for part in self.attention:
            nn.init.zeros_(part.out.weight)
        for part in self.feed:
            nn.init.zeros_(part.down.weight)
        self.to(dtype)

    def forward(self, tokens):
        x = rms(self.wte(tokens))
        gate = self.mix * torch.sigmoid(self.smear(x[:, 1:, :12]))
        x = torch.cat([x[:, :1], x[:, 1:] + gate * x[:, :-1]], dim=1)
        start, halfway = x, None
        for i, (attend, think) in enumerate(zip(self.attention, self.feed, strict=True)):
            x = self.keep[i] * x + self.again[i] * start
            embedded = self.values[str(i)](tokens) if str(i) in self.values else None
            x = x + attend(rms(x), embedded)
            x = x + think(rms(x))
            if i == len(self.feed) // 2:
                halfway = x
        scores = self.head(rms(x - self.back * halfway)).float()
        return 15 * torch.tanh(scores / 15)


def split(model, matrices, muon=0.02, adamw=3e-3):
    """Muon on matrices of the blocks, AdamW on the rest."""
    names = {id(p) for p in matrices}
    rest = [p for p in model.parameters() if id(p) not in names]
    return [torch.optim.Muon(matrices, lr=muon, weight_decay=0.0), torch.optim.AdamW(rest, lr=adamw, weight_decay=0.0)]


def loss_of(words=(8, 32)):
    tokens = torch.randint(0, WORDS, words, generator=torch.Generator().manual_seed(11))

    def loss(model):
        return functional.cross_entropy(model(tokens)[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())

    return loss


def nanochat(depth):
    model = NanoChat(depth)
    matrices = [p for part in (*model.attention, *model.feed) for p in part.parameters()]
    return model, loss_of(), split(model, matrices)


def nanochat_steep(depth):
    """λ = 1.5 in every layer, in float16: its head-room is used up."""
    model = NanoChat(depth, first=1.5, last=1.5, dtype=torch.float16)
    return model, loss_of(), torch.optim.SGD(model.parameters(), lr=1e-3)


class AttentionResiduals(nn.Module):
    """v_0 the embedding, v_i = f_i(N(h_i)), h_l = Σ_{i<l} α_{i→l}·v_i with α = softmax_i(w_l·N(v_i)), w_l 0 at first;
    one more mixture and a norm at the end."""

    def __init__(self, depth):
        super().__init__()
        self.embed, self.norm, self.head = nn.Embedding(WORDS, WIDTH), nn.RMSNorm(WIDTH), nn.Linear(WIDTH, WORDS)
        self.branches = nn.ModuleList(kind() for _ in range(depth) for kind in (Attention, FeedForward))
        self.norms = nn.ModuleList(nn.RMSNorm(WIDTH) for _ in self.branches)
        self.queries = nn.Parameter(torch.zeros(2 * depth + 1, WIDTH))
        self.keys = nn.RMSNorm(WIDTH)
        nn.init.normal_(self.embed.weight, std=WIDTH**-0.5)

    def mixed(self, values, query):
        stacked = torch.stack(values)
        weights = torch.softmax((self.keys(stacked) * query).sum(-1, keepdim=True), dim=0)
        return (weights * stacked).sum(0)

    def forward(self, tokens):
        values = [self.embed(tokens)]
        for i, branch in enumerate(self.branches):
            values.append(branch(self.norms[i](self.mixed(values, self.queries[i]))))
        return self.head(self.norm(self.mixed(values, self.queries[-1])))


def attention_residuals(depth):
    return AttentionResiduals(depth), loss_of()


class Streams(nn.Module):
    """One hyper-connection: X ← H_resᵀ·X + H_post ⊗ f(N(H_pre·X)), its three mixings made of X; mHC: H_res doubly
    stochastic by Sinkhorn, H_pre and H_post within a sigmoid."""

    def __init__(self, branch):
        super().__init__()
        n = STREAMS
        self.branch, self.norm = branch, nn.RMSNorm(WIDTH)
        self.make = nn.Linear(n * WIDTH, n * n + 2 * n, bias=False)
        self.scale = nn.Parameter(torch.full((3,), 0.01))
        identity = 4 * torch.eye(n) - 4
        self.bias = nn.Parameter(torch.cat([torch.zeros(2 * n), identity.flatten()]))

    def forward(self, x):
        n = STREAMS
        flat = x.flatten(-2)
        made = self.make(rms(flat))
        pre, post, rest = made.split([n, n, n * n], -1)
        first, second, third = self.bias.split([n, n, n * n])
        pre = torch.sigmoid(self.scale[0] * pre + first)
        post = 2 * torch.sigmoid(self.scale[1] * post + second)
        rest = (self.scale[2] * rest + third).exp().unflatten(-1, (n, n))
        for _ in range(20):
            rest = rest / rest.sum(-1, keepdim=True)
            rest = rest / rest.sum(-2, keepdim=True)
        out = self.branch(self.norm((pre[..., None] * x).sum(-2)))
        return torch.einsum("btij,btid->btjd", rest, x) + post[..., None] * out[..., None, :]


class HyperConnected(nn.Module):
    def __init__(self, depth):
        super().__init__()
        self.embed, self.norm, self.head = nn.Embedding(WORDS, WIDTH), nn.RMSNorm(WIDTH), nn.Linear(WIDTH, WORDS)
        self.layers = nn.ModuleList(Streams(kind()) for _ in range(depth) for kind in (Attention, FeedForward))

    def forward(self, tokens):
        x = self.embed(tokens)[..., None, :].expand(-1, -1, STREAMS, -1)
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x.sum(-2)))


def mhc(depth):
    return HyperConnected(depth), loss_of()


def connected(depth, module):
    """Of lucidrains' package: its streams around each branch."""
    init, expand, reduce = import_module(module).get_init_and_expand_reduce_stream_functions(STREAMS)

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.norm, self.head = nn.Embedding(WORDS, WIDTH), nn.RMSNorm(WIDTH), nn.Linear(WIDTH, WORDS)
            self.layers = nn.ModuleList(
                init(dim=WIDTH, branch=nn.Sequential(nn.RMSNorm(WIDTH), kind()))
                for _ in range(depth)
                for kind in (Attention, FeedForward)
            )

        def forward(self, tokens):
            x = expand(self.embed(tokens))
            for layer in self.layers:
                x = layer(x)
            return self.head(self.norm(reduce(x)))

    return Model(), loss_of()


def hyper_connections(depth):
    return connected(depth, "hyper_connections")


def hyper_connections_mhc(depth):
    return connected(depth, "hyper_connections.mHCv2")


class Dense(nn.Module):
    """Pre-LN whose upper half adds what the lower half left, the last first, as a U-Net does."""

    def __init__(self, depth):
        super().__init__()
        self.embed, self.norm, self.head = nn.Embedding(WORDS, WIDTH), nn.RMSNorm(WIDTH), nn.Linear(WIDTH, WORDS)
        self.attention = nn.ModuleList(Attention() for _ in range(depth))
        self.feed = nn.ModuleList(FeedForward() for _ in range(depth))
        self.skip = nn.Parameter(torch.ones(depth // 2))

    def forward(self, tokens):
        x, held = self.embed(tokens), []
        for i, (attend, think) in enumerate(zip(self.attention, self.feed, strict=True)):
            if i >= (len(self.feed) + 1) // 2:
                x = x + self.skip[i - (len(self.feed) + 1) // 2] * held.pop()
            x = x + attend(rms(x))
            x = x + think(rms(x))
            if i < len(self.feed) // 2:
                held.append(x)
        return self.head(self.norm(x))


def u_net(depth):
    return Dense(depth), loss_of()
