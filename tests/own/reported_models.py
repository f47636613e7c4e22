"""Kinds of slips that people have reported, one small decoder that has any of them by name."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

WIDTH, HEADS, WORDS = 64, 2, 100


class Block(nn.Module):
    def __init__(self, slip: str, layer: int) -> None:
        super().__init__()
        self.slip, self.n1, self.n2 = slip, nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.before = nn.LayerNorm(WIDTH) if slip == "two norms" else nn.Identity()
        self.q, self.k, self.v, self.o = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
        if slip == "inner sum":
            self.inner, self.direct = nn.Linear(4 * WIDTH, 4 * WIDTH), nn.Parameter(torch.ones(4 * WIDTH))
        self.register_buffer("kappa", torch.tensor(0.0 if slip == "κ 0" else layer**-0.5 if slip == "κ" else 1.0))

    def attend(self, n, memory):
        scale = {"no logit scale": 1.0, "logits over d": (WIDTH // HEADS) ** -1.0}.get(self.slip)
        q, k, v = (
            part(y).unflatten(-1, (HEADS, -1)).transpose(1, 2)
            for part, y in ((self.q, n), (self.k, memory), (self.v, memory))
        )
        causal = self.slip != "no mask"
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=causal, scale=scale)
        return self.o(y.transpose(1, 2).flatten(2))

    def think(self, n):
        u = self.up(n)
        if self.slip == "inner sum":
            return self.down((self.inner(u) + self.direct * u) * functional.silu(u))
        return self.down(functional.relu(u))

    def forward(self, x):
        n = self.kappa * self.n1(self.before(x))
        shortcut = n if self.slip == "attention's normed shortcut" else x
        memory = x if self.slip == "raw keys and values" else n
        x = shortcut + self.attend(n, memory)
        n = self.kappa * self.n2(x)
        return (n if self.slip == "normed shortcut" else x) + self.think(n)


class Decoder(nn.Module):
    def __init__(self, depth: int, slip: str = "", std: float = 0.0) -> None:
        super().__init__()
        self.slip, self.embed = slip, nn.Embedding(WORDS, WIDTH)
        blocks = [Block(slip, i + 1) for i in range(depth)]
        self.blocks = nn.ModuleList(blocks) if slip != "a plain list" else blocks
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WORDS)
        for part in (self, *blocks):
            for name, parameter in part.named_parameters():
                if parameter.dim() > 1:
                    nn.init.normal_(parameter, std=std) if std else nn.init.xavier_normal_(parameter)
                elif name.endswith("bias"):
                    nn.init.zeros_(parameter)
        if slip == "shared attention":
            for block in blocks:
                block.q, block.k, block.v, block.o = blocks[0].q, blocks[0].k, blocks[0].v, blocks[0].o
        if slip == "a large head":
            nn.init.normal_(self.head.weight, std=1.0)

    def forward(self, tokens):
        x = self.embed(tokens)
        for i, block in enumerate(self.blocks):
            x = block(x.detach() if self.slip == "detached" and i == len(self.blocks) // 2 else x)
        return self.head(self.norm(x))


def of(slip):
    """A factory of the depth with this slip."""

    def factory(depth):
        return Decoder(depth, slip)

    return factory


def masked(depth, empty=True):
    """One sentence of eight has no token to attend to."""
    tokens = torch.randint(1, WORDS, (8, 24), generator=torch.Generator().manual_seed(0))
    if empty:
        tokens[1] = 0
    model = Masked(depth)
    keep = tokens != 0
    return model, lambda model: functional.cross_entropy(model(tokens)[keep], tokens[keep])


class Masked(nn.Module):
    def __init__(self, depth):
        super().__init__()
        self.embed, self.norm, self.head = nn.Embedding(WORDS, WIDTH), nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WORDS)
        self.attention = nn.ModuleList(nn.MultiheadAttention(WIDTH, HEADS, batch_first=True) for _ in range(depth))
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(depth))

    def forward(self, tokens):
        x, mask = self.embed(tokens), tokens == 0
        for attend, norm in zip(self.attention, self.norms, strict=True):
            n = norm(x)
            x = x + attend(n, n, n, key_padding_mask=mask, need_weights=True)[0]
        return self.head(self.norm(x))
