"""What may stand at a place: a name, its formula, its cost, its module; no table without the other."""

from typing import get_args

import numpy as np
import pytest
import torch

from stabkit.methods.base import Method, Site
from stabkit.methods.blocks import BLOCKS, departs, inner_width, name_of
from stabkit.methods.count import parameters
from stabkit.methods.papers import deepnorm, post_ln
from stabkit.methods.parts import PARTS, resolved
from stabkit.methods.wirings import WIRINGS
from stabkit.model import part, wirings
from stabkit.model.transformer import Transformer
from stabkit.spec import ModelConfig, Norm

PLAIN = ModelConfig(encoder_layers=6, decoder_layers=6)


def test_every_part_and_every_wiring_has_a_module():
    assert set(PARTS) == set(part.MODULES) and set(WIRINGS) == set(wirings.MODULES)
    assert set(get_args(Norm)) <= set(PARTS)


@pytest.mark.parametrize("name", PARTS)
def test_a_part_costs_what_it_says(name):
    made = part.part(name, "layer", 8, 2)
    assert sum(p.numel() for p in made.parameters()) == PARTS[name].parameters(8, 2)
    assert made(torch.randn(3, 2, 8)).shape == (3, 2, 8)


@pytest.mark.parametrize("name", PARTS)
def test_a_part_normalises_where_the_length_that_leaves_it_is_its_own(name):
    shape = (50, 2, 8) if name == "rms across heads" else (50, 1, 8)  # heads are its own
    made, x = part.part(name, "layer", 8, 2), 10 * torch.randn(shape)
    with torch.no_grad():
        ratio = (made(10 * x).flatten(1).norm(dim=-1) / made(x).flatten(1).norm(dim=-1)).numpy()
    assert np.allclose(ratio, 1, atol=1e-3) == PARTS[name].normalises


def test_the_norm_of_a_method_is_the_comparisons_unless_it_names_its_own():
    assert [resolved(name, "rms") for name in ("norm", "layer", "")] == ["rms", "layer", ""]
    own = Method(key="own", label="Own", source="here", norm_out=lambda site: "dyt")
    for method, kind in ((own, part.DyT), (post_ln.method(), torch.nn.RMSNorm)):
        model = Transformer(ModelConfig(encoder_layers=1, decoder_layers=1, hidden=8, norm="rms"), method, 20, 0)
        assert all(isinstance(r.norm_out, kind) for r in model.residuals.values())


def test_rms_and_dyt_cost_what_a_newcomer_once_counted_wrong():
    """Pre-LN with DyT at 6L-6L has 32 numbers more than with LayerNorm, an α a norm; with RMSNorm 2,048 less."""
    from stabkit.methods.papers import pre_ln

    count = {
        norm: parameters(pre_ln.method(), ModelConfig(encoder_layers=6, decoder_layers=6, norm=norm), 0)
        for norm in get_args(Norm)
    }
    assert (count["dyt"] - count["layer"], count["rms"] - count["layer"]) == (32, -32 * 64)


def test_a_block_is_a_name_for_settings():
    assert name_of(PLAIN) == "classic"
    llama = ModelConfig(encoder_layers=6, decoder_layers=6, **BLOCKS["llama"])
    assert name_of(llama) == "llama"
    assert name_of(ModelConfig(encoder_layers=6, decoder_layers=6, norm="rms")) == "classic with RMSNorm"
    assert name_of(ModelConfig(encoder_layers=1, decoder_layers=1, **{**BLOCKS["llama"], "qk_norm": True})) == (
        "llama with q/k-norm"
    )


@pytest.mark.parametrize("ffn", [16, 128, 512, 2048])
def test_a_gated_feed_forward_has_as_many_weights_as_a_plain_one(ffn):
    gated = ModelConfig(encoder_layers=1, decoder_layers=1, ffn=ffn, ffn_kind="swiglu")
    assert 3 * inner_width(gated) == pytest.approx(2 * ffn, abs=1.5)


def test_constants_that_were_derived_for_another_block_are_said_to_be():
    assert (
        departs(deepnorm.method().assumes, PLAIN)
        == ""
        == departs(post_ln.method().assumes, ModelConfig(encoder_layers=1, decoder_layers=1, **BLOCKS["llama"]))
    )
    said = departs(deepnorm.method().assumes, ModelConfig(encoder_layers=1, decoder_layers=1, **BLOCKS["llama"]))
    assert said == "its constants are derived for LayerNorm and ReLU, but the block has RMSNorm and SwiGLU"
    said = departs(deepnorm.method().assumes, ModelConfig(encoder_layers=1, decoder_layers=1, norm="dyt"))
    assert said == "its constants are derived for LayerNorm, but the block has DyT"


def test_an_embedding_norm_stands_before_each_stack_and_is_counted():
    def embedding(stack):
        return "norm" if stack == "decoder" else ""

    method = Method(key="own", label="Own", source="here", embedding=embedding)
    config = ModelConfig(encoder_layers=2, decoder_layers=2, hidden=8, ffn=16)
    model = Transformer(config, method, 20, 0)
    assert list(model.begin) == ["decoder"]
    assert sum(p.numel() for p in model.parameters()) == parameters(method, config, 20)
    state = model._embed("decoder", torch.tensor([[1, 4, 5]]))
    np.testing.assert_allclose(state.detach().norm(dim=-1).numpy(), 8**0.5, rtol=1e-4)


def test_a_part_of_one_head_has_one_set_of_weights_for_all_heads():
    def inner(site: Site, place: str):
        return "layer" if place == "value" else ""

    method = Method(key="own", label="Own", source="here", inner=inner)
    config = ModelConfig(encoder_layers=1, decoder_layers=1, hidden=16, ffn=16, heads=4)
    model = Transformer(config, method, 20, 0)
    norms = [r.g.value for s, r in model.residuals.items() if s.kind != "ffn"]
    assert [tuple(norm.weight.shape) for norm in norms] == [(4,)] * 3
    assert sum(p.numel() for p in model.parameters()) == parameters(method, config, 20)
