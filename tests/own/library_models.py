"""Models that nobody here wrote, small and with random weights, as factories of the depth. Nothing is downloaded.

Each imports its library when it is called; a test or a command that lacks one says so.
"""

from __future__ import annotations

from importlib.util import find_spec

import torch
from torch import nn
from torch.nn import functional

from tests.own import page, recent_models
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


def _x(depth, **more):
    from x_transformers import Decoder, TransformerWrapper

    return TransformerWrapper(num_tokens=100, max_seq_len=32, attn_layers=Decoder(dim=64, depth=depth, heads=2, **more))


def x_macaron(depth):
    return _x(depth, macaron=True)


def x_attention_residuals(depth):
    return _x(depth, attn_aggregated_residuals=True, attn_aggregated_residual_kwargs={"lora_rank": 32})


def x_streams(depth):
    return _x(depth, num_residual_streams=4)


def x_gru_gates(depth):
    return _x(depth, gate_residual=True)


def x_value_residual(depth):
    return _x(depth, add_value_residual=True)


def qwen3(depth):
    from transformers import Qwen3Config, Qwen3ForCausalLM

    return Qwen3ForCausalLM(Qwen3Config(num_hidden_layers=depth, num_key_value_heads=1, head_dim=32, **SIZES))


def phi(depth):
    from transformers import PhiConfig, PhiForCausalLM

    return PhiForCausalLM(PhiConfig(num_hidden_layers=depth, resid_pdrop=0.0, bos_token_id=1, eos_token_id=2, **SIZES))


def opt(depth):
    from transformers import OPTConfig, OPTForCausalLM

    return OPTForCausalLM(
        OPTConfig(
            hidden_size=64, ffn_dim=128, num_attention_heads=2, num_hidden_layers=depth, vocab_size=100, dropout=0.0,
            max_position_embeddings=32, word_embed_proj_dim=64, pad_token_id=0, bos_token_id=1, eos_token_id=2,
        )
    )  # fmt: skip


def bloom(depth):
    from transformers import BloomConfig, BloomForCausalLM

    return BloomForCausalLM(BloomConfig(hidden_size=64, n_layer=depth, n_head=2, vocab_size=100, pad_token_id=0))


def falcon(depth):
    from transformers import FalconConfig, FalconForCausalLM

    sizes = {"hidden_size": 64, "num_attention_heads": 2, "vocab_size": 100, "bos_token_id": 1, "eos_token_id": 2}
    return FalconForCausalLM(FalconConfig(num_hidden_layers=depth, **sizes))


def modernbert(depth):
    from transformers import ModernBertConfig, ModernBertForMaskedLM

    return ModernBertForMaskedLM(
        ModernBertConfig(num_hidden_layers=depth, pad_token_id=0, cls_token_id=1, sep_token_id=2, **SIZES)
    )


def olmoe(depth):
    from transformers import OlmoeConfig, OlmoeForCausalLM

    return OlmoeForCausalLM(OlmoeConfig(num_hidden_layers=depth, num_experts=4, num_experts_per_tok=2, **SIZES))


def mamba(depth):
    from transformers import MambaConfig, MambaForCausalLM

    return MambaForCausalLM(MambaConfig(hidden_size=64, num_hidden_layers=depth, vocab_size=100, state_size=4))


def rwkv(depth):
    from transformers import RwkvConfig, RwkvForCausalLM

    return RwkvForCausalLM(
        RwkvConfig(hidden_size=64, attention_hidden_size=64, num_hidden_layers=depth, vocab_size=100, context_length=32)
    )


def bart(depth):
    from transformers import BartConfig, BartForConditionalGeneration

    model = BartForConditionalGeneration(
        BartConfig(
            d_model=64, encoder_layers=depth, decoder_layers=depth, encoder_attention_heads=2,
            decoder_attention_heads=2, encoder_ffn_dim=128, decoder_ffn_dim=128, vocab_size=100, dropout=0.0,
            max_position_embeddings=64, pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=2,
        )
    )  # fmt: skip
    tokens = _tokens(2)
    return model, lambda model: model(input_ids=tokens[0], labels=tokens[1]).loss


def conformer(depth):
    """The encoder of wav2vec 2.0's Conformer on frames of 64 numbers, a class a frame."""
    from transformers import Wav2Vec2ConformerConfig
    from transformers.models.wav2vec2_conformer.modeling_wav2vec2_conformer import Wav2Vec2ConformerEncoder

    sizes = {**SIZES, "layerdrop": 0.0, "hidden_dropout": 0.0, "attention_dropout": 0.0, "conformer_conv_dropout": 0.0}
    config = Wav2Vec2ConformerConfig(num_hidden_layers=depth, conv_depthwise_kernel_size=3, **sizes)

    class Frames(nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder, self.head = Wav2Vec2ConformerEncoder(config), nn.Linear(64, 10)

        def forward(self, frames):
            return self.head(self.encoder(frames).last_hidden_state)

    return Frames(), _of_frames


def _of_frames(model):
    generator = torch.Generator().manual_seed(11)
    frames, labels = torch.randn(4, 32, 64, generator=generator), torch.randint(0, 10, (4, 32), generator=generator)
    return functional.cross_entropy(model(frames).flatten(0, 1), labels.flatten())


def dinov2(depth):
    from transformers import Dinov2Config, Dinov2ForImageClassification

    return Dinov2ForImageClassification(
        Dinov2Config(
            hidden_size=64, num_hidden_layers=depth, num_attention_heads=2, image_size=32, patch_size=8, num_labels=10
        )
    )


def swin(depth):
    from transformers import SwinConfig, SwinForImageClassification

    return SwinForImageClassification(
        SwinConfig(
            image_size=32, patch_size=4, embed_dim=32, depths=[2, depth], num_heads=[2, 2], window_size=2,
            drop_path_rate=0.0, num_labels=10,
        )
    )  # fmt: skip


def timm_res_post(depth):
    with empty("torchvision"):
        from timm.models.vision_transformer import ResPostBlock, VisionTransformer

    return VisionTransformer(
        img_size=32, patch_size=8, embed_dim=64, depth=depth, num_heads=2, num_classes=10, block_fn=ResPostBlock
    )


def vit_pytorch(depth):
    with empty("torchvision"):
        from vit_pytorch import ViT

    return _with_images(ViT(image_size=32, patch_size=8, num_classes=10, dim=64, depth=depth, heads=2, mlp_dim=128))


def _with_images(model):
    generator = torch.Generator().manual_seed(11)
    images, labels = torch.randn(8, 3, 32, 32, generator=generator), torch.randint(0, 10, (8,), generator=generator)
    return model, lambda model: functional.cross_entropy(model(images), labels)


def open_clip(depth):
    """The blocks of its text tower, with an embedding and a head."""
    with empty("torchvision"):
        from open_clip.transformer import Transformer

    class Text(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.blocks = nn.Embedding(100, 64), Transformer(64, depth, 2, batch_first=True)
            self.norm, self.head = nn.LayerNorm(64), nn.Linear(64, 100)
            nn.init.normal_(self.embed.weight, std=0.02)

        def forward(self, tokens):
            length = tokens.shape[1]
            mask = torch.full((length, length), float("-inf")).triu(1)
            return self.head(self.norm(self.blocks(self.embed(tokens), attn_mask=mask)))

    return Text()


def litgpt(depth):
    from litgpt import GPT, Config

    return GPT(
        Config(
            n_embd=64, n_layer=depth, n_head=2, n_query_groups=1, block_size=32, vocab_size=100, padded_vocab_size=100,
            norm_class_name="RMSNorm", mlp_class_name="LLaMAMLP", intermediate_size=128, bias=False,
            parallel_residual=False, rotary_percentage=1.0,
        )
    )  # fmt: skip


def torch_pre_ln(depth):
    """nn.TransformerEncoderLayer(norm_first=True), each layer built by itself."""
    layers = [
        nn.TransformerEncoderLayer(64, 2, 128, dropout=0.0, batch_first=True, norm_first=True) for _ in range(depth)
    ]
    model = nn.Sequential(nn.Embedding(100, 64), *layers, nn.LayerNorm(64), nn.Linear(64, 100))
    (tokens,) = _tokens(1)
    return model, lambda model: functional.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten())


def _tokens(count):
    generator = torch.Generator().manual_seed(11)
    return [torch.randint(0, 100, (8, 32), generator=generator) for _ in range(count)]


nano_gpt = page.gpt
nanochat, u_net, mhc = recent_models.nanochat, recent_models.u_net, recent_models.mhc
attention_residuals = recent_models.attention_residuals
hyper_connections, hyper_connections_mhc = recent_models.hyper_connections, recent_models.hyper_connections_mhc
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
"""What each needs of those that CI probes."""
ZOO = {
    **LIBRARY,
    **dict.fromkeys(
        "qwen3 phi opt bloom falcon modernbert olmoe mamba rwkv bart conformer dinov2 swin".split(), "transformers"
    ),
    **dict.fromkeys("x_macaron x_attention_residuals x_streams x_gru_gates x_value_residual".split(), "x_transformers"),
    "timm_res_post": "timm",
    "vit_pytorch": "vit_pytorch",
    "open_clip": "open_clip",
    "litgpt": "litgpt",
    "torch_pre_ln": "torch",
    **dict.fromkeys("nanochat attention_residuals mhc u_net".split(), "torch"),
    **dict.fromkeys(("hyper_connections", "hyper_connections_mhc"), "hyper_connections"),
}
"""What each needs of those in docs/evidence/library_models.md."""


def missing(name: str) -> str:
    """The library that a factory lacks here; "" where it is there."""
    return "" if find_spec(ZOO[name]) else ZOO[name]


__all__ = [*ZOO, "LIBRARY", "ZOO", "missing"]
