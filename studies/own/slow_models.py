"""Models of the study of slow starts, as users write them: stacks of libraries, made by depth, 128 wide, 500 words."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

WIDTH, HEADS, WORDS, LENGTH = 128, 4, 500, 64


def gpt2(depth: int) -> Any:
    """Of transformers: Pre-LN, N(0, 0.02²), the matrices into the stream by 1/√(2N)."""
    from transformers import GPT2Config, GPT2LMHeadModel

    drops = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
    size = {"n_layer": depth, "n_embd": WIDTH, "n_head": HEADS, "vocab_size": WORDS, "n_positions": LENGTH}
    return GPT2LMHeadModel(GPT2Config(**size, **drops))


def llama(depth: int) -> Any:
    """Of transformers: Pre-LN by RMSNorm, rotary positions, gated feed-forward, N(0, 0.02²)."""
    from transformers import LlamaConfig, LlamaForCausalLM

    size = {"num_hidden_layers": depth, "hidden_size": WIDTH, "intermediate_size": 2 * WIDTH}
    heads = {"num_attention_heads": HEADS, "num_key_value_heads": HEADS, "max_position_embeddings": LENGTH}
    return LlamaForCausalLM(LlamaConfig(**size, **heads, vocab_size=WORDS))


class _Stack(nn.Module):
    """torch's own encoder layers behind a causal mask."""

    def __init__(self, depth: int, *, pre: bool) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(WIDTH, HEADS, 2 * WIDTH, dropout=0.0, batch_first=True, norm_first=pre)
        norm = nn.LayerNorm(WIDTH) if pre else None
        self.words, self.places = nn.Embedding(WORDS, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.layers = nn.TransformerEncoder(layer, depth, norm, enable_nested_tensor=False)
        for p in self.layers.parameters():
            if p.dim() > 1:
                nn.init.xavier_uniform_(p)  # TransformerEncoder copies its first layer: all would begin alike
        self.head = nn.Linear(WIDTH, WORDS)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        length = tokens.shape[1]
        mask = nn.Transformer.generate_square_subsequent_mask(length)
        x = self.words(tokens) + self.places(torch.arange(length))
        return self.head(self.layers(x, mask=mask, is_causal=True))  # type: ignore[no-any-return]


def post_ln(depth: int) -> Any:
    """Post-LN of torch's layers."""
    return _Stack(depth, pre=False)


def pre_ln(depth: int) -> Any:
    """Pre-LN of torch's layers."""
    return _Stack(depth, pre=True)
