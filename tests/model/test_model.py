"""The model against torch's own layers and against slow recomputation."""

import dataclasses
import math

import pytest
import torch
from torch import nn

from stabkit import methods
from stabkit.methods.base import Method, Scale, sites
from stabkit.model import draw
from stabkit.model.flat import Flat
from stabkit.model.transformer import Transformer, tensors
from stabkit.spec import ModelConfig
from stabkit.tasks.synthetic import Synthetic
from stabkit.training import train
from tests.conftest import tiny

CONFIG = ModelConfig(encoder_layers=2, decoder_layers=3, hidden=16, ffn=24, heads=4)


def model(method="post-ln", config=CONFIG, vocab=200, seed=0, **options):
    made = method if isinstance(method, Method) else methods.build(method, options)
    return Transformer(config, made, vocab, seed).double()


@pytest.fixture
def batch():
    return tensors(Synthetic(vocab=200, max_tokens=256).train(0, 0))


def copied(linear, roles):
    """(weights stacked by role, biases) of a Linear in torch's layout (role, head, size)."""
    weight = torch.cat([linear.role(r).reshape(-1, linear.weight.shape[1]) for r in roles])
    bias = linear.bias.view(linear.heads, len(linear.roles), linear.size)
    return weight, torch.cat([bias[:, linear.roles.index(r)].reshape(-1) for r in roles])


def fill(own, theirs):
    """Copy one attention's weights into an nn.MultiheadAttention."""
    if own.own:
        theirs.in_proj_weight.data, theirs.in_proj_bias.data = copied(own.qkv, ("query", "key", "value"))
    else:
        (wq, bq), (wkv, bkv) = copied(own.q, ("query",)), copied(own.kv, ("key", "value"))
        theirs.in_proj_weight.data, theirs.in_proj_bias.data = torch.cat([wq, wkv]), torch.cat([bq, bkv])
    theirs.out_proj.weight.data, theirs.out_proj.bias.data = own.out.weight.data, own.out.bias.data


def test_post_ln_with_copied_weights_equals_torchs_own_layers(batch):
    ours = model()
    for p in ours.parameters():  # biases and norms off their zeros and ones
        p.data += 0.1 * torch.randn_like(p)
    source, target, _ = batch
    sub = {site.name: r for site, r in ours.residuals.items()}
    same = dict(d_model=16, nhead=4, dim_feedforward=24, dropout=0.0, dtype=torch.float64)
    with torch.no_grad():
        pad = source == 0
        x = ours._embed("encoder", source)
        for layer in (1, 2):
            theirs = nn.TransformerEncoderLayer(**same)
            attention, ffn = sub[f"encoder.{layer}.self"], sub[f"encoder.{layer}.ffn"]
            fill(attention.g, theirs.self_attn)
            theirs.linear1, theirs.linear2 = ffn.g.up, ffn.g.down
            theirs.norm1, theirs.norm2 = attention.norm_out, ffn.norm_out
            x = theirs(x, src_key_padding_mask=pad)
        y, memory = ours._embed("decoder", target), x
        causal = nn.Transformer.generate_square_subsequent_mask(target.shape[1], dtype=torch.float64)
        for layer in (1, 2, 3):
            theirs = nn.TransformerDecoderLayer(**same)
            own, cross, ffn = (sub[f"decoder.{layer}.{kind}"] for kind in ("self", "cross", "ffn"))
            fill(own.g, theirs.self_attn)
            fill(cross.g, theirs.multihead_attn)
            theirs.linear1, theirs.linear2 = ffn.g.up, ffn.g.down
            theirs.norm1, theirs.norm2, theirs.norm3 = own.norm_out, cross.norm_out, ffn.norm_out
            y = theirs(y, memory, tgt_mask=causal, memory_key_padding_mask=pad)
        states, logits = ours(source, target)
    keep = (target != 0).t()
    torch.testing.assert_close(states[keep], y[keep], rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(logits, states @ ours.embedding.t())


def test_the_model_has_source_padding_in_this_test(batch):
    assert (batch[0] == 0).any()  # or the masks above were not tried


def test_padding_more_changes_no_state(batch):
    ours, (source, target, _) = model(), batch
    wider = nn.functional.pad(source, (0, 5))
    torch.testing.assert_close(ours(wider, target)[0], ours(source, target)[0], rtol=1e-10, atol=1e-10)


def test_a_later_target_token_changes_no_earlier_state(batch):
    ours, (source, target, _) = model(), batch
    changed = target.clone()
    changed[:, -1] = 7
    torch.testing.assert_close(ours(source, changed)[0][:-1], ours(source, target)[0][:-1], rtol=0, atol=0)


def test_the_residual_is_the_one_formula(batch):
    method = Method(
        key="all",
        label="all",
        source="test",
        omega=lambda s: Scale(init=1.7),
        gamma=lambda s: Scale(init=0.3),
        norm_in=lambda s: "norm",
        norm_branch=lambda s: "norm",
        norm_out=lambda s: "norm",
        final=lambda stack: "norm",
    )
    ours = model(method)
    residual = ours.residuals[ours.sites[1]]
    x = torch.randn(5, 3, 16, dtype=torch.float64)
    expected = residual.norm_out(1.7 * x + 0.3 * residual.norm_branch(residual.g(residual.norm_in(x), None, None)))
    torch.testing.assert_close(residual(x, None, None)[0], expected)
    seen = {}
    residual.branch.register_forward_hook(lambda m, i, o: seen.update(branch=o))
    residual.sum.register_forward_hook(lambda m, i, o: seen.update(sum=o))
    residual(x, None, None)
    torch.testing.assert_close(seen["sum"] - seen["branch"], 1.7 * x)
    assert set(ours.final) == {"encoder", "decoder"}


def test_a_vector_scale_is_a_parameter_and_equals_the_number():
    config = ModelConfig(encoder_layers=1, decoder_layers=1, hidden=16, ffn=24, heads=2)
    plain, vector = model("admin", config), model("admin", config, trainable="yes")
    x = torch.randn(4, 2, 16, dtype=torch.float64)
    for made in (plain, vector):
        made.residuals[made.sites[0]].set_omega(2.5)
    outputs = [made.residuals[made.sites[0]](x, None, None)[0] for made in (plain, vector)]
    torch.testing.assert_close(*outputs)
    assert sum(p.numel() for p in vector.parameters()) - sum(p.numel() for p in plain.parameters()) == 5 * 16


def test_no_two_layers_start_alike_and_every_role_has_its_own_draw():
    ours = model(config=ModelConfig(encoder_layers=3, decoder_layers=3, hidden=16, ffn=16, heads=1))
    drawn = [
        linear.role(role).flatten()
        for r in ours.residuals.values()
        for linear in r.g.children()
        for role in getattr(linear, "roles", ())
    ]
    stacked = torch.stack([d for d in drawn if len(d) == 256])
    cosines = torch.corrcoef(stacked) - torch.eye(len(stacked))
    assert cosines.abs().max() < 0.35  # 4.5 standard deviations of 1/√256, over 1,128 pairs


@pytest.mark.parametrize(("base", "spread"), [("xavier_normal", 1.0), ("fairseq_uniform", 1 / math.sqrt(2))])
def test_base_initialisations_have_the_published_standard_deviations(base, spread):
    query = draw.matrix(base, 0, "x", "query", (400, 200), 1.0)
    down = draw.matrix(base, 0, "x", "down", (400, 200), 0.5)
    xavier = math.sqrt(2 / 600)
    assert float(query.std()) == pytest.approx(spread * xavier, rel=0.02)
    assert float(down.std()) == pytest.approx(0.5 * xavier, rel=0.02)
    if base == "fairseq_uniform":
        assert float(down.abs().max()) <= 0.5 * math.sqrt(6 / 600)


def test_methods_of_one_comparison_share_their_draws_up_to_the_gain():
    post, deep = model("post-ln"), model("deepnorm")
    for (site, a), b in zip(post.residuals.items(), deep.residuals.values(), strict=True):
        for own, other in zip(a.g.children(), b.g.children(), strict=True):
            for role in getattr(own, "roles", ()):
                torch.testing.assert_close(own.role(role) * deep.method.gain(site, role), other.role(role))
    torch.testing.assert_close(post.embedding, deep.embedding)


def test_a_deeper_encoder_changes_no_draw_of_the_shallower_layers():
    shallow, deep = model(), model(config=ModelConfig(encoder_layers=4, decoder_layers=3, hidden=16, ffn=24, heads=4))
    torch.testing.assert_close(shallow.layers["encoder_2_ffn"].g.up.weight, deep.layers["encoder_2_ffn"].g.up.weight)


@torch.no_grad()
def test_embeddings_are_scaled_and_positions_have_mean_square_one_half():
    ours = model(vocab=2000, config=ModelConfig(encoder_layers=1, decoder_layers=1))
    assert float(ours.embedding[1:].std()) == pytest.approx(1 / 8, rel=0.02) and not ours.embedding[0].any()
    assert float(ours.positions.table[:50].square().mean()) == pytest.approx(0.5)
    tokens = torch.tensor([[5]])
    torch.testing.assert_close(ours._embed("decoder", tokens)[0, 0], 8 * ours.embedding[5] + ours.positions.table[0])


def test_the_flat_vector_is_the_model(batch):
    ours = model()
    before = {name: p.detach().clone() for name, p in ours.named_parameters()}
    flat = Flat(ours, ours.parts())
    assert all(torch.equal(p, before[name]) for name, p in ours.named_parameters())
    source, target, _ = batch
    ours(source, target)[1].square().mean().backward()
    for name, where in flat.slices.items():
        part = ours.parts()[name]
        params = [part] if isinstance(part, nn.Parameter) else list(part.parameters())
        norm = torch.sqrt(sum(p.grad.square().sum() for p in params))
        torch.testing.assert_close(flat.norms(flat.grad)[list(flat.slices).index(name)], norm)
        assert sum(p.numel() for p in params) == where.stop - where.start
    flat.theta.zero_()
    assert not any(p.any() for p in ours.parameters())


def test_norms_of_tiny_gradients_do_not_underflow():
    ours = model().float()
    flat = Flat(ours, ours.parts())
    flat.grad.fill_(1e-30)
    assert (flat.norms(flat.grad) > 0).all()


@pytest.mark.parametrize("n, m", [(1, 1), (3, 0), (0, 3), (2, 5)])
def test_any_number_of_layers_in_either_stack(n, m):
    assert len(sites(n, m, 16)) == 2 * n + (3 if n else 2) * m
    if m:
        ours = model(config=ModelConfig(encoder_layers=n, decoder_layers=m, hidden=16, ffn=8, heads=2))
        states, logits = ours(torch.tensor([[4, 2]]), torch.tensor([[1, 5, 6]]))
        assert states.shape == (3, 1, 16) and logits.shape == (3, 1, 200)


@pytest.mark.parametrize("key", ["deepnorm", "t-fixup", "rezero", "dlcl"])
def test_an_untied_softmax_is_another_draw_of_the_same_size_and_nothing_else_changes(key):
    spec = tiny(key)
    loose = dataclasses.replace(spec, model=dataclasses.replace(spec.model, tied=False))
    task = Synthetic(vocab=200, max_tokens=128)
    tied, own = (train.build(one, task, torch.device("cpu")) for one in (spec, loose))
    assert tied.head is tied.embedding and own.head is not own.embedding
    before, after = dict(tied.named_parameters()), dict(own.named_parameters())
    assert set(after) - set(before) == {"head"} and "head" in own.parts() and "head" not in tied.parts()
    assert all(torch.equal(after[name], value) for name, value in before.items())
    assert own.head.std().item() == pytest.approx(own.embedding.std().item(), rel=0.05)
    assert sum(p.numel() for p in own.parameters()) == methods.parameters(loose) == methods.parameters(spec) + 200 * 16
    batch = task.probe()
    states, logits = own(*tensors(batch)[:2])
    torch.testing.assert_close(logits, states @ own.head.T)


def test_an_untied_run_trains_its_head_and_is_another_run():
    spec = tiny(steps=2, warmup=0, lr=1e-3)
    loose = dataclasses.replace(spec, model=dataclasses.replace(spec.model, tied=False))
    task = Synthetic(vocab=200, max_tokens=128)
    found = train.run(loose, task)
    assert loose.run_id != spec.run_id and loose.stored()["model"]["tied"] is False
    assert found.records["parameter_update"].at("head")[-1] > 0
