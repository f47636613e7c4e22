"""More healthy models, small and with random weights, as factories of the depth: of libraries, and written afresh after
papers. Each gives (model, inputs); what is true of them stands in zoo_facts.py."""

from __future__ import annotations

import math
from importlib.util import find_spec

import torch
from torch import nn
from torch.nn import functional

from tests.own import library_models
from tests.own.library_models import SIZES

WIDTH, HEADS, WORDS, STREAMS = 64, 2, 100, 4
ENDS = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}


def ids(*shape):
    return torch.randint(3, WORDS, shape, generator=torch.Generator().manual_seed(11))


def noise(*shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(11))


def words():
    return {"input_ids": ids(4, 16)}


def of_transformers(name, kind, inputs=words, layers=("num_hidden_layers",), **sizes):
    """The factory of a model by the names of its configuration and its class."""

    def build(depth):
        import transformers

        config = getattr(transformers, name)(**dict.fromkeys(layers, depth), **sizes)
        return getattr(transformers, kind)(config), inputs()

    return build


GROUPED = {"num_key_value_heads": 1, "head_dim": 32, **SIZES}
SEQ2SEQ = {
    "layers": ("encoder_layers", "decoder_layers"), "d_model": 64, "encoder_attention_heads": 2,
    "decoder_attention_heads": 2, "encoder_ffn_dim": 128, "decoder_ffn_dim": 128, "vocab_size": 100,
    "decoder_start_token_id": 2, **ENDS,
}  # fmt: skip
patch_tst = of_transformers(
    "PatchTSTConfig", "PatchTSTForPrediction", lambda: {"past_values": noise(4, 64, 3)}, context_length=64,
    d_model=64, num_attention_heads=2, ffn_dim=128, num_input_channels=3, prediction_length=8, patch_length=8,
    patch_stride=8,
)  # fmt: skip
whisper = of_transformers(
    "WhisperConfig", "WhisperForConditionalGeneration",
    lambda: {"input_features": noise(4, 16, 32), "decoder_input_ids": ids(4, 12)}, num_mel_bins=16,
    max_source_positions=16, max_target_positions=32, **SEQ2SEQ,
)  # fmt: skip
m2m100 = of_transformers(
    "M2M100Config", "M2M100ForConditionalGeneration", lambda: {**words(), "decoder_input_ids": ids(4, 12)},
    max_position_embeddings=64, **SEQ2SEQ,
)  # fmt: skip
deberta_v2 = of_transformers(
    "DebertaV2Config", "DebertaV2ForMaskedLM", max_position_embeddings=32, relative_attention=True,
    pos_att_type=["c2p", "p2c"], position_biased_input=False, **SIZES,
)  # fmt: skip
gemma3 = of_transformers("Gemma3TextConfig", "Gemma3ForCausalLM", **GROUPED)
deepseek_v3 = of_transformers(
    "DeepseekV3Config", "DeepseekV3ForCausalLM", q_lora_rank=32, kv_lora_rank=16, qk_nope_head_dim=16,
    qk_rope_head_dim=16, v_head_dim=32, n_routed_experts=4, num_experts_per_tok=2, n_group=1, topk_group=1,
    moe_intermediate_size=64, first_k_dense_replace=1, num_key_value_heads=2, **SIZES,
)  # fmt: skip
qwen3_moe = of_transformers(
    "Qwen3MoeConfig", "Qwen3MoeForCausalLM", moe_intermediate_size=64, num_experts=4, num_experts_per_tok=2, **GROUPED
)
siglip_vision = of_transformers(
    "SiglipVisionConfig", "SiglipVisionModel", lambda: {"pixel_values": noise(4, 3, 32, 32)}, vision_use_head=False,
    hidden_size=64, num_attention_heads=2, intermediate_size=128, image_size=32, patch_size=8,
)  # fmt: skip
clip_text = of_transformers("CLIPTextConfig", "CLIPTextModel", max_position_embeddings=32, **SIZES, **ENDS)
gptj = of_transformers(
    "GPTJConfig", "GPTJForCausalLM", layers=("n_layer",), n_embd=64, n_head=2, vocab_size=100, n_positions=32,
    rotary_dim=16, bos_token_id=1, eos_token_id=2,
)  # fmt: skip
cohere = of_transformers("CohereConfig", "CohereForCausalLM", num_key_value_heads=1, **SIZES, **ENDS)


def perceiver(depth):
    """Its encoder: one cross-attention of latents to words, then `depth` layers of the latents alone."""
    from transformers import PerceiverConfig, PerceiverModel
    from transformers.models.perceiver.modeling_perceiver import PerceiverTextPreprocessor

    config = PerceiverConfig(
        num_blocks=1, num_self_attends_per_block=depth, num_latents=8, d_latents=64, d_model=64, vocab_size=100,
        max_position_embeddings=32, num_self_attention_heads=2, num_cross_attention_heads=2,
    )  # fmt: skip
    return PerceiverModel(config, input_preprocessor=PerceiverTextPreprocessor(config)), {"inputs": ids(4, 16)}


def split_heads(x):
    return x.unflatten(-1, (HEADS, -1)).transpose(-2, -3)


def join_heads(x):
    return x.transpose(-2, -3).flatten(-2)


def xavier(model):
    for module in model.modules():
        if isinstance(module, nn.Linear):
            nn.init.xavier_uniform_(module.weight)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
    return model


def normal(model, std=0.02):
    for module in model.modules():
        if isinstance(module, nn.Linear | nn.Embedding):
            nn.init.normal_(module.weight, std=std)
    return model


def waves(t):
    """Sines and cosines of a number a sample (or a token)."""
    turns = t[..., None].float() * 10000 ** (-torch.arange(WIDTH // 2) / (WIDTH // 2))
    return torch.cat([turns.cos(), turns.sin()], dim=-1)


class Fused(nn.Module):
    """Attention with one matrix for queries, keys and values; `turn` gives positions to queries and keys."""

    def __init__(self, turn=None, causal=False, bias=True):
        super().__init__()
        self.qkv, self.proj, self.turn = nn.Linear(WIDTH, 3 * WIDTH, bias), nn.Linear(WIDTH, WIDTH), turn
        self.causal = causal

    def forward(self, x):
        q, k, v = map(split_heads, self.qkv(x).chunk(3, dim=-1))
        if self.turn is not None:
            q, k = self.turn(q), self.turn(k)
        return self.proj(join_heads(functional.scaled_dot_product_attention(q, k, v, is_causal=self.causal)))


class Apart(nn.Module):
    """Attention with a matrix for each of queries, keys and values, to a context where there is one."""

    def __init__(self, causal=False, slopes=False):
        super().__init__()
        self.q, self.k, self.v, self.out = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.causal, self.slopes = causal, slopes

    def forward(self, x, context=None):
        context = x if context is None else context
        q, k, v = split_heads(self.q(x)), split_heads(self.k(context)), split_heads(self.v(context))
        scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
        at = torch.arange(x.shape[-2])
        if self.slopes:  # ALiBi: 2^(−8h/H) times the distance
            slopes = torch.tensor([2 ** (-8 * (h + 1) / HEADS) for h in range(HEADS)])
            scores = scores + slopes[:, None, None] * (at[None, :] - at[:, None])
        if self.causal:
            scores = scores.masked_fill(at[None, :] > at[:, None], float("-inf"))
        return self.out(join_heads(scores.softmax(-1) @ v))


def mlp(act=None, inner=4 * WIDTH):
    return nn.Sequential(nn.Linear(WIDTH, inner), act or nn.GELU(), nn.Linear(inner, WIDTH))


class PreLN(nn.Module):
    def __init__(self, attention, feed=None):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attn, self.mlp = attention, feed or mlp()

    def forward(self, x):
        x = x + self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Words(nn.Module):
    """A language model of given blocks, with learned positions where it is to have them."""

    def __init__(self, blocks, places=False):
        super().__init__()
        self.places = nn.Embedding(64, WIDTH) if places else None
        self.embed, self.blocks = nn.Embedding(WORDS, WIDTH), nn.ModuleList(blocks)
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WORDS, bias=False)

    def forward(self, tokens):
        x = self.embed(tokens)
        x = x if self.places is None else x + self.places.weight[: tokens.shape[1]]
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def of_blocks(block, init=lambda model: model):
    """The factory of a language model."""
    return lambda depth: (init(Words(block() for _ in range(depth))), (ids(4, 16),))


def angles(x):
    width = x.shape[-1]
    return torch.arange(x.shape[-2])[:, None] * 10000 ** (-torch.arange(0, width, 2) / width)


def halves(x):
    cos, sin = (f(angles(x)).repeat(1, 2) for f in (torch.cos, torch.sin))
    first, second = x.chunk(2, dim=-1)
    return x * cos + torch.cat([-second, first], dim=-1) * sin


def interleaved(x):
    cos, sin = (f(angles(x)).repeat_interleave(2, dim=-1) for f in (torch.cos, torch.sin))
    return x * cos + torch.stack([-x[..., 1::2], x[..., ::2]], dim=-1).flatten(-2) * sin


def as_complex(x):
    turned = torch.view_as_complex(x.unflatten(-1, (-1, 2)).contiguous()) * torch.polar(torch.ones(()), angles(x))
    return torch.view_as_real(turned).flatten(-2)


rotary_halves = of_blocks(lambda: PreLN(Fused(halves, causal=True)))
rotary_interleaved = of_blocks(lambda: PreLN(Fused(interleaved, causal=True)), normal)
rotary_complex = of_blocks(lambda: PreLN(Fused(as_complex, causal=True, bias=False)))
alibi = of_blocks(lambda: PreLN(Apart(causal=True, slopes=True)))


class LoRA(nn.Module):
    """W·x + (α/r)·B·A·x with W frozen and B zero."""

    def __init__(self, base, rank=4, alpha=8):
        super().__init__()
        self.base, self.scale = base, alpha / rank
        self.a, self.b = nn.Linear(WIDTH, rank, bias=False), nn.Linear(rank, WIDTH, bias=False)
        nn.init.zeros_(self.b.weight)

    def forward(self, x):
        return self.base(x) + self.scale * self.b(self.a(x))


def lora(depth):
    model = normal(Words((PreLN(Apart(causal=True)) for _ in range(depth)), places=True)).requires_grad_(False)
    for block in model.blocks:
        for part in (block.attn.out, block.mlp[2]):
            nn.init.normal_(part.weight, std=0.02 / math.sqrt(2 * depth))
        block.attn.q, block.attn.v = LoRA(block.attn.q), LoRA(block.attn.v)
    return model, (ids(4, 16),)


class Experts(nn.Module):
    """Four feed-forwards, of which each token goes through two, weighed by a softmax over their scores."""

    def __init__(self):
        super().__init__()
        self.gate, self.experts = nn.Linear(WIDTH, 4, bias=False), nn.ModuleList(mlp(inner=128) for _ in range(4))

    def forward(self, x):
        flat = x.flatten(0, -2)
        scores, chosen = self.gate(flat).topk(2, dim=-1)
        weights, out = scores.softmax(-1), torch.zeros_like(flat)
        for i, expert in enumerate(self.experts):
            row, place = torch.where(chosen == i)
            out[row] += weights[row, place, None] * expert(flat[row])
        return out.view_as(x)


top2_experts = of_blocks(lambda: PreLN(Apart(causal=True), Experts()))


def shifted(x, shift, scale):
    return x * (1 + scale) + shift


class Conditioned(nn.Module):
    """A block whose norms have no weights: shift, scale and gate come from a condition, at first all zero (DiT); with
    a table, they are its sum with what all blocks share (PixArt), and attention to a text stands between."""

    def __init__(self, table=False):
        super().__init__()
        self.norm1, self.norm2 = (nn.LayerNorm(WIDTH, elementwise_affine=False, eps=1e-6) for _ in range(2))
        self.attn, self.mlp = Fused(), mlp(nn.GELU(approximate="tanh"))
        self.cross = Apart() if table else None
        self.table = nn.Parameter(torch.randn(6, WIDTH) / WIDTH**0.5) if table else None
        self.modulation = None if table else nn.Sequential(nn.SiLU(), nn.Linear(WIDTH, 6 * WIDTH))

    def forward(self, x, condition, text=None):
        if self.table is None:
            parts = self.modulation(condition).chunk(6, dim=-1)
        else:
            parts = (self.table + condition.unflatten(-1, (6, WIDTH))).unbind(-2)
        shift1, scale1, gate1, shift2, scale2, gate2 = parts
        x = x + gate1 * self.attn(shifted(self.norm1(x), shift1, scale1))
        if self.cross is not None:
            x = x + self.cross(x, text)
        return x + gate2 * self.mlp(shifted(self.norm2(x), shift2, scale2))


class Diffusion(nn.Module):
    """Patches of 16 numbers and times to what the noise was: a time a sample, or one a token."""

    def __init__(self, depth, shared=False):
        super().__init__()
        self.patch, self.times = nn.Linear(16, WIDTH), mlp(nn.SiLU(), WIDTH)
        self.place = nn.Parameter(waves(torch.arange(16)), requires_grad=False)
        self.shared = nn.Sequential(nn.SiLU(), nn.Linear(WIDTH, 6 * WIDTH)) if shared else None
        self.caption = nn.Linear(32, WIDTH) if shared else None
        self.blocks = nn.ModuleList(Conditioned(table=shared) for _ in range(depth))
        self.norm = nn.LayerNorm(WIDTH, elementwise_affine=False, eps=1e-6)
        self.modulation, self.head = nn.Sequential(nn.SiLU(), nn.Linear(WIDTH, 2 * WIDTH)), nn.Linear(WIDTH, 16)
        xavier(self)
        for part in (self.times, self.shared or []):
            for layer in part:
                if isinstance(layer, nn.Linear):
                    nn.init.normal_(layer.weight, std=0.02)
        for block in self.blocks:
            nn.init.zeros_((block.cross.out if shared else block.modulation[1]).weight)
        for layer in (self.modulation[1], self.head):
            nn.init.zeros_(layer.weight)

    def forward(self, patches, times, text=None):
        x = self.patch(patches) + self.place
        condition = self.times(waves(times if times.dim() == 2 else times[:, None]))
        each = condition if self.shared is None else self.shared(condition)
        text = None if text is None else self.caption(text)
        for block in self.blocks:
            x = block(x, each, text)
        shift, scale = self.modulation(condition).chunk(2, dim=-1)
        return self.head(shifted(self.norm(x), shift, scale))


def dit(depth):
    return Diffusion(depth), (noise(4, 16, 16), ids(4))


def pixart(depth):
    return Diffusion(depth, shared=True), (noise(4, 16, 16), ids(4), noise(4, 10, 32))


def adaln_per_token(depth):
    return Diffusion(depth), (noise(4, 16, 16), ids(4, 16))


class Tabular(nn.Module):
    """FT-Transformer: a token a column and one for the answer, which alone goes through the last layer."""

    def __init__(self, depth, columns=10):
        super().__init__()
        self.scale, self.shift = (nn.Parameter(torch.randn(columns, WIDTH) / 8) for _ in range(2))
        self.answer, inner = nn.Parameter(torch.randn(WIDTH) / 8), int(WIDTH * 4 / 3)
        self.attention = nn.ModuleList(Apart() for _ in range(depth))
        self.norm0 = nn.ModuleList(nn.LayerNorm(WIDTH) if i else nn.Identity() for i in range(depth))
        self.norm1 = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(depth))
        self.up = nn.ModuleList(nn.Linear(WIDTH, 2 * inner) for _ in range(depth))
        self.down = nn.ModuleList(nn.Linear(inner, WIDTH) for _ in range(depth))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 1)

    def forward(self, numbers):
        x = numbers[..., None] * self.scale + self.shift
        x = torch.cat([self.answer.expand(len(x), 1, -1), x], dim=1)
        for i, attention in enumerate(self.attention):
            normed = self.norm0[i](x)
            if i == len(self.attention) - 1:
                x = x[:, :1] + attention(normed[:, :1], normed)
            else:
                x = x + attention(normed)
            value, gate = self.up[i](self.norm1[i](x)).chunk(2, dim=-1)
            x = x + self.down[i](value * functional.relu(gate))
        return self.head(functional.relu(self.norm(x[:, 0])))


def ft_transformer(depth):
    return Tabular(depth), (noise(4, 10),)


class UViT(nn.Module):
    """⌊depth/2⌋ blocks, one in the middle, and as many that begin with W·[x, what the opposite block left]."""

    def __init__(self, depth):
        super().__init__()
        self.patch, self.place = nn.Linear(16, WIDTH), nn.Parameter(torch.randn(17, WIDTH) * 0.02)
        blocks = [nn.ModuleList(PreLN(Fused(bias=False)) for _ in range(depth // 2)) for _ in range(2)]
        self.first, self.last, self.middle = *blocks, PreLN(Fused(bias=False))
        self.skip = nn.ModuleList(nn.Linear(2 * WIDTH, WIDTH) for _ in range(depth // 2))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 16)
        normal(self)

    def forward(self, patches, times):
        x = torch.cat([waves(times)[:, None], self.patch(patches)], dim=1) + self.place
        left = []
        for block in self.first:
            x = block(x)
            left.append(x)
        x = self.middle(x)
        for block, skip in zip(self.last, self.skip, strict=True):
            x = block(skip(torch.cat([x, left.pop()], dim=-1)))
        return self.head(self.norm(x))[:, 1:]


def u_vit(depth):
    return UViT(depth), (noise(4, 16, 16), ids(4))


class Convolution(nn.Module):
    def __init__(self, inner=2 * WIDTH, kernel=7):
        super().__init__()
        self.up, self.down = nn.Conv1d(WIDTH, 2 * inner, 1), nn.Conv1d(inner, WIDTH, 1)
        self.depthwise = nn.Conv1d(inner, inner, kernel, groups=inner, padding=kernel // 2)
        self.norm = nn.BatchNorm1d(inner)

    def forward(self, x):
        x = functional.glu(self.up(x.transpose(1, 2)), dim=1)
        return self.down(functional.silu(self.norm(self.depthwise(x)))).transpose(1, 2)


class ConformerBlock(nn.Module):
    def __init__(self):
        super().__init__()
        self.norms, self.attn, self.conv = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(5)), Apart(), Convolution()
        self.ff1, self.ff2 = mlp(nn.SiLU()), mlp(nn.SiLU())

    def forward(self, x):
        x = x + 0.5 * self.ff1(self.norms[0](x))
        x = x + self.attn(self.norms[1](x))
        x = x + self.conv(self.norms[2](x))
        return self.norms[4](x + 0.5 * self.ff2(self.norms[3](x)))


def conformer_by_hand(depth):
    blocks = [ConformerBlock() for _ in range(depth)]
    return nn.Sequential(nn.Linear(16, WIDTH), *blocks, nn.Linear(WIDTH, 10)), (noise(4, 16, 16),)


class Connection(nn.Module):
    """H ← αᵣᵀ·H + β ⊗ f(N(αₘᵀ·H)) on (batch, streams, tokens, d), as it begins: stream k is read, all are written."""

    def __init__(self, branch, index):
        super().__init__()
        self.branch, self.norm = branch, nn.LayerNorm(WIDTH)
        self.read = nn.Parameter(torch.eye(STREAMS)[index % STREAMS])
        self.keep, self.write = nn.Parameter(torch.eye(STREAMS)), nn.Parameter(torch.ones(STREAMS))

    def forward(self, h):
        out = self.branch(self.norm(torch.einsum("s,bstd->btd", self.read, h)))
        return torch.einsum("sr,bstd->brtd", self.keep, h) + self.write[:, None, None] * out[:, None]


class Streams(nn.Module):
    def __init__(self, depth):
        super().__init__()
        parts = [part for _ in range(depth) for part in (Apart(causal=True), mlp())]
        self.embed, self.layers = nn.Embedding(WORDS, WIDTH), nn.ModuleList(map(Connection, parts, range(2 * depth)))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WORDS, bias=False)

    def forward(self, tokens):
        h = self.embed(tokens)[:, None].expand(-1, STREAMS, -1, -1)
        for layer in self.layers:
            h = layer(h)
        return self.head(self.norm(h.sum(1)))


def streams_in_one_tensor(depth):
    return Streams(depth), (ids(4, 16),)


class ByAxes(nn.Module):
    """Attention within rows (within pictures), then within columns (along time), then a feed-forward; the state keeps
    all its axes."""

    def __init__(self):
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(3))
        self.first, self.second, self.mlp = Fused(), Fused(), mlp()

    def forward(self, x):
        places = self.norms[0](x)
        x = x + self.first(places.flatten(2, -2) if x.dim() == 5 else places).view_as(x)
        x = x + self.second(self.norms[1](x).movedim(1, -2)).movedim(-2, 1)
        return x + self.mlp(self.norms[2](x))


def of_axes(*axes):
    """The factory for a state of these axes."""

    def build(depth):
        blocks = [ByAxes() for _ in range(depth)]
        model = nn.Sequential(nn.Linear(12, WIDTH), *blocks, nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 12))
        return xavier(model), (noise(4, *axes, 12),)

    return build


axial, video = of_axes(6, 5), of_axes(3, 4, 5)
LIBRARY = (
    "patch_tst whisper m2m100 deberta_v2 gemma3 deepseek_v3 perceiver qwen3_moe siglip_vision clip_text gptj cohere"
)
OWN = (
    "rotary_halves rotary_interleaved rotary_complex alibi lora top2_experts dit pixart adaln_per_token ft_transformer "
    "u_vit conformer_by_hand streams_in_one_tensor axial video"
)
ZOO = {**dict.fromkeys(LIBRARY.split(), "transformers"), **dict.fromkeys(OWN.split(), "torch")}
"""What each of these needs."""


def factory(name):
    """Of this file, or of library_models."""
    return globals()[name] if name in ZOO else getattr(library_models, name)


def missing(name):
    """The library that a factory lacks here; "" where it is there."""
    library = ZOO.get(name) or library_models.ZOO[name]
    return "" if find_spec(library) else library
