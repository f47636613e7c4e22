"""A GPT as it stands in a training script: the model of docs/own_model.md, in the size of a test."""

from __future__ import annotations

import math

from torch import nn
from torch.nn import functional


class Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attn, self.attn_out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.fc, self.proj = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        q, k, v = (y.unflatten(-1, (self.heads, -1)).transpose(1, 2) for y in self.attn(self.ln_1(x)).chunk(3, dim=-1))
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2)
        x = x + self.attn_out(y)
        return x + self.proj(functional.gelu(self.fc(self.ln_2(x))))


class GPT(nn.Module):
    def __init__(self, depth: int, width: int = 64, heads: int = 2, words: int = 100, length: int = 64) -> None:
        super().__init__()
        self.wte, self.wpe = nn.Embedding(words, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(depth))
        self.ln_f, self.head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)
        self.head.weight = self.wte.weight
        for name, parameter in self.named_parameters():
            if name.endswith("weight") and parameter.dim() > 1:
                nn.init.normal_(parameter, std=0.02)
            if name.endswith(("attn_out.weight", "proj.weight")):
                nn.init.normal_(parameter, std=0.02 / math.sqrt(2 * depth))

    def forward(self, tokens):
        x = self.wte(tokens) + self.wpe.weight[: tokens.shape[1]]
        for block in self.blocks:
            x = block(x)
        return self.head(self.ln_f(x))


def gpt(depth: int) -> GPT:
    """For `stabkit probe`."""
    return GPT(depth)
