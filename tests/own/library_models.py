"""Models that nobody here wrote, small and with random weights, as factories of the depth. Nothing is downloaded.

Each imports its library when it is called; a test or a command that lacks one says so.
"""

from __future__ import annotations

from importlib.util import find_spec

import torch
from torch import nn
from torch.nn import functional

from tests.own.page import gpt as nano_gpt
from tests.own.stand_in import empty

SIZES = {"hidden_size": 64, "num_attention_heads": 2, "intermediate_size": 128, "vocab_size": 100}


def gpt2(depth):
    from transformers import GPT2Config, GPT2LMHeadModel

    return GPT2LMHeadModel(
        GPT2Config(n_embd=64, n_layer=depth, n_head=2, vocab_size=100, n_positions=32, bos_token_id=1, eos_token_id=2)
    )


def bert(depth):
    from transformers import BertConfig, BertForMaskedLM

    return BertForMaskedLM(BertConfig(num_hidden_layers=depth, max_position_embeddings=32, **SIZES))


def llama(depth):
    from transformers import LlamaConfig, LlamaForCausalLM

    return LlamaForCausalLM(LlamaConfig(num_hidden_layers=depth, num_key_value_heads=1, **SIZES))


def gemma2(depth):
    from transformers import Gemma2Config, Gemma2ForCausalLM

    return Gemma2ForCausalLM(Gemma2Config(num_hidden_layers=depth, num_key_value_heads=1, head_dim=32, **SIZES))


def olmo2(depth):
    from transformers import Olmo2Config, Olmo2ForCausalLM

    return Olmo2ForCausalLM(Olmo2Config(num_hidden_layers=depth, pad_token_id=0, eos_token_id=2, **SIZES))


def granite(depth):
    from transformers import GraniteConfig, GraniteForCausalLM

    return GraniteForCausalLM(GraniteConfig(num_hidden_layers=depth, residual_multiplier=0.22, **SIZES))


def gpt_neox(depth):
    from transformers import GPTNeoXConfig, GPTNeoXForCausalLM

    return GPTNeoXForCausalLM(GPTNeoXConfig(num_hidden_layers=depth, eos_token_id=2, **SIZES))


def mixtral(depth):
    from transformers import MixtralConfig, MixtralForCausalLM

    return MixtralForCausalLM(MixtralConfig(num_hidden_layers=depth, num_key_value_heads=1, **SIZES))


def albert(depth):
    from transformers import AlbertConfig, AlbertForMaskedLM

    return AlbertForMaskedLM(AlbertConfig(num_hidden_layers=depth, embedding_size=64, **SIZES))


def t5(depth):
    from transformers import T5Config, T5ForConditionalGeneration

    model = T5ForConditionalGeneration(
        T5Config(
            d_model=64,
            d_kv=32,
            num_heads=2,
            d_ff=128,
            num_layers=depth,
            vocab_size=100,
            dropout_rate=0.0,
            decoder_start_token_id=0,
        )
    )
    tokens = _tokens(2)
    return model, lambda model: model(input_ids=tokens[0], labels=tokens[1]).loss


def timm_vit(depth):
    with empty("torchvision"):
        from timm.models.vision_transformer import VisionTransformer

    return VisionTransformer(
        img_size=32, patch_size=8, embed_dim=64, depth=depth, num_heads=2, num_classes=10, init_values=1e-5
    )


def torch_encoder(depth):
    """Post-LN; nn.TransformerEncoder copies one layer, so that all begin alike."""
    layer = nn.TransformerEncoderLayer(64, 2, 128, dropout=0.0, batch_first=True)
    model = nn.Sequential(
        nn.Embedding(100, 64), nn.TransformerEncoder(layer, depth, enable_nested_tensor=False), nn.Linear(64, 100)
    )
    (tokens,) = _tokens(1)
    return model, lambda model: functional.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten())


def x_sandwich(depth):
    from x_transformers import Decoder, TransformerWrapper

    return TransformerWrapper(
        num_tokens=100, max_seq_len=32, attn_layers=Decoder(dim=64, depth=depth, heads=2, sandwich_norm=True)
    )


def _tokens(count):
    generator = torch.Generator().manual_seed(11)
    return [torch.randint(0, 100, (8, 32), generator=generator) for _ in range(count)]


LIBRARY = {
    "gpt2": "transformers",
    "bert": "transformers",
    "llama": "transformers",
    "gemma2": "transformers",
    "olmo2": "transformers",
    "granite": "transformers",
    "gpt_neox": "transformers",
    "mixtral": "transformers",
    "albert": "transformers",
    "t5": "transformers",
    "timm_vit": "timm",
    "torch_encoder": "torch",
    "x_sandwich": "x_transformers",
    "nano_gpt": "torch",
}
"""What each needs."""


def missing(name: str) -> str:
    """The library that a factory lacks here; "" where it is there."""
    return "" if find_spec(LIBRARY[name]) else LIBRARY[name]


__all__ = [*LIBRARY, "LIBRARY", "missing", "nano_gpt"]
