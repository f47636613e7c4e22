"""`stabkit audit`: correct models pass, every known defect is named alone, and the module stays as it was."""

from __future__ import annotations

import json
import random
import re
import sys

import numpy as np
import pytest
import torch
from torch import nn

from stabkit import methods
from stabkit.cli import entry
from stabkit.errors import UsageError
from stabkit.model.flat import Flat
from stabkit.model.transformer import Transformer
from stabkit.own import audit as own_audit
from stabkit.own.audit import audit
from stabkit.own.audit.case import Case
from stabkit.spec import ModelConfig
from tests.commands import typed
from tests.own import audit_models as models
from tests.own.audit_models import Fused, HandNorm, Net, RMSNorm, Separate, Torch, deepnorm, xavier

ATTENTIONS = (Separate, Fused, Torch)
N, M = 3, 2
ALPHA = (models.betas(N, M)[0][0], models.betas(N, M)[1][0])


def judged(model, method="deepnorm", n=N, m=M, inputs=None):
    return audit(model, methods.build(*methods.parse(method)), n, m, inputs)


def found(model, method="deepnorm", n=N, m=M):
    """[(topic, what)] of every violation."""
    return [(finding.topic, finding.what) for finding in judged(model, method, n, m).findings]


def ours(method, n=3, m=3, base="xavier_normal", **options):
    config = ModelConfig(encoder_layers=n, decoder_layers=m, base_init=base)
    return Transformer(config, methods.build(method, options), vocab=50, seed=0)


# — no false alarm —


@pytest.mark.parametrize("attention", ATTENTIONS)
@pytest.mark.parametrize("fairseq", [False, True], ids=["xavier", "fairseq"])
def test_a_correct_deepnorm_passes_on_either_base_which_is_said(attention, fairseq):
    done = judged(deepnorm(N, M, attention=attention, fairseq=fairseq))
    assert done.findings == () and done.notes == () and done.depth == "3L-2L"
    assert ("by 1/√2" in done.base) == fairseq


@pytest.mark.parametrize("attention", ATTENTIONS)
@pytest.mark.parametrize(("n", "m"), [(4, 0), (0, 4)])
def test_one_stack_passes(attention, n, m):
    done = judged(deepnorm(n, m, attention=attention), n=n, m=m)
    assert done.findings == () and {row.stack for row in done.rows} == {"encoder" if n else "decoder"}


@pytest.mark.parametrize("norm", [HandNorm, RMSNorm, lambda: nn.RMSNorm(models.WIDTH)])
def test_norms_written_by_hand_and_of_other_kinds_are_norms(norm):
    assert found(deepnorm(3, 3, norm=norm), n=3, m=3) == []
    assert found(xavier(Net(3, 3, norm=norm, pre=(True, True))), "pre-ln", 3, 3) == []


@pytest.mark.parametrize("attention", ATTENTIONS)
def test_plain_pre_ln_and_post_ln_pass(attention):
    assert found(xavier(Net(3, 3, attention=attention, pre=(True, True))), "pre-ln", 3, 3) == []
    assert found(xavier(Net(3, 3, attention=attention)), "post-ln", 3, 3) == []


def test_torchs_own_encoder_layers_pass_when_each_is_drawn_anew():
    done = judged(models.TorchLayers(4), "post-ln", 4, 0)
    assert done.findings == () and "nn.MultiheadAttention" in done.base
    assert found(models.TorchLayers(4, norm_first=True, final=True), "pre-ln", 4, 0) == []


APART = ("residual", "siamesenorm", "gpas", "nanochat", "attention-residuals", "hyper-connections", "mhc")
"""Of wirings that audit does not follow."""
FOLLOWED = [key for key in methods.KEYS if key not in (*APART, "dyt", "derf", "value-residual")]


def test_a_wiring_of_several_streams_is_said_not_to_be_followed():
    for key in APART:
        with pytest.raises(UsageError, match="only chains and DLCL's sums"):
            audit(torch.nn.Linear(2, 2), methods.build(key, {}))
    with pytest.raises(UsageError, match="not DyT or Derf"):
        audit(torch.nn.Linear(2, 2), methods.build("dyt", {}))
    with pytest.raises(UsageError, match="another layer's values"):
        audit(torch.nn.Linear(2, 2), methods.build("value-residual", {}))


@pytest.mark.parametrize(("method", "said"), [("depth-mup", "rate and ε"), ("reordered-norm", "queries")])
def test_what_of_a_recipe_is_not_looked_at_is_said(method, said):
    done = judged(ours(method, 0, 3), method, 0, 3)
    assert done.findings == () and said in done.notes[-1] and "not compared" in done.notes[-1]


@pytest.mark.parametrize("method", FOLLOWED)
def test_our_own_model_of_every_method_passes(method):
    options = {"omega": "closed"} if method == "admin" else {}
    text = typed(method, options)
    assert found(ours(method, **options), text, 3, 3) == []


@pytest.mark.parametrize("method", ["post-ln", "rezero", "t-fixup", "deepnorm"])
def test_our_own_model_on_the_base_of_its_authors_passes(method):
    base = methods.build(method, {}).recipe.base_init
    done = judged(ours(method, base=base), method, 3, 3)
    assert done.findings == () and ("torch's default" in done.base) == (method == "rezero")


@pytest.mark.parametrize("method", FOLLOWED)
def test_our_own_model_of_one_stack_passes(method):
    if methods.build(method, {}).undefined(0, 3):
        with pytest.raises(UsageError, match="one stack"):
            found(ours("post-ln", 0, 3), method, 0, 3)
        return
    options = {"omega": "closed"} if method == "admin" else {}
    assert found(ours(method, 0, 3, **options), typed(method, options), 0, 3) == []


@pytest.mark.parametrize("method", [key for key in FOLLOWED if key != "deepnorm"])
def test_no_other_methods_model_passes_as_deepnorm_nor_deepnorm_as_it(method):
    assert found(ours(method), "deepnorm", 3, 3)
    assert found(ours("deepnorm"), method, 3, 3)


def test_weights_that_are_views_of_one_vector_are_told_apart():
    model = ours("deepnorm")
    expected = judged(model, n=3, m=3)
    Flat(model, model.parts())
    assert judged(model, n=3, m=3).rows == expected.rows and expected.findings == ()


def test_dividing_the_branch_is_multiplying_the_shortcut_where_a_norm_follows():
    class Divided(models.Layer):
        def forward(self, x, memory):
            for branch, norm in zip(self.branches, self.norms, strict=True):
                x = norm(torch.add(x, branch(x, x, False), alpha=1 / self.alpha))
            return x

    model = deepnorm(4, 0)
    for layer in model.stacks[0]:
        layer.__class__ = Divided
    done = judged(model, n=4, m=0)
    assert done.findings == () and done.rows[0].gamma[0] == pytest.approx(8**-0.25)


# — defects, each alone —

DEFECTS = {
    "the encoder's β inverted": (
        lambda a: models.scaled(deepnorm(N, M, attention=a), 0, 1 / 0.87**2),
        "standard deviation",
        "encoder: value, out, up and down in all 3 layers, 1.32 × too large: the gain's constant is inverted",
    ),
    "α on the branch": (
        lambda a: deepnorm(N, M, attention=a, on_branch=True),
        "scale",
        "encoder in all 3 layers; decoder in all 2 layers: the factor is on the branch",
    ),
    "the decoder left in Pre-LN": (
        lambda a: deepnorm(N, M, attention=a, pre=(False, True)),
        "norm placement",
        "decoder in all 2 layers: the norm stands before the branch, not after the sum",
    ),
    "the value matrix unscaled": (
        lambda a: deepnorm(N, M, attention=a, only=("out", "up", "down")),
        "standard deviation",
        "encoder: value in all 3 layers, 1.5",
    ),
    "layers cloned": (
        lambda a: models.cloned(deepnorm(N, M, attention=a)),
        "cloned layers",
        "encoder in all 3 layers; decoder in all 2 layers: layers start identical",
    ),
    "no α": (
        lambda a: deepnorm(N, M, attention=a, alpha=(1.0, 1.0)),
        "scale",
        "there is no scale at all",
    ),
    "α of another depth": (
        lambda a: deepnorm(N, M, attention=a, alpha=tuple(alpha for alpha, _ in models.betas(18, 18))),
        "scale",
        "it is that of 18 layers",
    ),
    "a further norm after each stack": (
        lambda a: deepnorm(N, M, attention=a, final=(True, True)),
        "final norm",
        "encoder and decoder: a further norm stands after the last layer",
    ),
    "biases scaled with the matrices": (
        lambda a: scaled_biases(deepnorm(N, M, attention=a)),
        "bias",
        "torch's default draw, times the gain",
    ),
}


@torch.no_grad()
def flat_normal(model):
    for stack in model.stacks:
        for parameter in stack.parameters():
            if parameter.dim() > 1:
                parameter.normal_(std=0.02)
    return model


@pytest.mark.parametrize(
    ("factor", "said"), [(0, "not scaled at all"), (2, "(2.0|1.9). × too large"), (4, "(4.0|3.9). × too")]
)
def test_without_a_method_deepnorms_constant_names_it_and_beta_is_told_by_its_factor(factor, said):
    """`factor` 0: β forgotten, so that ADMIN, whose scales are free, would be violated in nothing."""
    model = deepnorm(N, M)
    with torch.no_grad():
        for stack, (_, beta) in enumerate(models.betas(N, M)):
            models.scaled(model, stack, factor or 1 / beta)
    found = audit(model)
    assert found.method.key == "deepnorm" and found.findings
    assert all(finding.topic == "standard deviation" and re.search(said, finding.what) for finding in found.findings)


@pytest.mark.parametrize("attention", ATTENTIONS)
def test_one_deviation_for_all_shapes_is_a_base_and_what_is_not_scaled_on_it_is_said_beside(attention):
    base, gains = found(flat_normal(deepnorm(N, M, attention=attention)))
    assert base[0] == "base initialisation" and "N(0, 0.02²) for every shape" in base[1]
    assert (
        gains[0] == "standard deviation" and "value, out, up and down" in gains[1] and "not scaled at all" in gains[1]
    )


@torch.no_grad()
def scaled_biases(model):
    """What a rule that finds `up` and `down` in names does to torch's default biases."""
    torch.manual_seed(0)
    for stack, (_, beta) in zip(model.stacks, models.betas(N, M), strict=True):
        for layer in stack:
            for bias, fan_in in zip(layer.branches[-1].biases(), (models.WIDTH, models.INNER), strict=True):
                bias.uniform_(-(fan_in**-0.5), fan_in**-0.5).mul_(beta)
    return model


@pytest.mark.parametrize("attention", ATTENTIONS)
@pytest.mark.parametrize("defect", DEFECTS)
def test_a_defect_is_named_and_nothing_else_is(defect, attention):
    model, topic, said = DEFECTS[defect]
    violations = found(model(attention))
    assert len(violations) == 1, violations
    assert violations[0][0] == topic and said in violations[0][1]


def test_what_the_recipe_says_what_was_measured_and_what_to_do_stand_beside_a_finding():
    (finding,) = judged(models.scaled(deepnorm(18, 18), 0, 1 / 0.87**2), n=18, m=18).findings
    assert finding.recipe == "gain 0.3526 (DeepNet §3.3)"
    assert finding.measured.startswith("gain 0.465") and finding.remedy == "draw with gain 0.3526"
    assert "stacks.0.17.branches.1.down.weight" in finding.parameters and len(finding.parameters) == 18 * 4


@pytest.mark.parametrize("attention", [Separate, Fused])
def test_torchs_default_initialisation_is_one_finding_biases_included(attention):
    torch.manual_seed(0)
    (finding,) = judged(Net(N, M, attention=attention, alpha=ALPHA)).findings
    assert finding.topic == "default initialisation" and "every matrix" in finding.what and "biases too" in finding.what


def test_of_torchs_attention_by_default_the_value_is_xavier_and_so_not_scaled():
    torch.manual_seed(0)
    default, value = found(Net(N, M, attention=Torch, alpha=ALPHA))
    assert "out, up and down" in default[1] and "value" in value[1] and "not scaled at all" in value[1]


def test_a_matrix_whose_default_happens_to_be_the_recipes_is_counted_with_the_defaults():
    torch.manual_seed(0)
    alphas = tuple(alpha for alpha, _ in models.betas(6, 6))  # the encoder's β is 0.497, W₂'s default 0.5
    (finding,) = judged(Net(6, 6, alpha=alphas), n=6, m=6).findings
    assert finding.topic == "default initialisation"


def test_nn_transformerencoder_copies_its_layer_and_draws_by_default():
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(models.WIDTH, 2, models.INNER, batch_first=True)
    topics = [topic for topic, _ in found(nn.TransformerEncoder(layer, 4), "post-ln", 4, 0)]
    assert topics == ["cloned layers", "default initialisation"]


def test_nn_transformer_has_final_norms_that_post_ln_has_not():
    torch.manual_seed(0)
    model = nn.Transformer(models.WIDTH, 2, 3, 3, models.INNER, batch_first=True)
    assert [topic for topic, _ in found(model, "post-ln", 3, 3)] == ["final norm", "bias"]


def test_layers_that_share_their_weights_are_not_called_copies():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = deepnorm(4, 0)

        def forward(self, tokens):
            x = self.net.embedding(tokens)
            for _ in range(4):
                x = self.net.stacks[0][0](x, None)
            return x

    assert [topic for topic, _ in found(Tied(), n=4, m=0)] == ["shared layers"]


def test_pre_ln_without_its_final_norm():
    violations = found(xavier(Net(3, 3, pre=(True, True), final=(True, False))), "pre-ln", 3, 3)
    assert violations == [("final norm", "decoder: no norm stands after the last layer")]


def test_one_wrong_matrix_is_named_with_its_layer():
    model = deepnorm(N, M)
    with torch.no_grad():
        model.stacks[1][1].branches[1].v.weight.mul_(1.5)
    ((topic, what),) = found(model)
    assert topic == "standard deviation" and what.startswith("decoder: cross-attention's value in layer 2, 1.5")


def test_a_norms_output_that_is_scaled_for_shortcut_and_branch_alike():
    class Streamed(models.Layer):
        def forward(self, x, memory):
            for branch, norm in zip(self.branches, self.norms, strict=True):
                x = x * self.alpha
                x = norm(x + branch(x, x, False))
            return x

    model = deepnorm(4, 0)
    for layer in model.stacks[0]:
        layer.__class__ = Streamed
    ((topic, what),) = found(model, n=4, m=0)
    assert topic == "stream" and "the norm's output is multiplied by 1.682" in what


def test_norms_that_were_drawn_too():
    model = deepnorm(3, 3)
    nn.init.normal_(model.stacks[0][0].norms[0].weight)
    (finding,) = judged(model, n=3, m=3).findings
    assert finding.topic == "norm weights" and finding.parameters == ("stacks.0.0.norms.0.weight",)


def test_an_admin_that_was_not_profiled_and_one_that_was():
    model = ours("admin")
    assert [what for _, what in found(model, "admin", 3, 3)] == [
        "encoder and decoder in all 3 layers: every ω is 1: nothing was profiled"
    ]
    for site, residual in model.residuals.items():
        residual.set_omega(site.index**0.5)
    assert found(model, "admin", 3, 3) == []


def test_t_fixups_embedding_is_part_of_its_recipe():
    model = ours("t-fixup")
    nn.init.normal_(model.embedding, std=3.0)
    assert [topic for topic, _ in found(model, "t-fixup", 3, 3)] == ["embedding"]


# — two at once —


def test_two_defects_are_two_findings():
    model = models.scaled(deepnorm(N, M, attention=Fused, on_branch=True), 0, 1 / 0.87**2)
    (first, on_branch), (second, inverted) = found(model)
    assert (first, second) == ("scale", "standard deviation")
    assert "on the branch" in on_branch and inverted.startswith("encoder: value, out, up and down")


def test_cloned_layers_with_an_unscaled_value():
    model = models.cloned(deepnorm(N, M, attention=Torch, only=("out", "up", "down")))
    (first, _), (second, value) = found(model)
    assert (first, second) == ("cloned layers", "standard deviation") and "not scaled at all" in value


def test_a_default_draw_in_pre_ln_with_alpha():
    torch.manual_seed(0)
    topics = [topic for topic, _ in found(Net(N, M, alpha=ALPHA, pre=(False, True)))]
    assert topics == ["norm placement", "default initialisation"]


# — what is measured —


@pytest.mark.parametrize("role", ["query", "key", "value"])
@pytest.mark.parametrize("build", [lambda: ours("deepnorm"), lambda: deepnorm(3, 3, attention=Fused)])
def test_query_key_and_value_are_told_apart_in_a_fused_matrix(build, role):
    model = build()
    with torch.no_grad():
        for layer in range(3):
            if isinstance(model, Transformer):
                model.layers[f"encoder_{layer + 1}_self"].g.qkv.role(role).mul_(3.0)
            else:
                model.stacks[0][layer].branches[0].weights()[role].mul_(3.0)
    ((topic, what),) = found(model, n=3, m=3)
    assert topic == "standard deviation" and what.startswith(f"encoder: {role} in all 3 layers")


def test_deviations_are_those_of_the_parameters_themselves():
    model = deepnorm(N, M)
    (row,) = [row for row in judged(model).rows if (row.stack, row.kind) == ("encoder", "self")]
    beta, base = models.betas(N, M)[0][1], models.WIDTH**-0.5
    stds = [float(layer.branches[0].v.weight.detach().std(correction=0)) / (beta * base) for layer in model.stacks[0]]
    assert row.deviations["value"] == pytest.approx((min(stds), max(stds)), rel=1e-5)
    assert row.omega == pytest.approx([ALPHA[0]] * N) and row.gamma == (1.0,) * N and row.norm == "after the sum"


def test_matrices_outside_of_the_sublayers_are_measured_too():
    model = deepnorm(3, 3)
    assert [(name, shape) for name, shape, _ in judged(model, n=3, m=3).outside] == [("embedding.weight", (50, 64))]


class Convolutions(nn.Module):
    """A feed-forward as kernels of one position, or of three."""

    def __init__(self, size):
        super().__init__()
        self.up = nn.Conv1d(models.WIDTH, models.INNER, size, padding=size // 2)
        self.down = nn.Conv1d(models.INNER, models.WIDTH, 1)

    def forward(self, x, memory, causal):
        return self.down(self.up(x.transpose(1, 2)).relu()).transpose(1, 2)

    def weights(self):
        return {"up": self.up.weight, "down": self.down.weight}

    def biases(self):
        return [self.up.bias, self.down.bias]


@pytest.mark.parametrize(
    ("size", "notes"), [(1, ["no positions reach"]), (3, ["used by convolution", "read: 3 self; not read"])]
)
def test_a_convolution_over_one_position_is_a_matrix_and_another_is_said_not_to_be(size, notes):
    model = Net(3, 0, alpha=(models.betas(3, 0)[0][0],) * 2)
    for layer in model.stacks[0]:
        layer.branches[-1] = Convolutions(size)
    done = judged(xavier(model, (models.betas(3, 0)[0][1], 1.0)), n=3, m=0)
    assert not done.findings and done.undecided == (size > 1)
    assert len(done.notes) == len(notes) and all(text in note for text, note in zip(notes, done.notes, strict=True))


@pytest.mark.parametrize("around", [torch.inference_mode(), torch.autocast("cpu", dtype=torch.bfloat16)])
def test_a_model_that_sets_a_mode_of_its_own_is_read_the_same(around):
    class Within(Net):
        def forward(self, source, target):
            with around:
                return super().forward(source, target)

    model = deepnorm(3, 2, attention=Torch)
    model.__class__ = Within
    assert found(model) == []


def test_a_model_in_half_precision_is_read():
    assert found(deepnorm(3, 2).bfloat16()) == []


# — the module stays as it was —


class Restless(nn.Module):
    """Counts, caches and draws in its forward pass, some of it in training mode."""

    def __init__(self):
        super().__init__()
        self.net = deepnorm(3, 3)
        self.register_buffer("calls", torch.zeros(()))
        self.register_buffer("cache", torch.zeros(4, 6))

    def forward(self, source, target):
        self.calls += 1
        self.cache[:2] = torch.rand(2, 6)
        with torch.no_grad():
            self.net.embedding.weight.mul_(1.5)
        random.random(), np.random.rand()
        return self.net(source, target)


def test_weights_buffers_modes_hooks_and_random_states_stay():
    model = Restless().train()
    model.net.stacks[0][1].eval()
    seen = []
    model.net.register_forward_hook(lambda *_: seen.append(1))
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    modes = [part.training for part in model.modules()]
    states = torch.get_rng_state(), random.getstate(), np.random.get_state()[1].copy()
    fast = torch.backends.mha.get_fastpath_enabled()
    assert judged(model, n=3, m=3).findings == () and seen
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())
    assert modes == [part.training for part in model.modules()]
    assert torch.equal(torch.get_rng_state(), states[0]) and random.getstate() == states[1]
    assert (np.random.get_state()[1] == states[2]).all() and torch.backends.mha.get_fastpath_enabled() == fast
    assert len(model.net._forward_hooks) == 1 and all(p.grad is None for p in model.parameters())


def test_a_module_that_raises_is_given_back_too():
    class Broken(Restless):
        def forward(self, source, target):
            super().forward(source, target)
            raise KeyError("later")

    model = Broken().train()
    with pytest.raises(UsageError, match="KeyError: 'later'"):
        judged(model, n=3, m=3)
    assert model.training and not model.calls and not model.cache.any()


# — inputs —


class Named(nn.Module):
    """Takes nothing that could be guessed."""

    def __init__(self):
        super().__init__()
        self.net = deepnorm(3, 3)

    def forward(self, *, batch):
        return self.net(batch["source"], batch["target"])


def test_inputs_of_ones_own_are_a_tuple_or_a_dict():
    tokens = torch.arange(12).view(2, 6)
    assert judged(deepnorm(3, 3), n=3, m=3, inputs=(tokens, tokens[:, :4])).findings == ()
    assert judged(Named(), n=3, m=3, inputs={"batch": {"source": tokens, "target": tokens}}).findings == ()
    with pytest.raises(UsageError, match=r"return \(model, inputs\)"):
        judged(Named(), n=3, m=3)
    with pytest.raises(UsageError, match="the model raised"):
        judged(Named(), n=3, m=3, inputs=(tokens,))


def test_numbers_are_tried_where_there_is_no_embedding_and_what_worked_is_said():
    layers = nn.Sequential(*models.TorchLayers(3).layers)
    assert judged(layers, "post-ln", 3, 0).ran == "numbers (4, 6, 64)"
    assert judged(models.TorchLayers(3), "post-ln", 3, 0).ran == "integers (4, 6)"


# — hostile input —


def test_a_wrong_depth_is_a_finding_and_the_rest_is_compared_with_what_is_there():
    ((topic, what),) = found(deepnorm(N, M), n=6)
    assert topic == "depth" and what == "the model has 3L-2L, not 6L-2L"


def test_numbers_that_are_not_finite_are_a_finding():
    model = deepnorm(3, 3)
    nn.init.constant_(model.stacks[0][1].branches[1].up.weight, float("nan"))
    ((topic, what),) = found(model, n=3, m=3)
    assert topic == "not finite" and what.startswith("parameter stacks.0.1.branches.1.up.weight has")


class Headed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net, self.head = deepnorm(3, 3), nn.Linear(50, 7)

    def forward(self, source, target):
        return self.head(self.net(source, target))


def test_numbers_that_are_not_finite_outside_of_all_sub_layers_are_a_finding_too():
    model = Headed()
    assert found(model, n=3, m=3) == []
    nn.init.constant_(model.head.weight, float("nan"))
    ((topic, what),) = found(model, n=3, m=3)
    assert topic == "not finite" and what.startswith("parameter head.weight has 350 of 350 numbers")


def lazy():
    return nn.Sequential(nn.LazyLinear(8), nn.Linear(8, 8))


def meta():
    with torch.device("meta"):
        return Net(2, 2)


@pytest.mark.parametrize(
    ("build", "said"),
    [
        (lambda: nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8)), "no residual sub-layer"),
        (nn.Identity, "contain no matrix"),
        (lambda: nn.LayerNorm(8), "contain no matrix"),
        (lazy, "not initialised yet"),
        (meta, "meta device"),
        (lambda: deepnorm(3, 0), "no cross-attention"),
    ],
)
def test_what_cannot_be_audited_is_refused_with_the_reason(build, said):
    with pytest.raises(UsageError, match=said):
        judged(build(), n=3, m=3)


def test_an_encoder_decoder_asked_for_as_one_stack_is_refused():
    with pytest.raises(UsageError, match="encoder-decoder"):
        judged(deepnorm(3, 3), n=3, m=0)


def test_a_branch_that_is_no_attention_nor_feed_forward_is_said():
    class Linears(nn.Module):
        def __init__(self):
            super().__init__()
            self.maps = nn.ModuleList(nn.Linear(16, 16) for _ in range(3))

        def forward(self, x):
            for f in self.maps:
                x = x + f(x)
            return x

    done = judged(Linears(), n=3, m=0)
    assert done.undecided and "not read: 100 % of the numbers" in done.notes[0]


def test_matrices_of_three_axes_that_no_router_weighs_are_said_not_to_be_read():
    class Heads(Separate):
        def __init__(self):
            super().__init__()
            self.each = nn.Parameter(torch.randn(models.HEADS, models.WIDTH // models.HEADS, models.WIDTH))

        def forward(self, x, memory, causal):
            heads = self.v(x).unflatten(-1, (models.HEADS, -1))
            return torch.einsum("bthe,hed->bthd", heads, self.each).sum(2)

    done = judged(xavier(Net(3, 0, attention=Heads)), "post-ln", 3, 0)
    assert done.coverage.read == {"ffn": 3} and "not read: 56 % of the numbers" in done.notes[0]
    assert not done.findings


# — the command —

MINE = """
import torch
from torch import nn
from tests.own.audit_models import *
def good(): return deepnorm(3, 2)
def with_inputs(): return deepnorm(3, 2), (torch.ones(2, 3).long(), torch.ones(2, 4).long())
def encoder(): return deepnorm(3, 0)
def bad(): return deepnorm(3, 2, on_branch=True)
def none(): return None
def broken(): raise RuntimeError("no\\nweights")
def text(): return good(), "tokens"
def bad_loss(): return good(), lambda model: {}["label"]
NUMBER = 3
def plain(): return nn.Linear(4, 4)
"""


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """stabkit audit, in this process: (exit code, stdout, stderr)."""
    (tmp_path / "audited.py").write_text(MINE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "audited", raising=False)

    def call(*args):
        monkeypatch.setattr(sys, "argv", ["stabkit", "audit", *args])
        with pytest.raises(SystemExit) as ended:
            entry.main()
        return ended.value.code or 0, *capsys.readouterr()

    return call


def test_the_command_passes_a_correct_model(run):
    for name, arch in (("good", ()), ("with_inputs", ()), ("encoder", ("--arch", "encoder-only"))):
        depths = "3" if arch else "3x2"
        code, out, err = run(f"audited:{name}", "--method", "deepnorm", "--depths", depths, *arch)
        assert (code, err) == (0, "")
        assert "the model follows DeepNorm's recipe" in out and "after the sum" in out


def test_the_command_ends_with_6_when_the_recipe_is_violated(run):
    code, out, err = run("audited:bad", "--method", "deepnorm", "--depths", "3x2")
    assert code == 6 and err == "error: DeepNorm's recipe is violated in 1 point\n"
    assert "1. encoder in all 3 layers; decoder in all 2 layers: the factor is on the" in out
    assert f"recipe: {models.betas(3, 2)[0][0]:.5g}·x + f(x) in the encoder" in out


def test_json_is_one_document(run):
    code, out, _ = run("audited:bad", "--method", "deepnorm", "--depths", "3x2", "--json")
    body = json.loads(out)
    assert code == 6 and body["schema"] == "stabkit/2" and body["depth"] == "3L-2L"
    assert [violation["topic"] for violation in body["violations"]] == ["scale"]
    assert body["found"][0]["gamma"] == pytest.approx([models.betas(3, 2)[0][0]] * 3)


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("audited:none", "--depths", "3"), "must return model, (model, loss)"),
        (("audited:broken", "--depths", "3"), "raised RuntimeError: no weights"),
        (("audited:text", "--depths", "3"), "must be a tuple or a dict"),
        (("audited:plain", "--depths", "3"), "no residual sub-layer"),
        (("audited:bad_loss", "--depths", "3"), "its loss raised KeyError"),
        (("audited:NUMBER", "--depths", "3"), "is not a function"),
        (("audited:missing", "--depths", "3"), "has no 'missing'"),
        (("nowhere:good", "--depths", "3"), "no module 'nowhere'"),
        (("audited", "--depths", "3"), "is package.module:function"),
        (("audited:good", "--depths", "3,6"), "one depth"),
        (("audited:good", "--depths", "3x2", "--arch", "encoder"), "did you mean"),
        (("audited:good", "--depths", "3x2", "--arch", "decoder-only"), "one stack has one depth"),
        (("audited:good", "--depths", "3", "--arch", "decoder-only"), "--arch encoder-decoder"),
    ],
)
def test_bad_input_is_one_clear_line(run, args, said):
    code, out, err = run(*args, "--method", "deepnorm")
    assert code == 2 and said in err and len(err.strip().splitlines()) == 1 and not out


def test_an_unknown_method_gets_its_nearest(run):
    code, _, err = run("audited:good", "--method", "deepnrom", "--depths", "3")
    assert code == 2 and "did you mean 'deepnorm'?" in err


# — without a method or a depth —


@pytest.mark.slow
@pytest.mark.parametrize("method", ["post-ln", "pre-ln", "deepnorm", "sub-ln", "rezero", "normformer"])
@pytest.mark.parametrize(("n", "m"), [(3, 2), (0, 4)])
def test_depth_and_method_are_found(method, n, m):
    done = audit(ours(method, n, m))
    assert done.method.key == method and done.findings == () and done.depth == (f"{n}L-{m}L" if n else f"{m}L")
    assert done.notes[0].startswith("no --method was given")


def test_the_recipe_that_fits_best_is_judged_where_none_fits():
    done = audit(models.TorchLayers(4, norm_first=True, final=True), None)
    assert done.method.key == "pre-ln" and done.depth == "4L"
    assert audit(models.TorchLayers(3)).method.key == "post-ln"


# — what was found in the wild —


@pytest.mark.parametrize("stacks", [(4, 0), (3, 3)])
def test_gains_on_top_of_torchs_default_are_one_slip_and_not_one_a_role(stacks):
    n, m = stacks
    net = deepnorm(n, m)
    with torch.no_grad():
        for reading in Case(methods.build("deepnorm", {}), own_audit.recognised(net, (n, m), None).stacks).readings:
            gain = methods.build("deepnorm", {}).gain(reading.site, reading.part.role)
            bound = reading.shape[0] ** -0.5
            reading.part.weight.copy_(gain * torch.empty(reading.shape).uniform_(-bound, bound))
    done = judged(net, n=n, m=m)
    (finding,) = done.findings
    assert finding.topic == "default initialisation" and "then multiplied by the gain" in finding.what
    assert "nn.Linear" in done.base
    (low, high) = next(row.deviations["value"] for row in done.rows if row.kind == "self")
    assert 0.55 < low <= high < 0.6, "1/√3 of Xavier's, on the paper's base"


def test_the_stream_of_each_stack_grows_by_its_own_factor():
    net = xavier(Net(3, 3, pre=(True, True), alpha=(2.0, 3.0)))
    (finding,) = [f for f in judged(net, n=3, m=3).findings if f.topic == "norm placement"]
    assert "64 in the encoder, 2e+04 in the decoder" in finding.what


def test_biases_next_to_nothing_are_no_violation():
    net = deepnorm(3, 3)
    with torch.no_grad():
        for name, parameter in net.named_parameters():
            if name.endswith("bias") and "norm" not in name and "n_" not in name and parameter.dim() == 1:
                if not parameter.any():
                    parameter.normal_(std=1e-6)
    assert [f for f in judged(net, n=3, m=3).findings if f.topic == "bias"] == []


def test_options_apart_by_commas_are_told_of_colons():
    with pytest.raises(UsageError, match="separate options with colons"):
        methods.build(*methods.parse("normformer:heads=fairseq,res_scale=yes"))
