"""A method's factors on rate and ε, against torch's own Adam with a parameter group for each."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import torch

from stabkit.methods import own
from stabkit.methods.papers import pre_ln
from stabkit.model.flat import Flat
from stabkit.model.transformer import Transformer
from stabkit.spec import ModelConfig, RunSpec
from stabkit.tasks.synthetic import Synthetic
from stabkit.training import factors, train
from stabkit.training.optimizers import OPTIMIZERS
from stabkit.training.optimizers.adam import Adam
from stabkit.training.optimizers.base import WHOLE, Group

CONFIG = ModelConfig(encoder_layers=2, decoder_layers=2, hidden=16, ffn=32)
TASK = Synthetic(vocab=200, max_tokens=64)


def by_role_and_depth(site, role):
    return {"value": 0.5, "up": 0.25, "vector": 2.0, "embedding": 3.0, "outer": 7.0}.get(role, 1.0) / site.layer


def with_factors(**given):
    return replace(pre_ln.method(), **given)


def built(method, config=CONFIG):
    model = Transformer(config, method, 100, 0)
    return model, Flat(model, model.parts())


def test_every_number_has_the_factors_of_its_role_and_layer():
    method = with_factors(rate=by_role_and_depth)
    model, flat = built(method)
    groups = factors.groups(method, model, flat)
    rates = torch.full_like(flat.theta, float("nan"))
    for group in groups:
        for part in group.of(rates):
            assert part.isnan().all()  # each once
            part.fill_(group.rate)
    flat.theta.copy_(rates)  # the parameters are views of it
    assert not rates.isnan().any()
    assert model.embedding.unique().tolist() == [3.0]
    for site, residual in model.residuals.items():
        assert {value for p in (residual.norm_in.weight, residual.norm_in.bias) for value in p.tolist()} == {
            2.0 / site.layer
        }
        for module in residual.g.children():
            for role in getattr(module, "roles", ()):
                assert module.role(role).unique().tolist() == [by_role_and_depth(site, role)]
            if getattr(module, "bias", None) is not None and hasattr(module, "roles"):
                assert module.bias.unique().tolist() == [2.0 / site.layer]
    assert model.final["decoder"].weight.unique().tolist() == [7.0 / 2]


def test_an_embedding_and_a_head_of_its_own_are_parts_of_their_own_roles():
    for config, roles in ((CONFIG, {"embedding": 1}), (replace(CONFIG, tied=False), {"embedding": 1, "head": 1})):
        model, flat = built(with_factors(), config)
        found = Counter(part.role for part in factors.roles(model, flat))
        assert {role: found[role] for role in ("embedding", "head") if found[role]} == roles


def test_with_factors_adam_equals_torchs_own_with_a_group_for_each():
    method = with_factors(rate=by_role_and_depth, epsilon=lambda site, role: 100.0 if role == "out" else 1.0)
    model, flat = built(method)
    groups = factors.groups(method, model, flat)
    mine = Adam(flat.theta, flat.grad, 0.9, 0.98, 1e-8, groups)
    parts = [(torch.nn.Parameter(flat.theta[s].clone()), group, s) for group in groups for s in group.parts]
    named = [{"params": [p], "lr": 1e-3 * g.rate, "eps": 1e-8 * g.epsilon} for p, g, _ in parts]
    theirs = torch.optim.Adam(named, betas=(0.9, 0.98), fused=True)
    for seed in range(3):
        flat.grad.copy_(torch.randn(flat.grad.shape, generator=torch.Generator().manual_seed(seed)))
        for parameter, _, part in parts:
            parameter.grad = flat.grad[part].clone()
        mine.step(1e-3)
        theirs.step()
    assert all(torch.equal(flat.theta[part], parameter.detach()) for parameter, _, part in parts)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_every_optimiser_moves_a_group_by_its_factor(name):
    theta, grad = torch.zeros(4, dtype=torch.float64), torch.ones(4, dtype=torch.float64)
    config = RunSpec(method="pre-ln", model=CONFIG).train
    groups = (Group(1.0, 1.0, (slice(0, 2),)), Group(0.25, 1.0, (slice(2, 4),)))
    optimizer = OPTIMIZERS[name].make(config, theta, grad, groups)
    for _ in range(7):
        optimizer.step(1e-2)
    assert theta[0] < 0 and theta[3].item() == pytest.approx(0.25 * theta[0].item(), rel=1e-12)


def test_a_method_without_factors_is_one_group():
    model, flat = built(pre_ln.method())
    assert factors.groups(pre_ln.method(), model, flat) is WHOLE


FILE = """
from collections import Counter
from dataclasses import replace
from stabkit.methods.papers import pre_ln

def slow_values():
    still = lambda s, r: 0.0 if r == "value" else 1.0
    return replace(pre_ln.method(), key="slow-values", label="Slow values", rate=still)
"""


def test_a_run_of_a_method_with_factors_moves_what_they_say():
    text = FILE
    from stabkit.spec import Own, TaskConfig, TrainConfig

    one = Own(file="my.py", name="slow_values", digest=own.digest(text), label="Slow values")
    spec = RunSpec(
        method="own-slow-values",
        own=one,
        model=CONFIG,
        train=TrainConfig(steps=2, max_tokens=64, warmup=0, lr=1e-3),
        task=TaskConfig(vocab=200),
    )
    result = train.run(spec, TASK, texts={one.digest: text})
    start = train.build(spec, TASK, torch.device("cpu"), {one.digest: text})
    for name, p in start.named_parameters():
        moved = result.weights[name] != p.detach().numpy()
        if name.endswith("qkv.weight"):
            rows = moved.reshape(2, 3, 8, 16)
            assert not rows[:, 2].any() and rows[:, :2].any()
    assert np.isfinite(result.records["loss"].values).all()
