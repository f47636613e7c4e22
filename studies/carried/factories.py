"""Models as users write them, 64 wide, on fresh batches of `stabkit.own.probe.learnable`: a plain one of torch.nn under
three optimisers, GPT-2 of transformers under AdamW."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

WORDS, LENGTH, WIDTH, HEADS = 256, 32, 64, 2


class Block(nn.Module):
    """x + attention(norm x), x + feed-forward(norm x)."""

    def __init__(self) -> None:
        super().__init__()
        self.before, self.between = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attention = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)
        self.ffn = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        later = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
        held = self.before(x)
        x = x + self.attention(held, held, held, attn_mask=later, need_weights=False)[0]
        summed: torch.Tensor = x + self.ffn(self.between(x))
        return summed


class Plain(nn.Module):
    """A language model of `depth` blocks."""

    def __init__(self, depth: int) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(WORDS, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(depth))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WORDS)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.words(tokens) + self.places(torch.arange(tokens.shape[1]))
        for block in self.blocks:
            x = block(x)
        scores: torch.Tensor = self.head(self.norm(x))
        return scores


def plain_adamw(depth: int) -> nn.Module:
    """Nothing but the model: AdamW is what `transfer` takes."""
    return Plain(depth)


def plain_sgd(depth: int) -> Any:
    """SGD with momentum."""
    from stabkit.own.probe import defaults

    model = Plain(depth)
    return model, _loss(defaults, model), torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)


def plain_muon(depth: int) -> Any:
    """Muon on the blocks' matrices, AdamW on the rest."""
    from stabkit.own.probe import defaults

    model = Plain(depth)
    matrices = [p for p in model.blocks.parameters() if p.dim() == 2]
    own = {id(p) for p in matrices}
    rest = [p for p in model.parameters() if id(p) not in own]
    steppers = [torch.optim.Muon(matrices, lr=1e-2, adjust_lr_fn="match_rms_adamw"), torch.optim.AdamW(rest, lr=1e-2)]
    return model, _loss(defaults, model), steppers


def gpt2_adamw(depth: int) -> nn.Module:
    """GPT-2 of transformers, without dropout."""
    from transformers import GPT2Config, GPT2LMHeadModel

    shape = {"n_embd": WIDTH, "n_head": HEADS, "n_layer": depth, "n_positions": LENGTH, "vocab_size": WORDS}
    made: nn.Module = GPT2LMHeadModel(GPT2Config(**shape, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0))
    return made


def _loss(defaults: Any, model: nn.Module) -> Any:
    """Fresh batches of what a factory without a loss is given, of the seed that chance has."""
    at = defaults.loss(model, int(torch.initial_seed())).at
    return lambda model, step: at(model, step)
