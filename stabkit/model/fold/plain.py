"""A plain Post-LN Transformer of torch.nn's own layers: what folded weights are for."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn import functional

from stabkit.model import draw
from stabkit.model.positions import MAX_POSITIONS
from stabkit.spec import ModelConfig
from stabkit.tasks.base import PAD


class Plain(nn.Module):
    """A Post-LN Transformer of torch.nn's own layers (norm_first=False, relu, no dropout) with given weights.

    (B, S), (B, T) → states (T, B, D) and logits (T, B, V), as `Transformer`, with which it shares only the sinusoids.
    A decoder without an encoder is of TransformerEncoderLayers and a causal mask. Every layer gets its own weights.
    """

    def __init__(self, config: ModelConfig, arrays: Mapping[str, NDArray[Any]], eps: Mapping[str, float]) -> None:
        """`arrays` and `eps` (of every norm) by torch.nn's names."""
        super().__init__()
        vocab, self.width = arrays["embedding.weight"].shape
        depth = {"encoder": config.encoder_layers, "decoder": config.decoder_layers}
        with torch.device("meta"):  # nothing is drawn, and nobody's random state moves
            self.embedding = nn.Embedding(vocab, self.width)
            for stack in [stack for stack in depth if depth[stack]]:
                crossed = stack == "decoder" and config.encoder_layers
                kind = nn.TransformerDecoderLayer if crossed else nn.TransformerEncoderLayer
                layers = [kind(self.width, config.heads, config.ffn, dropout=0.0) for _ in range(depth[stack])]
                self.add_module(stack, nn.ModuleDict({"layers": nn.ModuleList(layers)}))
        for name, value in eps.items():
            norm = self.get_submodule(name)
            if not isinstance(norm, nn.LayerNorm):
                raise ValueError(f"{name} is no norm")
            norm.eps = float(value)
        self.load_state_dict({name: torch.tensor(array) for name, array in arrays.items()}, assign=True)
        positions = draw.positions(MAX_POSITIONS, self.width).float()  # rounded, as Transformer's are
        self.register_buffer("positions", positions.to(self.embedding.weight.dtype), persistent=False)

    def forward(self, source_BS: torch.Tensor, target_BT: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """States before the softmax (T, B, D) and logits (T, B, V); of an encoder alone (S, …)."""
        pad_BS = source_BS == PAD
        states: torch.Tensor | None = None
        for stack, held in self.named_children():
            if stack == "encoder":
                x = self._embed(source_BS)
                for layer in held.layers:  # type: ignore[union-attr]  # a child is typed Tensor | Module
                    x = layer(x, src_key_padding_mask=pad_BS)
                states = x
            elif stack == "decoder":
                x, t = self._embed(target_BT), target_BT.shape[1]
                later = torch.ones(t, t, dtype=torch.bool, device=target_BT.device).triu(1)
                for layer in held.layers:  # type: ignore[union-attr]
                    if states is None:
                        x = layer(x, src_mask=later)
                    else:
                        x = layer(x, states, tgt_mask=later, memory_key_padding_mask=pad_BS)
                states = x
        if states is None:
            raise ValueError("a Transformer without a layer")
        return states, functional.linear(states, self.embedding.weight)

    def _embed(self, tokens_BT: torch.Tensor) -> torch.Tensor:
        x_TBD = self.embedding(tokens_BT.t()) * math.sqrt(self.width)
        embedded: torch.Tensor = x_TBD + self.positions[: tokens_BT.shape[1], None]  # type: ignore[index]
        return embedded
