"""Public implementations of the papers' methods, small: what `stabkit audit factories:NAME` is pointed at.

Every factory takes the depth (audit calls it without). Width 64, feed-forward 256 unless a package fixes it, four
heads, 100 tokens. The packages stand where STABKIT_WILD says (`audit.py` installs them there); those that conflict with
others in folders of their own, put first by `_first`.
"""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path
from types import ModuleType, SimpleNamespace

import torch
from torch import nn

from benchmarks.wild.hashable import hashable_dataclasses
from tests.own.stand_in import stand_in

HERE = Path(os.environ.get("STABKIT_WILD", "wild"))
WIDTH, FFN, HEADS, TOKENS = 64, 256, 4, 100

warnings.simplefilter("ignore")
sys.path.append(str(HERE / "site"))


def _first(folder: str) -> None:
    """Packages are looked for in that folder before any other."""
    sys.path.insert(0, str(HERE / folder))


def _tokens(n: int = 8) -> torch.Tensor:
    return torch.randint(2, TOKENS, (4, n), generator=torch.Generator().manual_seed(0))


def _numbers(n: int = 6, width: int = WIDTH) -> torch.Tensor:
    return torch.randn(4, n, width, generator=torch.Generator().manual_seed(0))


def _embedding() -> nn.Embedding:
    table = nn.Embedding(TOKENS, WIDTH)
    nn.init.normal_(table.weight, std=WIDTH**-0.5)
    return table


class Chain(nn.Module):
    """An embedding, layers one after another and what comes last: where a package has layers but no stack."""

    def __init__(self, layers: list[nn.Module], last: nn.Module | None = None, tokens: bool = True) -> None:
        super().__init__()
        self.embedding = _embedding() if tokens else nn.Identity()
        self.layers, self.last = nn.ModuleList(layers), last or nn.Identity()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.embedding(x)
        for layer in self.layers:
            x = layer(x)
            x = x[0] if isinstance(x, tuple) else x
        return self.last(x)


# — torchscale 0.3.0 —


def _torchscale_encoder(depth: int, **options):
    stand_in("torchvision")
    from torchscale.architecture.config import EncoderConfig
    from torchscale.architecture.encoder import Encoder

    config = EncoderConfig(
        encoder_embed_dim=WIDTH,
        encoder_attention_heads=HEADS,
        encoder_ffn_embed_dim=FFN,
        encoder_layers=depth,
        vocab_size=TOKENS,
        no_output_layer=False,
        **options,
    )
    return Encoder(config, embed_tokens=_embedding()), {"src_tokens": _tokens()}


def _torchscale_decoder(depth: int, **options):
    stand_in("torchvision")
    from torchscale.architecture.config import DecoderConfig
    from torchscale.architecture.decoder import Decoder

    config = DecoderConfig(
        decoder_embed_dim=WIDTH,
        decoder_attention_heads=HEADS,
        decoder_ffn_embed_dim=FFN,
        decoder_layers=depth,
        vocab_size=TOKENS,
        **options,
    )
    return Decoder(config, embed_tokens=_embedding()), {"prev_output_tokens": _tokens()}


def _torchscale_both(depth: int, **options):
    stand_in("torchvision")
    from torchscale.architecture.config import EncoderDecoderConfig
    from torchscale.architecture.encoder_decoder import EncoderDecoder

    config = EncoderDecoderConfig(
        encoder_embed_dim=WIDTH,
        encoder_attention_heads=HEADS,
        encoder_ffn_embed_dim=FFN,
        encoder_layers=depth,
        decoder_embed_dim=WIDTH,
        decoder_attention_heads=HEADS,
        decoder_ffn_embed_dim=FFN,
        decoder_layers=depth,
        vocab_size=TOKENS,
        **options,
    )
    model = EncoderDecoder(config, encoder_embed_tokens=_embedding(), decoder_embed_tokens=_embedding())
    return model, {"src_tokens": _tokens(), "prev_output_tokens": _tokens()}


def torchscale_deepnorm_encoder(depth=18):
    return _torchscale_encoder(depth, deepnorm=True)


def torchscale_deepnorm_decoder(depth=18):
    """As documented: `DecoderConfig(deepnorm=True)`."""
    return _torchscale_decoder(depth, deepnorm=True)


def torchscale_deepnorm_decoder_post(depth=18):
    """As torchscale's own tests: with decoder_normalize_before=False."""
    return _torchscale_decoder(depth, deepnorm=True, decoder_normalize_before=False)


def torchscale_deepnorm(depth=18):
    return _torchscale_both(depth, deepnorm=True)


def torchscale_deepnorm_post(depth=18):
    return _torchscale_both(depth, deepnorm=True, decoder_normalize_before=False)


def torchscale_subln_encoder(depth=18):
    return _torchscale_encoder(depth, subln=True)


def torchscale_subln_decoder(depth=18):
    return _torchscale_decoder(depth, subln=True)


def torchscale_subln(depth=18):
    return _torchscale_both(depth, subln=True)


# — torchscale-gml 0.2.3, a copy of a later torchscale —


def torchscale_gml_deepnorm_decoder(depth=18):
    _first("site_gml")
    return _torchscale_decoder(depth, deepnorm=True)


def torchscale_gml_deepnorm(depth=18):
    _first("site_gml")
    return _torchscale_both(depth, deepnorm=True)


# — admin-torch 0.1.0: OmegaResidual, put into the layer that its docstring shows —


class AdminTorchLayer(nn.Module):
    """The example layer of `admin_torch.as_module`'s docstring, in torch.nn's own modules."""

    def __init__(self, residuals: int) -> None:
        import admin_torch

        super().__init__()
        self.attn = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)
        self.residual_attn = admin_torch.as_module(residuals)
        self.ln_attn = nn.LayerNorm(WIDTH)
        self.ffn = nn.Sequential(nn.Linear(WIDTH, FFN), nn.ReLU(), nn.Linear(FFN, WIDTH))
        self.residual_ffn = admin_torch.as_module(residuals)
        self.ln_ffn = nn.LayerNorm(WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.ln_attn(self.residual_attn(x, self.attn(x, x, x)[0]))
        return self.ln_ffn(self.residual_ffn(x, self.ffn(x)))


def admin_torch_sublayers(depth=18):
    """As its docstring says: the number of residual layers, 2·depth."""
    return Chain([AdminTorchLayer(2 * depth) for _ in range(depth)])


def admin_torch_layers(depth=18):
    """As several users do: the number of layers."""
    return Chain([AdminTorchLayer(depth) for _ in range(depth)])


# — rezero 0.1.0 —


def rezero_encoder(depth=12):
    from rezero.transformer import RZTXEncoderLayer

    return Chain([RZTXEncoderLayer(WIDTH, HEADS, FFN) for _ in range(depth)])


def rezero_encoder_readme(depth=12):
    """As its README: torch.nn.TransformerEncoder over RZTXEncoderLayer, which copies one layer."""
    from rezero.transformer import RZTXEncoderLayer

    made = nn.TransformerEncoder(RZTXEncoderLayer(WIDTH, HEADS, FFN), num_layers=depth)
    return made, (_numbers(),)


class RezeroBoth(nn.Module):
    """RZTXEncoderLayer and RZTXDecoderLayer, `depth` of each."""

    def __init__(self, depth: int) -> None:
        from rezero.transformer import RZTXDecoderLayer, RZTXEncoderLayer

        super().__init__()
        self.encoder = nn.ModuleList([RZTXEncoderLayer(WIDTH, HEADS, FFN) for _ in range(depth)])
        self.decoder = nn.ModuleList([RZTXDecoderLayer(WIDTH, HEADS, FFN) for _ in range(depth)])

    def forward(self, source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        for layer in self.encoder:
            source = layer(source)
        for layer in self.decoder:
            target = layer(target, source)
        return target


def rezero_both(depth=6):
    return RezeroBoth(depth), (_numbers(), _numbers())


# — labml-nn 0.5.1 —


def labml_deepnorm(depth=18):
    from labml import tracker

    tracker.debug = lambda *args: None  # labml-nn 0.5.1 calls it; labml 0.5.3 has none
    from labml_nn.normalization.deep_norm import DeepNormTransformerLayer
    from labml_nn.transformers import MultiHeadAttention
    from labml_nn.transformers.feed_forward import FeedForward

    alpha, beta = (2 * depth) ** 0.25, (8 * depth) ** -0.25
    return Chain(
        [
            DeepNormTransformerLayer(
                d_model=WIDTH,
                self_attn=MultiHeadAttention(HEADS, WIDTH, 0.0),
                feed_forward=FeedForward(WIDTH, FFN, 0.0),
                deep_norm_alpha=alpha,
                deep_norm_beta=beta,
            )
            for _ in range(depth)
        ]
    )


# — x-transformers: 2.31.10 as installed, and 1.16.0, which had `deepnorm` —


def _x_transformers(depth: int, kind: str = "Decoder", **options):
    import x_transformers

    layers = getattr(x_transformers, kind)(dim=WIDTH, depth=depth, heads=HEADS, attn_dim_head=WIDTH // HEADS, **options)
    return x_transformers.TransformerWrapper(num_tokens=TOKENS, max_seq_len=32, attn_layers=layers)


def x_transformers_normformer(depth=12):
    """NormFormer by its options: head scales, norm after attention's output, norm after the activation."""
    return _x_transformers(depth, attn_head_scale=True, ff_post_act_ln=True, sandwich_norm=True)


def x_transformers_normformer_readme(depth=12):
    """What its README names NormFormer: the norm after the activation, and the head scales."""
    return _x_transformers(depth, attn_head_scale=True, ff_post_act_ln=True)


def x_transformers_post_norm(depth=12):
    return _x_transformers(depth, "Encoder", pre_norm=False)


def x_transformers_pre_norm(depth=12):
    return _x_transformers(depth, "Encoder")


def x_transformers_deepnorm_by_hand(depth=18):
    """DeepNorm's α by 2.31's own options: post-norm and scale_residual_constant."""
    return _x_transformers(depth, "Encoder", pre_norm=False, scale_residual_constant=(2 * depth) ** 0.25)


def x_transformers_rezero_like(depth=12):
    """The nearest to ReZero: LayerScale at 0 over pre-norm."""
    return _x_transformers(depth, "Encoder", use_layerscale=True, layerscale_init_value=0.0)


def x_transformers_zero_branch(depth=12):
    return _x_transformers(depth, "Encoder", zero_init_branch_output=True)


def x_transformers_old_deepnorm_encoder(depth=18):
    _first("site_xt_old")
    return _x_transformers(depth, "Encoder", deepnorm=True)


def x_transformers_old_deepnorm_decoder(depth=18):
    _first("site_xt_old")
    return _x_transformers(depth, "Decoder", deepnorm=True)


def x_transformers_old_deepnorm(depth=18):
    """`XTransformer(deepnorm=True)`, encoder and decoder."""
    _first("site_xt_old")
    from x_transformers import XTransformer

    sides = {
        f"{side}_{name}": value
        for side in ("enc", "dec")
        for name, value in (
            ("num_tokens", TOKENS),
            ("max_seq_len", 32),
            ("depth", depth),
            ("heads", HEADS),
            ("attn_dim_head", WIDTH // HEADS),
        )
    }
    return XTransformer(dim=WIDTH, deepnorm=True, **sides), (_tokens(), _tokens())


# — zetascale 2.8.8, a copy of an older x-transformers —


def _zeta() -> None:
    """Its modules without its packages' __init__ files, which import everything that it has."""
    stand_in("torchvision", "bitsandbytes", "datasets", "vector_quantize_pytorch", "lion_pytorch")
    for name in (
        "zeta",
        "zeta.nn",
        "zeta.nn.modules",
        "zeta.nn.attention",
        "zeta.nn.biases",
        "zeta.nn.embeddings",
        "zeta.utils",
        "zeta.structs",
    ):
        package = ModuleType(name)
        package.__path__ = [str(HERE / "site" / name.replace(".", "/"))]
        sys.modules.setdefault(name, package)


def zeta_deepnorm_encoder(depth=18):
    _zeta()
    from zeta.structs.transformer import Encoder, Transformer

    layers = Encoder(dim=WIDTH, depth=depth, heads=HEADS, attn_dim_head=WIDTH // HEADS, deepnorm=True)
    return Transformer(num_tokens=TOKENS, max_seq_len=32, attn_layers=layers), (_tokens(),)


def zeta_subln(depth=12):
    """SubLN, a layer of its own: no attention, two matrices without an activation between them."""
    _zeta()
    from zeta.nn.modules.subln import SubLN

    return Chain([SubLN(WIDTH) for _ in range(depth)])


# — retro-pytorch 0.3.9 —


def retro_deepnorm(depth=6):
    """`RETRO(use_deepnet=True)`: cross-attention in every layer of both sides, retrieved chunks given."""
    stand_in("faiss", "autofaiss", "embedding_reader", "jsonlines")
    from retro_pytorch.retro_pytorch import RETRO

    layers = tuple(range(1, depth + 1))
    model = RETRO(
        num_tokens=TOKENS,
        chunk_size=4,
        max_seq_len=16,
        enc_dim=WIDTH,
        enc_depth=depth,
        dec_dim=WIDTH,
        dec_depth=depth,
        heads=2,
        dim_head=32,
        enc_cross_attn_layers=layers,
        dec_cross_attn_layers=layers,
        use_deepnet=True,
        pad_id=0,
    )
    seq, retrieved = _tokens(8), torch.randint(2, TOKENS, (4, 2, 2, 8), generator=torch.Generator().manual_seed(1))
    return model, {"seq": seq, "retrieved": retrieved}


def retro_deepnorm_encoder(depth=6):
    """Its encoder alone, which cross-attends into the sequence (given): α, β as of both sides."""
    model, _ = retro_deepnorm(depth)
    return model.encoder, {"x": _numbers(8), "chunked_seq": _numbers(4)}


def retro_deepnorm_decoder(depth=6):
    """Its decoder without retrieved chunks: cross-attention is skipped."""
    model, _ = retro_deepnorm(depth)
    return model.decoder, {"x": _numbers(8)}


# — omar-rq 0.2.1 —


def omar_rq_deepnorm(depth=12):
    stand_in("torchaudio", "nnAudio", "encodec")
    from omar_rq.nets.transformer import Transformer

    return Transformer(
        patch_size=(1, 1),
        in_chans=1,
        embed_dim=WIDTH,
        head_dims=10,
        depth=depth,
        num_heads=HEADS,
        num_patches=6,
        alpha_deepnorm=(2 * depth) ** 0.25,
        beta_deepnorm=(8 * depth) ** -0.25,
        do_deepnorm=True,
    ), (_numbers(),)


# — ont-bonito —


def bonito_deepnorm(depth=18):
    """bonito.nn.TransformerEncoderLayer with the α and β of the published configurations (18 layers: 2.449, 0.289)."""
    stand_in("flash_attn", "koi", "fast_ctc_decode", "mappy", "parasail", "pysam", "edlib", "pod5", "remora", "seqdist")
    from bonito.nn import TransformerEncoderLayer

    alpha, beta = (2 * depth) ** 0.25, (8 * depth) ** -0.25
    layers = [TransformerEncoderLayer(WIDTH, HEADS, FFN, alpha, beta, attn_window=(127, 128)) for _ in range(depth)]
    return Chain(layers, tokens=False), (_numbers(),)


def bonito_deepnorm_sdpa(depth=18):
    """The same with scaled_dot_product_attention in place of flex_attention: audit cannot follow that."""
    model, inputs = bonito_deepnorm(depth)

    def attend(qkv: torch.Tensor) -> torch.Tensor:
        q, k, v = qkv.permute(0, 2, 3, 1, 4).unbind(dim=1)
        return nn.functional.scaled_dot_product_attention(q, k, v).permute(0, 2, 1, 3)

    for layer in model.layers:
        layer.self_attn.attn_func = attend
    return model, inputs


# — SwissArmyTransformer 0.4.12: GLM-130B's sum; attention, feed-forward and their draws are ours —


class _GlmAttention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.MultiheadAttention(WIDTH, HEADS)

    def forward(self, x: torch.Tensor, mask: object, **_: object) -> torch.Tensor:
        return self.inner(x, x, x)[0]


class _GlmMlp(nn.Sequential):
    def forward(self, x: torch.Tensor, **_: object) -> torch.Tensor:
        return super().forward(x)


class GlmStack(nn.Module):
    """Layers through `DeepNormWithGLUMixin.layer_forward`, drawn by the recipe, with GLM-130B's final norm."""

    def __init__(self, depth: int, mixin: nn.Module) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            nn.ModuleDict(
                {
                    "input_layernorm": nn.LayerNorm(WIDTH),
                    "attention": _GlmAttention(),
                    "post_attention_layernorm": nn.LayerNorm(WIDTH),
                    "mlp": _GlmMlp(nn.Linear(WIDTH, FFN), nn.GELU(), nn.Linear(FFN, WIDTH)),
                }
            )
            for _ in range(depth)
        )
        self.embedding, self.norm, self.mixin = _embedding(), nn.LayerNorm(WIDTH), mixin
        beta = (8 * depth) ** -0.25
        for layer in self.layers:
            maps = layer["attention"].inner
            for rows, gain in zip(maps.in_proj_weight.data.chunk(3), (1.0, 1.0, beta), strict=True):
                nn.init.xavier_normal_(rows, gain)
            for own in (maps.out_proj, layer["mlp"][0], layer["mlp"][2]):
                nn.init.xavier_normal_(own.weight, beta)
                nn.init.zeros_(own.bias)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.embedding(tokens).transpose(0, 1)
        layers = [SimpleNamespace(**layer) for layer in self.layers]
        self.mixin.__dict__["transformer"] = SimpleNamespace(layers=layers)
        for i in range(len(layers)):
            x = self.mixin.layer_forward(x, None, layer_id=i)
        return self.norm(x)


def sat_glm130b(depth=18):
    stand_in(
        "torchvision", "deepspeed", "webdataset", "boto3", "datasets", "cpm_kernels", "tensorboardX", "triton", "wandb"
    )
    from sat.model.official.glm130B_model import DeepNormWithGLUMixin

    return GlmStack(depth, DeepNormWithGLUMixin(depth, WIDTH))


# — xformers 0.0.28 (its `factory` and `components` are gone from later releases) —


def _xformers(depth: int, init: str, decoder: bool = False):
    _first("site_xformers")
    from xformers.factory import xFormer, xFormerConfig

    def block(kind: str) -> dict:
        attention = {
            "num_heads": HEADS,
            "dim_model": WIDTH,
            "residual_dropout": 0.0,
            "attention": {"name": "scaled_dot_product", "dropout": 0.0, "causal": False, "seq_len": 8},
        }
        places = {"name": "vocab", "seq_len": 8, "vocab_size": TOKENS, "dim_model": WIDTH}
        feed = {"name": "MLP", "dropout": 0.0, "activation": "relu", "hidden_layer_multiplier": 4}
        made = {
            "block_type": kind,
            "num_layers": depth,
            "dim_model": WIDTH,
            "residual_norm_style": "deepnorm",
            "use_triton": False,
            "feedforward_config": feed,
            "position_encoding_config": places,
        }
        names = ("multi_head_config",) if kind == "encoder" else ("multi_head_config_masked", "multi_head_config_cross")
        return made | dict.fromkeys(names, attention)

    blocks = [block("encoder")] + [block("decoder")] * decoder
    model = xFormer.from_config(xFormerConfig(blocks, weight_init=init))
    return model, (_tokens(), _tokens()) if decoder else (_tokens(),)


def xformers_deepnorm_encoder(depth=12):
    """Its default weight_init, "vit"."""
    return _xformers(depth, "vit")


def xformers_deepnorm_encoder_timm(depth=12):
    return _xformers(depth, "timm")


def xformers_deepnorm_encoder_small(depth=12):
    return _xformers(depth, "small")


def xformers_deepnorm_encoder_moco(depth=12):
    return _xformers(depth, "moco")


def xformers_deepnorm(depth=6):
    return _xformers(depth, "vit", decoder=True)


# — fairseq 0.12.2 —


def _fairseq_decoder(depth: int, **options):
    _first("site_fairseq")
    stand_in("bitarray", "cffi")
    with hashable_dataclasses():
        from fairseq.data import Dictionary
        from fairseq.models.transformer_lm import TransformerLanguageModel, TransformerLanguageModelConfig

    words = Dictionary()
    for i in range(TOKENS - words.nspecial):
        words.add_symbol(str(i))
    config = TransformerLanguageModelConfig(
        decoder_layers=depth,
        decoder_embed_dim=WIDTH,
        decoder_input_dim=WIDTH,
        decoder_output_dim=WIDTH,
        decoder_ffn_embed_dim=FFN,
        decoder_attention_heads=HEADS,
        decoder_normalize_before=True,
        tokens_per_sample=32,
        **options,
    )
    config.max_target_positions = 32
    model = TransformerLanguageModel.build_model(
        config, SimpleNamespace(source_dictionary=words, target_dictionary=words)
    )
    return model, {"src_tokens": _tokens()}


def fairseq_normformer(depth=12):
    """The paper's command: --scale-attn --scale-fc --scale-heads."""
    return _fairseq_decoder(depth, scale_attn=True, scale_fc=True, scale_heads=True)


def fairseq_normformer_resid(depth=12):
    """And --scale-resids."""
    return _fairseq_decoder(depth, scale_attn=True, scale_fc=True, scale_heads=True, scale_resids=True)


def fairseq_pre_ln(depth=12):
    return _fairseq_decoder(depth)


# — fairseq2 0.2.1 (PRE_WITH_NORMFORMER is gone from 0.8) —


def _fairseq2(depth: int, decoder: bool):
    _first("site_fs2")
    stand_in("fairseq2n", "sacrebleu", "torcheval")
    from fairseq2.nn import transformer as t

    order = t.TransformerNormOrder.PRE_WITH_NORMFORMER
    feed = {"norm_order": order}

    def attention():
        return t.StandardMultiheadAttention(WIDTH, HEADS, scale_heads=True)

    def layer():
        ffn = t.StandardFeedForwardNetwork(WIDTH, FFN, bias=True, **feed)
        if decoder:
            return t.StandardTransformerDecoderLayer(attention(), None, ffn, dropout_p=0.0, **feed)
        return t.StandardTransformerEncoderLayer(attention(), ffn, dropout_p=0.0, **feed)

    stack = t.StandardTransformerDecoder if decoder else t.StandardTransformerEncoder
    return stack([layer() for _ in range(depth)], **feed), (_numbers(), None)


def fairseq2_normformer_encoder(depth=12):
    return _fairseq2(depth, decoder=False)


def fairseq2_normformer_decoder(depth=12):
    return _fairseq2(depth, decoder=True)


# — mammoth-nlp 0.2.1 —


def _mammoth(depth: int, normformer: bool):
    from mammoth.modules.transformer_encoder import TransformerEncoder

    stack = TransformerEncoder(
        depth, WIDTH, HEADS, FFN, 0.0, 0.0, None, 0, layer_norm_module=nn.LayerNorm(WIDTH), is_normformer=normformer
    )
    return stack, {"src": _numbers(), "skip_embedding": True, "mask": torch.zeros(4, 1, 6, dtype=torch.bool)}


def mammoth_normformer(depth=12):
    """Its own stack, whose forward drops what its layers return."""
    return _mammoth(depth, True)


class MammothLayers(nn.Module):
    """Its layers in its stack's order, with its final norm."""

    def __init__(self, depth: int, normformer: bool) -> None:
        super().__init__()
        stack, _ = _mammoth(depth, normformer)
        self.layers, self.norm = stack.transformer, stack.layer_norm

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x, mask)
        return self.norm(x)


def mammoth_normformer_layers(depth=12):
    return MammothLayers(depth, True), (_numbers(), torch.zeros(4, 1, 6, dtype=torch.bool))


def mammoth_pre_ln_layers(depth=12):
    """Without the option: said to be plain Pre-LN."""
    return MammothLayers(depth, False), (_numbers(), torch.zeros(4, 1, 6, dtype=torch.bool))


# — dalle2-pytorch —


def dalle2_normformer(depth=6):
    stand_in(
        "torchvision",
        "clip",
        "open_clip",
        "coca_pytorch",
        "kornia",
        "resize_right",
        "vector_quantize_pytorch",
        "x_clip",
        "ema_pytorch",
        "webdataset",
        "pytorch_warmup",
    )
    from dalle2_pytorch.dalle2_pytorch import CausalTransformer

    return CausalTransformer(dim=WIDTH, depth=depth, dim_head=16, heads=HEADS, normformer=True), (_numbers(),)


# — lucidrains' use_rezero —


def performer_rezero(depth=6):
    from performer_pytorch import PerformerLM

    return PerformerLM(
        num_tokens=TOKENS,
        max_seq_len=32,
        dim=WIDTH,
        depth=depth,
        heads=HEADS,
        dim_head=16,
        use_rezero=True,
        causal=False,
    ), (_tokens(),)


def performer_rezero_local(depth=6):
    """All heads local: softmax over windows."""
    from performer_pytorch import PerformerLM

    return PerformerLM(
        num_tokens=TOKENS,
        max_seq_len=32,
        dim=WIDTH,
        depth=depth,
        heads=HEADS,
        dim_head=16,
        local_attn_heads=HEADS,
        local_window_size=8,
        use_rezero=True,
        causal=False,
    ), (_tokens(32),)


def reformer_rezero(depth=6):
    """With full attention, so that there is a softmax over all tokens."""
    from reformer_pytorch import ReformerLM

    return ReformerLM(
        num_tokens=TOKENS,
        dim=WIDTH,
        depth=depth,
        max_seq_len=32,
        heads=HEADS,
        bucket_size=4,
        use_full_attn=True,
        use_rezero=True,
    ), (_tokens(32),)


def routing_rezero(depth=6):
    from routing_transformer import RoutingTransformerLM

    return RoutingTransformerLM(
        num_tokens=TOKENS,
        dim=WIDTH,
        depth=depth,
        max_seq_len=32,
        heads=HEADS,
        window_size=8,
        n_local_attn_heads=HEADS,
        use_rezero=True,
    ), (_tokens(32),)


def sinkhorn_rezero(depth=6):
    from sinkhorn_transformer import SinkhornTransformerLM

    return SinkhornTransformerLM(
        num_tokens=TOKENS,
        dim=WIDTH,
        depth=depth,
        max_seq_len=32,
        heads=HEADS,
        bucket_size=8,
        n_local_attn_heads=HEADS,
        use_rezero=True,
    ), (_tokens(32),)


# — transformers 5.23.0 —


def kosmos2_subln(depth=12):
    from transformers import Kosmos2TextConfig
    from transformers.models.kosmos2.modeling_kosmos2 import Kosmos2TextForCausalLM

    config = Kosmos2TextConfig(
        vocab_size=TOKENS, embed_dim=WIDTH, layers=depth, ffn_dim=FFN, attention_heads=HEADS, max_position_embeddings=32
    )
    return Kosmos2TextForCausalLM(config), {"input_ids": _tokens(), "use_cache": False}


def kosmos25_subln(depth=12):
    from transformers.models.kosmos2_5.configuration_kosmos2_5 import Kosmos2_5TextConfig
    from transformers.models.kosmos2_5.modeling_kosmos2_5 import Kosmos2_5TextForCausalLM

    config = Kosmos2_5TextConfig(
        vocab_size=TOKENS, embed_dim=WIDTH, layers=depth, ffn_dim=FFN, attention_heads=HEADS, max_position_embeddings=32
    )
    return Kosmos2_5TextForCausalLM(config), {"input_ids": _tokens(), "use_cache": False}


def bitnet_subln(depth=12):
    from transformers import BitNetConfig, BitNetForCausalLM

    config = BitNetConfig(
        vocab_size=TOKENS,
        hidden_size=WIDTH,
        intermediate_size=FFN,
        num_hidden_layers=depth,
        num_attention_heads=HEADS,
        num_key_value_heads=HEADS,
        max_position_embeddings=32,
        bos_token_id=0,
        eos_token_id=1,
    )
    return BitNetForCausalLM(config), {"input_ids": _tokens(), "use_cache": False}


def minimax_deepnorm(depth=12):
    """All layers with softmax attention, one expert, the α and β of its options at their defaults."""
    from transformers import MiniMaxConfig, MiniMaxForCausalLM

    config = MiniMaxConfig(
        vocab_size=TOKENS,
        hidden_size=WIDTH,
        intermediate_size=FFN,
        num_hidden_layers=depth,
        num_attention_heads=HEADS,
        num_key_value_heads=HEADS,
        num_local_experts=1,
        num_experts_per_tok=1,
        layer_types=["full_attention"] * depth,
        max_position_embeddings=32,
        bos_token_id=0,
        eos_token_id=1,
    )
    return MiniMaxForCausalLM(config), {"input_ids": _tokens(), "use_cache": False}


# — timm 1.0.31 —


def _eva(depth: int, **options):
    stand_in("torchvision")
    from timm.models.eva import Eva

    return Eva(
        img_size=32,
        patch_size=8,
        embed_dim=WIDTH,
        depth=depth,
        num_heads=HEADS,
        mlp_ratio=4.0,
        num_classes=10,
        use_rot_pos_emb=False,
        **options,
    ), (torch.randn(2, 3, 32, 32),)


def timm_eva_subln(depth=12):
    """Sub-LN in both: scale_attn_inner and scale_mlp, as EVA-02 base and large, here without SwiGLU."""
    return _eva(depth, scale_attn_inner=True, scale_mlp=True, qkv_fused=False)


def timm_eva02_subln(depth=12):
    """As eva02_base: SwiGLU with an inner norm, inner norm in attention."""
    return _eva(depth, scale_attn_inner=True, scale_mlp=True, swiglu_mlp=True, qkv_fused=False)
