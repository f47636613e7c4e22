"""Blocks and their parts: against transformers' own Llama, and where a sentence is written word by word."""

from importlib.util import find_spec

import numpy as np
import pytest
import torch

from stabkit.methods.blocks import BLOCKS
from stabkit.methods.papers import pre_ln
from stabkit.model.positions import angles
from stabkit.model.transformer import Transformer
from stabkit.spec import ModelConfig
from tests.conftest import need

TOKENS = torch.tensor([[5, 6, 7, 8, 9, 2, 11], [9, 4, 12, 3, 17, 8, 1]])
NOTHING = torch.zeros(2, 0, dtype=torch.int64)


def llama(layers=3, **changes):
    config = ModelConfig(
        encoder_layers=0, decoder_layers=layers, hidden=32, ffn=48, heads=4, **{**BLOCKS["llama"], **changes}
    )
    return Transformer(config, pre_ln.method(), 20, seed=3).double()


@pytest.mark.libraries
def test_the_llama_block_under_pre_ln_is_transformers_own_with_copied_weights():
    need("libraries", find_spec("transformers") is not None, "transformers")
    from transformers import LlamaConfig, LlamaForCausalLM

    ours = llama(tied=False)
    torch.manual_seed(1)
    with torch.no_grad():
        for parameter in ours.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    theirs = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=20,
            hidden_size=32,
            intermediate_size=32,
            num_hidden_layers=3,
            num_attention_heads=4,
            num_key_value_heads=4,
            rms_norm_eps=1e-5,
            rope_theta=10_000.0,
            attention_bias=False,
            tie_word_embeddings=False,
            attn_implementation="eager",
        )
    ).double()
    rotary = theirs.model.rotary_emb
    rotary.inv_freq = 10_000.0 ** (-torch.arange(0, 8, 2, dtype=torch.float64) / 8)  # theirs is made in float32
    ours.positions.table = angles(1024, 8)  # as ours is rounded
    pairs = [(theirs.lm_head.weight, ours.head), (theirs.model.norm.weight, ours.final["decoder"].weight)]
    with torch.no_grad():
        theirs.model.embed_tokens.weight.copy_(ours.embedding * 32**0.5)
        for layer, block in enumerate(theirs.model.layers, 1):
            attention, forward = (ours.layers[f"decoder_{layer}_{kind}"] for kind in ("self", "ffn"))
            pairs += [(block.input_layernorm.weight, attention.norm_in.weight)]
            pairs += [(block.post_attention_layernorm.weight, forward.norm_in.weight)]
            pairs += [
                (block.self_attn.o_proj.weight, attention.g.out.weight),
                (block.mlp.down_proj.weight, forward.g.down.weight),
            ]
            for name, role in (("q_proj", "query"), ("k_proj", "key"), ("v_proj", "value")):
                getattr(block.self_attn, name).weight.copy_(attention.g.qkv.role(role).reshape(32, 32))
            gate, up = forward.g.up.weight.chunk(2)
            block.mlp.gate_proj.weight.copy_(gate), block.mlp.up_proj.weight.copy_(up)
        for to, weight in pairs:
            to.copy_(weight)
    assert sum(p.numel() for p in theirs.parameters()) == sum(p.numel() for p in ours.parameters())
    mine, reference = ours(NOTHING, TOKENS)[1].transpose(0, 1), theirs(TOKENS).logits
    torch.testing.assert_close(mine, reference, rtol=1e-6, atol=1e-6)  # theirs norms and turns in float32
    for logits in (mine, reference):
        torch.nn.functional.cross_entropy(logits.flatten(0, 1), TOKENS.roll(-1, 1).flatten()).backward()
    for to, weight in pairs:
        torch.testing.assert_close(weight.grad, to.grad, rtol=1e-4, atol=1e-7)
    first = ours.layers["decoder_1_self"].g.qkv.weight.grad.view(4, 3, 8, 32)
    for place, name in enumerate(("q_proj", "k_proj", "v_proj")):
        reference = getattr(theirs.model.layers[0].self_attn, name).weight.grad
        torch.testing.assert_close(first[:, place].reshape(32, 32), reference, rtol=1e-4, atol=1e-7)
    torch.testing.assert_close(
        ours.embedding.grad, theirs.model.embed_tokens.weight.grad * 32**0.5, rtol=1e-4, atol=1e-7
    )


def test_rotary_scores_depend_on_the_distance_alone():
    positions = llama().positions
    q, k = (torch.randn(1, 1, 1, 8, dtype=torch.float64) for _ in range(2))
    positions.table = angles(1024, 8)

    def at(x, place):
        return positions.turned(x.expand(place + 1, -1, -1, -1))[place]

    def score(m, n):
        return float((at(q, m) * at(k, n)).sum())

    assert score(3, 1) == pytest.approx(score(90, 88)) and score(3, 1) != pytest.approx(score(4, 1))
    assert score(0, 0) == pytest.approx(float((q * k).sum()))
    assert torch.equal(positions.added(q[:, 0]), q[:, 0])


@pytest.mark.parametrize("block", BLOCKS)
def test_the_gradient_of_every_parameter_is_that_of_plain_autograd(block):
    """The kernels' gradients through the parts of a block, against finite differences."""
    config = ModelConfig(encoder_layers=1, decoder_layers=1, hidden=8, ffn=12, **{**BLOCKS[block], "qk_norm": True})
    model = Transformer(config, pre_ln.method(), 12, seed=0).double()
    source, target = TOKENS[:1, :3] % 12, TOKENS[1:, :3] % 12

    def loss():
        return model(source, target)[1].square().mean()

    loss().backward()
    generator = np.random.default_rng(0)
    for name, parameter in model.named_parameters():
        at = tuple(int(generator.integers(0, n)) for n in parameter.shape)
        with torch.no_grad():
            value = parameter[at].item()
            sides = []
            for step in (1e-6, -1e-6):
                parameter[at] = value + step
                sides.append(float(loss()))
            parameter[at] = value
        assert float(parameter.grad[at]) == pytest.approx((sides[0] - sides[1]) / 2e-6, rel=1e-4, abs=1e-8), name
