"""Every method against a second, obvious implementation and against its published numbers (`reference/methods.md`)."""

import math

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from stabkit import methods
from stabkit.methods.papers import sub_ln
from stabkit.methods.base import sites
from stabkit.model.transformer import Transformer
from stabkit.spec import ModelConfig

D, FF, H, V = 16, 24, 2, 50
SOURCE = torch.tensor([[5, 6, 7, 8, 2], [9, 4, 2, 0, 0]])
TARGET = torch.tensor([[1, 11, 12, 13], [1, 14, 15, 0]])


def model(text: str, n: int = 2, m: int = 3, base: str = "xavier_normal", width: int = D) -> Transformer:
    """In float64, every parameter moved a little, so that nothing is 0 or 1 by chance."""
    key, options = methods.parse(text)
    config = ModelConfig(
        encoder_layers=n, decoder_layers=m, hidden=width, ffn=FF if width == D else 2 * width, heads=H, base_init=base
    )
    return Transformer(config, methods.build(key, options), V, seed=0).double().eval()


def stirred(text: str, **sizes: int) -> Transformer:
    made = model(text, **sizes)
    torch.manual_seed(1)
    with torch.no_grad():
        for p in made.parameters():
            p.add_(0.2 * torch.randn_like(p))
    return made


def attention(g: nn.Module, query: torch.Tensor, memory: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Head by head, one sentence at a time, before the output matrix: (B, T, D)."""
    named = {role: (m, m.role(role)) for m in g.children() for role in getattr(m, "roles", ())}

    def mapped(role: str, x: torch.Tensor, head: int) -> torch.Tensor:
        linear, weight = named[role]
        y = x @ weight[head].T
        if linear.bias is not None:
            y = y + linear.bias.view(linear.heads, len(linear.roles), linear.size)[head, linear.roles.index(role)]
        return y

    heads = []
    for head in range(H):
        q, k, v = mapped("query", query, head), mapped("key", memory, head), mapped("value", memory, head)
        scores = q @ k.transpose(1, 2) / math.sqrt(q.shape[-1])
        heads.append(torch.softmax(scores.masked_fill(mask, -math.inf), dim=-1) @ v)
    return torch.cat(heads, dim=-1)


def affine(linear: nn.Module, x: torch.Tensor) -> torch.Tensor:
    return x @ linear.weight.T + (0 if linear.bias is None else linear.bias)


def branch(
    key: str, r: nn.Module, kind: str, x: torch.Tensor, memory: torch.Tensor, mask: torch.Tensor
) -> torch.Tensor:
    """What is added to the shortcut, written out for each scheme on its own."""
    g = r.g
    pre = key in ("pre-ln", "dlcl", "normformer", "sub-ln")
    u = r.norm_in(x) if pre else x
    if key == "r-fixup":
        u = u + g.first.b
    if kind == "ffn":
        hidden = affine(g.up, u)
        if key == "r-fixup":
            hidden = torch.relu(hidden + g.mid.b) + g.last.b
        else:
            hidden = torch.relu(hidden)
        if key in ("sub-ln", "normformer"):
            hidden = g.last(hidden)
        f = affine(g.down, hidden)
    else:
        heads = attention(g, u, u if kind == "self" else memory, mask)
        if key == "sub-ln" and kind == "self":
            heads = g.last(heads)
        if key == "normformer" and kind == "self":
            heads = heads * g.last.gamma.repeat_interleave(D // H)
        f = affine(g.out, heads)
        if key == "normformer" and kind == "self":
            f = r.norm_branch(f)
    if key in ("rezero", "r-fixup"):
        f = f * r.gamma
    return f


def slow(key: str, m: Transformer, source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """The logits (B, T, V), sub-layer by sub-layer."""
    pad = source == 0

    def embed(tokens: torch.Tensor) -> torch.Tensor:
        d, (_, t) = m.embedding.shape[1], tokens.shape
        place = torch.arange(t).double()[:, None] / 10000.0 ** (torch.arange(0, d, 2) / d)
        waves = torch.stack([place.sin(), place.cos()], dim=-1).flatten(1).float().double()  # as the model keeps them
        return m.embedding[tokens] * math.sqrt(d) * (tokens != 0)[..., None] + waves

    def stack(name: str, tokens: torch.Tensor, memory: torch.Tensor) -> torch.Tensor:
        t = tokens.shape[1]
        later = torch.ones(t, t).triu(1).bool().expand(len(tokens), t, t)
        x = embed(tokens)
        outputs = [x]
        for layer in range(1, (m.config.encoder_layers if name == "encoder" else m.config.decoder_layers) + 1):
            if key == "dlcl":
                x = combined(m.history[name], outputs)
            for site, r in m.residuals.items():
                if (site.stack, site.layer) != (name, layer):
                    continue
                mask = pad[:, None, :].expand(-1, t, -1)
                if name == "decoder" and site.kind == "self":
                    mask = later
                f = branch(key, r, site.kind, x, memory, mask)
                x = r.mean_omega() * x + f
                if r.norm_out is not None:
                    x = F.layer_norm(x, (D,), r.norm_out.weight, r.norm_out.bias)
            outputs.append(x)
        if key == "dlcl":
            x = combined(m.history[name], outputs)
        if key in ("pre-ln", "dlcl", "normformer", "sub-ln"):
            return m.final[name](x)
        if key == "r-fixup":
            end = m.final[name]
            return (x + end.b) * end.s if name == "encoder" else x + end.b
        return x

    memory = stack("encoder", source, torch.empty(0))
    return stack("decoder", target, memory) @ m.embedding.T


def combined(history: nn.Module, outputs: list[torch.Tensor]) -> torch.Tensor:
    """Σ_k W_k·LN_k(y_k), the embedding without a norm; row l of the packed triangle has l + 1 weights."""
    begin = sum(range(len(outputs)))
    weights = history.weight[begin : begin + len(outputs)]
    normed = [outputs[0], *(norm(y) for norm, y in zip(history.norms, outputs[1:], strict=False))]
    return sum((w * y for w, y in zip(weights, normed, strict=True)), torch.zeros(()))


@pytest.mark.parametrize("key", methods.KEYS)
def test_the_model_computes_what_the_method_says_written_out(key):
    made = stirred(key)
    with torch.no_grad():
        logits = made(SOURCE, TARGET)[1].transpose(0, 1)
        real = TARGET != 0
        torch.testing.assert_close(logits[real], slow(key, made, SOURCE, TARGET)[real])


def test_post_norm_dlcl_norms_every_combination_but_the_first():
    made = stirred("dlcl:norm=post", n=2, m=1)
    history = made.history["encoder"]
    ys = [torch.randn(3, 1, D, dtype=torch.float64) for _ in range(3)]
    w = history.weight
    with torch.no_grad():
        torch.testing.assert_close(history.read((ys[0],)), w[0] * ys[0])
        torch.testing.assert_close(history.read((ys[0], ys[1])), history.norms[0](w[1] * ys[0] + w[2] * ys[1]))
        third = w[3] * ys[0] + w[4] * ys[1] + w[5] * ys[2]
        torch.testing.assert_close(history.read(tuple(ys)), history.norms[1](third))
    assert all(r.norm_out is not None for r in made.residuals.values())


def test_dlcl_begins_with_the_average_of_everything_before():
    history = model("dlcl", n=4).history["encoder"]
    ys = tuple(torch.randn(3, 1, D, dtype=torch.float64) for _ in range(5))
    with torch.no_grad():
        torch.testing.assert_close(history.read(ys), torch.stack(ys).mean(dim=0))
    assert len(history.weight) == 5 * 6 // 2


def test_the_gradient_of_a_combination_is_right():
    weights = torch.rand(3, dtype=torch.float64, requires_grad=True)
    ys = [torch.randn(2, 2, 4, dtype=torch.float64, requires_grad=True) for _ in range(3)]
    from stabkit.model.wiring import _Combine

    assert torch.autograd.gradcheck(lambda w, *y: _Combine.apply(w, *y), (weights, *ys))


@pytest.mark.parametrize("key", ["pre-ln", "post-ln"])
def test_pre_ln_and_post_ln_equal_torchs_own_layers(key):
    made = stirred(key, n=1, m=1)
    encoder, decoder = (
        layer(D, H, FF, dropout=0.0, norm_first=key == "pre-ln", dtype=torch.float64).eval()
        for layer in (nn.TransformerEncoderLayer, nn.TransformerDecoderLayer)
    )
    by = {f"{s.stack} {s.kind}": r for s, r in made.residuals.items()}
    with torch.no_grad():
        for stack, layer in (("encoder", encoder), ("decoder", decoder)):
            kinds = ("self", "ffn") if stack == "encoder" else ("self", "cross", "ffn")
            for number, kind in enumerate(kinds, 1):
                r = by[f"{stack} {kind}"]
                norm = r.norm_in if key == "pre-ln" else r.norm_out
                getattr(layer, f"norm{number}").load_state_dict(norm.state_dict())
                if kind == "ffn":
                    layer.linear1.load_state_dict(r.g.up.state_dict())
                    layer.linear2.load_state_dict(r.g.down.state_dict())
                else:
                    copy_attention(r.g, layer.self_attn if kind == "self" else layer.multihead_attn)
        x, y = torch.randn(4, 2, D, dtype=torch.float64), torch.randn(3, 2, D, dtype=torch.float64)
        causal = torch.full((3, 3), -math.inf, dtype=torch.float64).triu(1)
        theirs = encoder(x)
        ours = by["encoder ffn"](by["encoder self"](x, None, None), None, None)
        torch.testing.assert_close(ours, theirs)
        theirs = decoder(y, ours, tgt_mask=causal)
        keys_by_queries = causal.T.expand(2 * H, 3, 3).contiguous()
        mine = by["decoder cross"](by["decoder self"](y, None, keys_by_queries), ours, None)
        torch.testing.assert_close(by["decoder ffn"](mine, None, None), theirs)


def copy_attention(g: nn.Module, theirs: nn.MultiheadAttention) -> None:
    rows, biases = [], []
    for role in ("query", "key", "value"):
        linear = next(m for m in g.children() if role in getattr(m, "roles", ()))
        rows.append(linear.role(role).reshape(D, D))
        biases.append(linear.bias.view(linear.heads, len(linear.roles), linear.size)[:, linear.roles.index(role)])
    theirs.in_proj_weight.copy_(torch.cat(rows))
    theirs.in_proj_bias.copy_(torch.cat([b.reshape(-1) for b in biases]))
    theirs.out_proj.weight.copy_(g.out.weight)
    theirs.out_proj.bias.copy_(g.out.bias)


def test_rezero_is_the_identity_on_its_embeddings_at_first():
    made = model("rezero")
    with torch.no_grad():
        states, _ = made(SOURCE, TARGET)
        torch.testing.assert_close(states, made._embed(TARGET))
    assert not list(made.final) and all(r.norm_out is None and r.norm_in is None for r in made.residuals.values())


def test_every_branch_of_r_fixup_is_zero_at_first_and_its_maps_have_no_biases():
    made = model("r-fixup")
    with torch.no_grad():
        torch.testing.assert_close(made(SOURCE, TARGET)[0], made._embed(TARGET))
    names = [name for name, _ in made.named_parameters()]
    assert not any(name.endswith(".bias") for name in names)
    method, site = methods.build("r-fixup", {}), sites(18, 18, 64)[-2]
    assert site.kind == "cross" and site.branches == 90
    assert method.gain(site, "value") == pytest.approx(0.472, abs=5e-4)  # a released version has 12 layers' 0.661
    assert method.gain(sites(18, 18, 64)[-1], "up") == pytest.approx(90**-0.5)


@pytest.mark.parametrize("base", ["xavier_normal", "fairseq_uniform"])
def test_t_fixup_has_the_published_standard_deviations_on_either_base(base):
    n, m, width = 3, 2, 64
    made = model("t-fixup", n=n, m=m, base=base, width=width)
    xavier = {"attention": math.sqrt(2 / (2 * width)), "ffn": math.sqrt(2 / (3 * width))}
    for site, r in made.residuals.items():
        scale = 0.67 * n**-0.25 if site.stack == "encoder" else (9 * m) ** -0.25
        for linear in (module for module in r.g.children() if hasattr(module, "roles")):
            for role in linear.roles:
                wanted = scale * xavier["ffn" if site.kind == "ffn" else "attention"]
                if role in ("query", "key"):
                    wanted = xavier["attention"] * (math.sqrt(0.5) if base == "fairseq_uniform" else 1.0)
                assert linear.role(role).std().item() == pytest.approx(wanted, rel=0.06)
    assert made.embedding[1:].std().item() == pytest.approx((9 * n) ** -0.25 / math.sqrt(width), rel=0.06)


def test_sub_ln_has_the_published_gains_and_leaves_cross_attention_alone():
    one_stack, both = sites(18, 0, 64)[0], sites(18, 18, 64)
    assert [sub_ln.gamma(site) for site in (one_stack, both[0], both[-1])] == pytest.approx([1.893] * 3, abs=5e-4)
    pair = [sub_ln.gamma(site, "torchscale") for site in (one_stack, both[0], both[-1])]
    assert pair == pytest.approx([1.893, 2.183, 1.997], abs=5e-4)
    assert sub_ln.gamma(sites(1, 0, 64)[0]) == pytest.approx(0.83, abs=5e-3)
    method = methods.build("sub-ln", {})
    cross = next(site for site in both if site.kind == "cross")
    assert [method.gain(cross, role) for role in ("query", "value", "out")] == [1.0] * 3
    assert method.gain(both[0], "query") == 1.0 and method.inner(cross, "last") == ""


def test_ds_init_shrinks_upwards_by_its_two_laws():
    paper, released = (methods.build("ds-init", options) for options in ({}, {"power": "0.25"}))
    fourth = next(site for site in sites(6, 6, 64) if site.layer == 4)
    assert [paper.gain(fourth, "query"), released.gain(fourth, "down")] == pytest.approx([0.5, 4**-0.25])


def test_normformer_as_fairseq_scales_heads_after_the_output_matrix():
    made = stirred("normformer:heads=fairseq")
    r = next(r for s, r in made.residuals.items() if s.name == "encoder.1.self")
    assert r.g.last is None and r.g.end is not None
    lambdas = model("normformer:res_scale=yes")
    vectors = [s.kind for s, r in lambdas.residuals.items() if not isinstance(r.omega, float)]
    assert set(vectors) == {"ffn"} and len(vectors) == 5
