"""What is true of each healthy model at depth 4, read by hand from its source, never from what stabkit says of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import sqrt

Places = tuple[bool | None, bool | None, bool | None, bool | None]


@dataclass(frozen=True)
class Facts:
    """`stacks`: layers of each. Of the main stack (a decoder where there are two):

    kinds    sub-layers a layer
    norms    whether one stands before a branch's first matrices, inside, after its last matrix, after the sum; None
             where it differs among sub-layers of that kind, or cannot be said
    final    norms after the last sum, less the last sub-layer's own
    logits   the factor on q·k; None where a norm stands on them or there are none
    std      of self-attention's and feed-forward's matrices at the start, where a rule draws them
    scales   (ω, γ) of the line with the sum, {kind: …} where they differ; None where a condition or something trained
             makes them, or there is no such sum
    """

    stacks: dict[str, int]
    kinds: dict[str, int]
    norms: dict[str, Places]
    final: int
    causal: bool
    logits: float | None
    std: dict[str, float]
    source: str
    scales: tuple[float, float] | dict[str, tuple[float, float] | None] | None = field(default=(1.0, 1.0))

    def scale(self, kind: str) -> tuple[float, float] | None:
        return self.scales[kind] if isinstance(self.scales, dict) else self.scales


def same(std, **others):
    """One rule for all, but for those with their own."""
    return {**dict.fromkeys(("query", "key", "value", "out", "up", "down"), std), **others}


def xavier(fan_in, fan_out):
    return sqrt(2 / (fan_in + fan_out))


def linear(inner, heads=64):
    """nn.Linear's own: 1/√(3·fan_in)."""
    return same(1 / sqrt(3 * 64), out=1 / sqrt(3 * heads), down=1 / sqrt(3 * inner))


def fused(up, down, out):
    """Xavier of one matrix for queries, keys and values."""
    return same(xavier(64, 192), out=out, up=up, down=down)


ENC, DEC, BOTH = {"encoder": 4}, {"decoder": 4}, {"encoder": 4, "decoder": 4}
PAIR, TRIPLE, SIDE = {"self": 1, "ffn": 1}, {"self": 1, "cross": 1, "ffn": 1}, {"self+ffn": 1}
AXES, CONFORMER, OTHER = {"self": 2, "ffn": 1}, {"ffn": 2, "self": 1, "other": 1}, {"other": 1}
before, after, around = (True, False, False, False), (False, False, True, False), (True, False, True, False)
post, bare = (False, False, False, True), (False, False, False, False)
PRE, POST, RES_POST, SANDWICH = (dict.fromkeys(PAIR, places) for places in (before, post, after, around))
PRE_SIDE, PRE_TRIPLE, POST_TRIPLE = {"self+ffn": before}, dict.fromkeys(TRIPLE, before), dict.fromkeys(TRIPLE, post)
FIRST_CROSS = {"self": 0.8, "cross": 0.2, "ffn": 1}
"""Of five layers the first reads the input, the others themselves."""
PRE_CONFORMER = {"ffn": (True, False, False, None), "self": before, "other": (True, True, False, False)}
"""Only the second feed-forward has a norm after its sum; a batch norm stands inside of the convolution module."""
FIRST_BARE = {"self": (None, False, False, False), "ffn": before}
"""The first layer lacks its first norm."""
HALF = {"ffn": (1.0, 0.5), "self": (1.0, 1.0), "other": (1.0, 1.0)}
H = 32**-0.5
T2 = 0.87962566
"""Of a normal distribution cut at two standard deviations."""
DEEP = {"out": 0.02 / sqrt(8), "down": 0.02 / sqrt(8)}
T5 = same(1 / 8, query=1 / sqrt(64 * 32), down=1 / sqrt(128))
NANO = fused(xavier(64, 256), xavier(64, 256) / sqrt(8), xavier(64, 64) / sqrt(8))
DIT = fused(xavier(64, 256), xavier(64, 256), xavier(64, 64))
TORCH = fused(1 / sqrt(3 * 64), 1 / sqrt(3 * 128), 1 / sqrt(3 * 64))
X = linear(256, heads=128)
CLIP = same(1 / 8 / sqrt(8), out=1 / 8, up=1 / sqrt(128))
FACTS = {
    # transformers 5.23, models/…/modeling_….py with _init_weights there or in modeling_utils.py
    "gpt2": Facts(DEC, PAIR, PRE, 1, True, H, same(0.02, **DEEP), "GPT2Block, GPT2PreTrainedModel"),
    "bert": Facts(ENC, PAIR, POST, 0, False, H, same(0.02), "BertSelfOutput, BertOutput"),
    "llama": Facts(DEC, PAIR, PRE, 1, True, H, same(0.02), "LlamaDecoderLayer"),
    "gemma2": Facts(DEC, PAIR, SANDWICH, 1, True, 256**-0.5, same(0.02), "Gemma2DecoderLayer, Gemma2Attention"),
    "olmo2": Facts(DEC, PAIR, RES_POST, 1, True, None, same(0.02), "Olmo2DecoderLayer"),
    "granite": Facts(DEC, PAIR, PRE, 1, True, 1.0, same(0.02), "GraniteDecoderLayer, GraniteConfig", (1.0, 0.22)),
    "gpt_neox": Facts(DEC, SIDE, PRE_SIDE, 1, True, H, same(0.02), "GPTNeoXLayer"),
    "mixtral": Facts(DEC, PAIR, PRE, 1, True, H, same(0.02), "MixtralDecoderLayer, MixtralExperts"),
    "albert": Facts(ENC, PAIR, POST, 0, False, H, same(0.02), "AlbertLayer, AlbertAttention"),
    "t5": Facts(BOTH, TRIPLE, PRE_TRIPLE, 1, True, 1.0, T5, "T5Block, T5PreTrainedModel"),
    "qwen3": Facts(DEC, PAIR, PRE, 1, True, None, same(0.02), "Qwen3DecoderLayer, Qwen3Attention"),
    "phi": Facts(DEC, SIDE, PRE_SIDE, 1, True, H, same(0.02), "PhiDecoderLayer"),
    "opt": Facts(DEC, PAIR, PRE, 1, True, H, same(0.02), "OPTDecoderLayer, OPTDecoder"),
    "bloom": Facts(DEC, PAIR, PRE, 1, True, H, same(0.02), "BloomBlock, BloomAttention"),
    "falcon": Facts(DEC, SIDE, PRE_SIDE, 1, True, H, same(0.02), "FalconDecoderLayer, parallel_attn"),
    "modernbert": Facts(
        ENC, PAIR, FIRST_BARE, 1, False, H, same(T2 * 0.02, out=T2 * DEEP["out"], down=T2 * DEEP["down"]),
        "ModernBertEncoderLayer, ModernBertPreTrainedModel",
    ),
    "olmoe": Facts(DEC, PAIR, PRE, 1, True, None, same(0.02), "OlmoeDecoderLayer, OlmoeExperts"),
    "mamba": Facts(DEC, OTHER, {"other": before}, 1, True, None, {}, "MambaBlock"),
    "rwkv": Facts(
        DEC, {"other": 1, "ffn": 1}, {"other": before, "ffn": before}, 1, True, None, {"up": 1 / 8, "down": 1 / 16},
        "RwkvBlock, RwkvFeedForward; orthogonal matrices of RwkvPreTrainedModel",
    ),
    "bart": Facts(BOTH, TRIPLE, POST_TRIPLE, 0, True, H, same(0.02), "BartDecoderLayer"),
    "conformer": Facts(
        ENC, CONFORMER, PRE_CONFORMER, 1, False, H, linear(128), "Wav2Vec2ConformerEncoderLayer, …Encoder", HALF
    ),
    "dinov2": Facts(ENC, PAIR, PRE, 1, False, H, same(0.02), "Dinov2Layer, Dinov2LayerScale", None),
    "swin": Facts(ENC, PAIR, PRE, 1, False, H, same(0.02), "SwinLayer; the second stage, 2 layers are before it"),
    "patch_tst": Facts(ENC, PAIR, PRE, 0, False, H, same(0.02), "PatchTSTEncoderLayer; batch norms"),
    "whisper": Facts(BOTH, TRIPLE, PRE_TRIPLE, 1, True, H, same(0.02), "WhisperDecoderLayer, WhisperAttention"),
    "m2m100": Facts(BOTH, TRIPLE, PRE_TRIPLE, 1, True, H, same(0.02), "M2M100DecoderLayer"),
    "deberta_v2": Facts(ENC, PAIR, POST, 0, False, 96**-0.5, same(0.02), "DisentangledSelfAttention, …Output"),
    "gemma3": Facts(DEC, PAIR, SANDWICH, 1, True, None, same(0.02), "Gemma3DecoderLayer, Gemma3Attention"),
    "deepseek_v3": Facts(
        DEC, PAIR, {"self": (True, None, False, False), "ffn": before}, 1, True, H,
        {"out": 0.02, "up": 0.02, "down": 0.02}, "DeepseekV3DecoderLayer, …Attention; norms on latents",
    ),
    "perceiver": Facts(
        {"encoder": 5}, FIRST_CROSS, PRE_TRIPLE, 0, False, H, same(0.02), "PerceiverEncoder: cross, then 4 of self"
    ),
    "qwen3_moe": Facts(DEC, PAIR, PRE, 1, True, None, same(0.02), "Qwen3MoeDecoderLayer, Qwen3MoeExperts"),
    "siglip_vision": Facts(
        ENC, PAIR, PRE, 1, False, H, same(1 / 8, up=xavier(64, 128), down=xavier(64, 128)), "SiglipEncoderLayer, …Model"
    ),
    "clip_text": Facts(DEC, PAIR, PRE, 1, True, H, CLIP, "CLIPEncoderLayer, CLIPPreTrainedModel"),
    "gptj": Facts(DEC, SIDE, PRE_SIDE, 1, True, H, same(0.02), "GPTJBlock, GPTJAttention"),
    "cohere": Facts(DEC, SIDE, PRE_SIDE, 1, True, H, same(0.02), "CohereDecoderLayer"),
    # timm 1.0, torch
    "timm_vit": Facts(ENC, PAIR, PRE, 1, False, H, same(0.02), "timm Block, LayerScale, init_weights_vit_timm", None),
    "timm_res_post": Facts(ENC, PAIR, RES_POST, 1, False, H, same(0.02), "timm ResPostBlock, init_weights_vit_timm"),
    "torch_encoder": Facts(ENC, PAIR, POST, 0, False, H, TORCH, "nn.TransformerEncoderLayer, nn.MultiheadAttention"),
    "torch_pre_ln": Facts(ENC, PAIR, PRE, 1, False, H, TORCH, "nn.TransformerEncoderLayer, nn.MultiheadAttention"),
    # x-transformers 2.31: AttentionLayers, Attention, FeedForward
    "x_sandwich": Facts(DEC, PAIR, SANDWICH, 1, True, 1 / 8, X, "post_branch_norm"),
    "x_macaron": Facts(DEC, {"ffn": 2, "self": 1}, PRE, 1, True, 1 / 8, X, "Scale(0.5, layer)", HALF),
    "x_attention_residuals": Facts(DEC, PAIR, PRE, 1, True, 1 / 8, X, "AttentionResidual is read, Residual written"),
    "x_streams": Facts(DEC, PAIR, PRE, 1, True, 1 / 8, X, "HyperConnection", None),
    "x_gru_gates": Facts(DEC, PAIR, PRE, 1, True, 1 / 8, X, "GRUGating", None),
    "x_value_residual": Facts(DEC, PAIR, PRE, 1, True, 1 / 8, X, "add_value_residual"),
    # of this repository, after papers: page.py, recent_models.py; hyper_connections 0.4 around branches
    "nano_gpt": Facts(DEC, PAIR, PRE, 1, True, H, NANO, "docs/own_model.md"),
    "nanochat": Facts(DEC, PAIR, PRE, 1, True, None, same(1 / 8, out=0.0, down=0.0), "NanoChat", None),
    "attention_residuals": Facts(DEC, PAIR, PRE, 1, True, None, linear(256), "AttentionResiduals", None),
    "mhc": Facts(DEC, PAIR, PRE, 1, True, None, linear(256), "Streams, HyperConnected", None),
    "u_net": Facts(DEC, PAIR, PRE, 1, True, None, linear(256), "Dense"),
    "hyper_connections": Facts(DEC, PAIR, PRE, 1, True, None, linear(256), "connected, HyperConnections", None),
    "hyper_connections_mhc": Facts(DEC, PAIR, PRE, 1, True, None, linear(256), "connected, mHCv2", None),
    # of zoo_models.py, after papers
    "rotary_halves": Facts(DEC, PAIR, PRE, 1, True, H, linear(256), "Fused, PreLN; GPT-NeoX's rotation"),
    "rotary_interleaved": Facts(DEC, PAIR, PRE, 1, True, H, same(0.02), "Fused, PreLN; RoFormer's rotation"),
    "rotary_complex": Facts(DEC, PAIR, PRE, 1, True, H, linear(256), "Fused, PreLN; the first Llama's rotation"),
    "alibi": Facts(DEC, PAIR, PRE, 1, True, H, linear(256), "Apart, PreLN; 2108.12409"),
    "lora": Facts(DEC, PAIR, PRE, 1, True, H, same(0.02, **DEEP), "LoRA, Apart, PreLN; 2106.09685"),
    "top2_experts": Facts(DEC, PAIR, PRE, 1, True, H, linear(128), "Experts, Apart, PreLN; the first Mixtral's loop"),
    "dit": Facts(ENC, PAIR, PRE, 1, False, H, DIT, "Conditioned, Diffusion; facebookresearch/DiT models.py", None),
    "pixart": Facts(
        ENC, TRIPLE, {"self": before, "cross": bare, "ffn": before}, 1, False, H, DIT,
        "Conditioned, Diffusion; PixArt-alpha PixArt.py", {"self": None, "cross": (1.0, 1.0), "ffn": None},
    ),
    "adaln_per_token": Facts(ENC, PAIR, PRE, 1, False, H, DIT, "Conditioned, Diffusion; a time a token", None),
    "ft_transformer": Facts(ENC, PAIR, FIRST_BARE, 1, False, H, linear(85), "Tabular; rtdl bin/ft_transformer.py"),
    "u_vit": Facts({"encoder": 5}, PAIR, PRE, 1, False, H, same(0.02), "UViT, PreLN; baofff/U-ViT uvit.py: 2 + 1 + 2"),
    "conformer_by_hand": Facts(
        ENC, CONFORMER, PRE_CONFORMER, 0, False, H, linear(256), "ConformerBlock, Convolution; 2005.08100", HALF
    ),
    "streams_in_one_tensor": Facts(DEC, PAIR, PRE, 1, True, H, linear(256), "Connection, Streams; 2409.19606", None),
    "axial": Facts(ENC, AXES, PRE, 1, False, H, DIT, "ByAxes; 1912.12180"),
    "video": Facts(ENC, AXES, PRE, 1, False, H, DIT, "ByAxes; ViViT's factorised self-attention, 2103.15691"),
}  # fmt: skip


def count(facts: dict[str, Facts]) -> int:
    """Every stack, kind, place of a norm, final, causal, scale, factor and standard deviation is one."""
    return sum(
        len(own.stacks) + len(own.kinds) + len(own.std) + 2 + (own.logits is not None)
        + sum(place is not None for places in own.norms.values() for place in places)
        + (len(own.kinds) if isinstance(own.scales, dict) else 1)
        for own in facts.values()
    )  # fmt: skip
