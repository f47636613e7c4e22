"""Every method against a second, obvious implementation and against its published numbers (`reference/methods.md`)."""

import ast
import inspect
import math

import numpy as np
import pytest
import torch
from torch import nn

from stabkit import methods
from stabkit.methods.base import sites
from stabkit.methods.blocks import BLOCKS
from stabkit.methods.count import parameters
from stabkit.methods.papers import sub_ln
from stabkit.model.transformer import Transformer
from stabkit.spec import ModelConfig
from tests.methods import numpy_reference, numpy_wirings

D, FF, H, V = 16, 24, 2, 50
SOURCE = torch.tensor([[5, 6, 7, 8, 2], [9, 4, 2, 0, 0]])
TARGET = torch.tensor([[1, 11, 12, 13], [1, 14, 15, 0]])
ELSE = {"norm": "dyt", "ffn_kind": "swiglu", "qk_norm": True, "tied": False}
"""What neither block has."""


def model(
    text: str, n: int = 2, m: int = 3, base: str = "xavier_normal", width: int = D, **block: object
) -> Transformer:
    """In float64, every parameter moved a little, so that nothing is 0 or 1 by chance."""
    key, options = methods.parse(text)
    sizes = {"hidden": width, "ffn": FF if width == D else 2 * width, "heads": H}
    config = ModelConfig(encoder_layers=n, decoder_layers=m, base_init=base, **sizes, **block)
    return Transformer(config, methods.build(key, options), V, seed=0).double().eval()


def stirred(text: str, **sizes: object) -> Transformer:
    made = model(text, **sizes)
    torch.manual_seed(1)
    with torch.no_grad():
        for p in made.parameters():
            p.add_(0.2 * torch.randn_like(p))
    return made


@pytest.mark.parametrize("stacks", [(2, 3), (2, 0), (0, 3)], ids=str)
@pytest.mark.parametrize("block", [*BLOCKS, "all else"])
@pytest.mark.parametrize("key", methods.KEYS)
def test_the_model_computes_what_the_slots_say_written_out(key, block, stacks):
    """Against `numpy_reference.py`, which shares no code with it; it holds as many numbers as the slots count."""
    method = methods.build(key, {})
    if method.undefined(*stacks):
        return
    made = stirred(key, n=stacks[0], m=stacks[1], **(BLOCKS[block] if block in BLOCKS else ELSE))
    with torch.no_grad():
        ours = made(SOURCE, TARGET)[1].transpose(0, 1).numpy()
    theirs = numpy_reference.logits(method, made.config, made.arrays(), SOURCE.numpy(), TARGET.numpy())
    real = (TARGET if stacks[1] else SOURCE).numpy() != 0
    np.testing.assert_allclose(ours[real], theirs[real], rtol=1e-9, atol=1e-9)
    assert sum(p.numel() for p in made.parameters()) == parameters(method, made.config, V)


def test_the_second_implementation_shares_no_code_with_the_first():
    nodes = [n for module in (numpy_reference, numpy_wirings) for n in ast.walk(ast.parse(inspect.getsource(module)))]
    roots = {node.module for node in nodes if isinstance(node, ast.ImportFrom)}
    roots |= {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    assert not any(root and root.startswith(("torch", "stabkit.model")) for root in roots)
    assert "stabkit.methods.count" not in roots and "stabkit.methods.blocks" not in roots


def test_post_norm_dlcl_norms_every_combination_but_the_first():
    made = stirred("dlcl:norm=post", n=2, m=1)
    history = made.history["encoder"]
    ys = [torch.randn(3, 1, D, dtype=torch.float64) for _ in range(3)]
    w = history.weight
    with torch.no_grad():
        torch.testing.assert_close(history.combined((ys[0],)), w[0] * ys[0])
        torch.testing.assert_close(history.combined((ys[0], ys[1])), history.norms[0](w[1] * ys[0] + w[2] * ys[1]))
        third = w[3] * ys[0] + w[4] * ys[1] + w[5] * ys[2]
        torch.testing.assert_close(history.combined(tuple(ys)), history.norms[1](third))
    assert all(r.norm_out is not None for r in made.residuals.values())


def test_dlcl_begins_with_the_average_of_everything_before():
    history = model("dlcl", n=4).history["encoder"]
    ys = tuple(torch.randn(3, 1, D, dtype=torch.float64) for _ in range(5))
    with torch.no_grad():
        torch.testing.assert_close(history.combined(ys), torch.stack(ys).mean(dim=0))
    assert len(history.weight) == 5 * 6 // 2


def test_the_gradient_of_a_combination_is_right():
    weights = torch.rand(3, dtype=torch.float64, requires_grad=True)
    ys = [torch.randn(2, 2, 4, dtype=torch.float64, requires_grad=True) for _ in range(3)]
    from stabkit.model.wirings.history import _Combine

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
        ours = by["encoder ffn"](by["encoder self"](x, None, None)[0], None, None)[0]
        torch.testing.assert_close(ours, theirs)
        theirs = decoder(y, ours, tgt_mask=causal)
        keys_by_queries = causal.T.expand(2 * H, 3, 3).contiguous()
        mine = by["decoder cross"](by["decoder self"](y, None, keys_by_queries)[0], ours, None)[0]
        torch.testing.assert_close(by["decoder ffn"](mine, None, None)[0], theirs)


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
        torch.testing.assert_close(states, made._embed("decoder", TARGET))
    assert not list(made.final) and all(r.norm_out is None and r.norm_in is None for r in made.residuals.values())


def test_every_branch_of_r_fixup_is_zero_at_first_and_its_maps_have_no_biases():
    made = model("r-fixup")
    with torch.no_grad():
        torch.testing.assert_close(made(SOURCE, TARGET)[0], made._embed("decoder", TARGET))
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
