"""Optimisers against torch's own and against the formulas of their papers; learning rates."""

import math

import pytest
import torch

from stabkit.methods import DEFAULTS
from stabkit.model.branch import Linear
from stabkit.results.schedule import rate, total
from stabkit.spec import ModelConfig, RunSpec, TaskConfig, TrainConfig
from stabkit.tasks.synthetic import Synthetic
from stabkit.training import factors, train
from stabkit.training.optimizers import OPTIMIZERS, muon
from stabkit.training.optimizers.adam import Adam
from stabkit.training.optimizers.base import WHOLE, Group
from stabkit.training.optimizers.lion import Lion
from stabkit.training.optimizers.muon import Muon, orthogonal
from stabkit.training.optimizers.radam import RAdam, rectification
from stabkit.training.optimizers.sgd import SGD

BETAS, EPS = (0.9, 0.98), 1e-8


def gradients(updates, size=200):
    generator = torch.Generator().manual_seed(1)
    return [torch.randn(size, generator=generator, dtype=torch.float64) for _ in range(updates)]


def walk(make, updates, lr=1e-3):
    """θ after every update with the same gradients."""
    theta = torch.linspace(-1, 1, 200, dtype=torch.float64)
    grad = torch.zeros_like(theta)
    optimizer, path = make(theta, grad), [theta.clone()]
    for each in gradients(updates):
        grad.copy_(each)
        optimizer.step(lr)
        path.append(theta.clone())
    return path


def test_adam_equals_torchs_own_to_the_bit():
    torch.manual_seed(0)
    ours, theirs = torch.randn(1000), torch.nn.Parameter(torch.empty(1000))
    theirs.data.copy_(ours)
    grad = torch.zeros(1000)
    theirs.grad = torch.zeros(1000)
    mine, reference = Adam(ours, grad, 0.9, 0.98, 1e-8), torch.optim.Adam([theirs], betas=(0.9, 0.98), fused=True)
    for update in range(1, 6):
        grad.copy_(torch.randn(1000))
        theirs.grad.copy_(grad)
        reference.param_groups[0]["lr"] = update * 1e-3
        reference.step()
        mine.step(update * 1e-3)
    assert torch.equal(ours, theirs.data)


def test_sgd_is_theta_minus_the_rate_times_the_gradient():
    path = walk(SGD, 3, lr=0.25)
    for before, after, grad in zip(path, path[1:], gradients(3), strict=False):
        torch.testing.assert_close(after, before - 0.25 * grad)
    assert SGD(torch.zeros(1), torch.zeros(1)).state() == {}


def test_sgd_with_momentum_equals_torchs_own():
    theirs = torch.nn.Parameter(torch.linspace(-1, 1, 200, dtype=torch.float64))
    reference = torch.optim.SGD([theirs], lr=1e-2, momentum=0.9, foreach=False)
    path = walk(lambda theta, grad: SGD(theta, grad, momentum=0.9), 20, lr=1e-2)
    for after, grad in zip(path[1:], gradients(20), strict=True):
        theirs.grad = grad
        reference.step()
        torch.testing.assert_close(after, theirs.data, rtol=1e-12, atol=0.0)


def test_lion_follows_its_paper_entry_by_entry():
    """Chen et al. 2023, Algorithm 2, with β₁ = 0.9, β₂ = 0.99 and λ on half of the entries."""
    decaying = (Group(parts=(slice(0, 100),), decays=True), Group(parts=(slice(100, 200),)))
    path = walk(lambda theta, grad: Lion(theta, grad, decaying, decay=0.5), 12, lr=1e-2)
    for i in (0, 57, 99, 100, 199):
        theta, m = path[0][i].item(), 0.0
        for after, each in zip(path[1:], gradients(12), strict=True):
            g = each[i].item()
            c = 0.9 * m + 0.1 * g
            theta -= 1e-2 * (math.copysign(1.0, c) + (0.5 * theta if i < 100 else 0.0))
            m = 0.99 * m + 0.01 * g
            assert after[i].item() == pytest.approx(theta, rel=1e-12)


SMALL = ModelConfig(encoder_layers=6, decoder_layers=6, hidden=16, ffn=40, heads=2)
TASK = Synthetic(vocab=200, max_tokens=64)
UPDATES = 8


def spec_of(optimizer, **given):
    config = TrainConfig(
        optimizer=optimizer, steps=UPDATES, max_tokens=64, warmup=0, lr=3e-3, weight_decay=0.1, momentum=0.95
    )
    return RunSpec(method="pre-ln", model=SMALL, train=config, task=TaskConfig(vocab=200), **given)


def by_torchs_own(spec, made):
    """The weights of a run of 6L-6L whose updates are made by optimisers of torch, which `made` returns for the
    matrices of sub-layers, each a parameter by itself, and for everything else."""
    model = train.build(spec, TASK, torch.device("cpu"))
    roles = [(m, role) for m in model.modules() if isinstance(m, Linear) for role in m.roles]
    packed = {id(m.weight) for m, _ in roles}
    rest = [p for p in dict.fromkeys(model.parameters()) if id(p) not in packed]

    def apart(linear, weights, role):
        parts = weights.view(linear.heads, len(linear.roles), linear.size, -1)[:, linear.roles.index(role)]
        return parts.reshape(linear.heads * linear.size, -1).clone()

    matrices = [torch.nn.Parameter(apart(m, m.weight.detach(), role)) for m, role in roles]
    optimizers = made(matrices, rest)
    for step in range(UPDATES):
        model.train()
        model.zero_grad()
        train.forward(model, TASK.train(spec.seed, step), spec.train.label_smoothing).loss.backward()
        for parameter, (linear, role) in zip(matrices, roles, strict=True):
            parameter.grad = apart(linear, linear.weight.grad, role)
        for optimizer in optimizers:
            optimizer.step()
        with torch.no_grad():
            for parameter, (linear, role) in zip(matrices, roles, strict=True):
                linear.role(role).copy_(parameter.view(linear.heads, linear.size, -1))
    return model.arrays()


def alike(mine, theirs, rtol):
    assert set(mine) == set(theirs)
    for name, array in mine.items():
        torch.testing.assert_close(torch.tensor(array), torch.tensor(theirs[name]), rtol=rtol, atol=rtol)


def test_adamw_equals_torchs_own_over_a_run_and_decays_maps_alone():
    spec = spec_of("adamw", dtype="float64")
    common = {"lr": 3e-3, "betas": (0.9, 0.98), "eps": 1e-8, "fused": True}

    def made(matrices, rest):
        yielded = torch.optim.AdamW(matrices, weight_decay=0.1, **common)
        return [yielded, torch.optim.AdamW(rest, weight_decay=0.0, **common)]

    alike(train.run(spec, TASK).weights, by_torchs_own(spec, made), 1e-12)


@pytest.mark.parametrize(
    ("name", "adjust", "share"), [("muon", "match_rms_adamw", 1), ("muon-original", "original", 0.015)]
)
def test_muon_equals_torchs_own_over_a_run(name, adjust, share, monkeypatch):
    """torch's rounds to bfloat16 before its five steps; here neither does."""
    spec = spec_of(name, dtype="float64")

    def made(matrices, rest):
        return [
            torch.optim.Muon(matrices, lr=3e-3, weight_decay=0.1, momentum=0.95, adjust_lr_fn=adjust),
            torch.optim.AdamW(rest, lr=3e-3 * share, betas=(0.9, 0.98), weight_decay=0.0, fused=True),
        ]

    monkeypatch.setattr(torch.Tensor, "bfloat16", torch.Tensor.clone)
    alike(train.run(spec, TASK).weights, by_torchs_own(spec, made), 1e-9)


def test_muons_steps_are_torchs_to_the_rounding_of_bfloat16():
    from torch.optim._muon import _zeropower_via_newtonschulz as torchs

    torch.manual_seed(0)
    for shape in ((16, 16), (40, 16), (16, 40)):
        matrix = torch.randn(shape)
        theirs = torchs(matrix, muon.COEFFICIENTS, muon.STEPS, muon.SMALLEST).float()
        assert (orthogonal(matrix[None])[0] - theirs).abs().max() < 0.05


def test_an_orthogonal_matrix_has_singular_values_about_one():
    """Where none is small beside their norm; and one of zeros stays."""
    torch.manual_seed(0)
    left, right = (torch.linalg.qr(torch.randn(4, 16, 16))[0] for _ in range(2))
    found = torch.linalg.svdvals(orthogonal(left @ torch.diag(torch.linspace(0.1, 1, 16)) @ right))
    assert 0.65 < found.min() and found.max() < 1.25
    assert orthogonal(torch.zeros(1, 4, 4)).abs().max() == 0


def test_what_decays_and_what_is_a_matrix_are_the_maps_of_sub_layers():
    spec = spec_of("muon")
    only = train.begun(spec, TASK, torch.device("cpu"), {}, "python")
    groups = factors.groups(only.model.method, only.model, only.flat, "matrices")
    assert {group.shape for group in groups} == {None, (16, 16), (40, 16), (16, 40)}
    assert all(group.decays == (group.shape is not None) for group in groups)
    counted = sum(part.stop - part.start for group in groups for part in group.parts)
    assert counted == only.flat.theta.numel()
    weights = {id(p): p for m in only.model.modules() if isinstance(m, Linear) for p in [m.weight]}
    mapped = sum(part.stop - part.start for group in groups if group.shape for part in group.parts)
    assert mapped == sum(p.numel() for p in weights.values())
    assert isinstance(only.optimizer, Muon) and len(only.optimizer.matrices) == 3


def test_radam_equals_torchs_own_over_twenty_updates():
    theirs = torch.nn.Parameter(torch.linspace(-1, 1, 200, dtype=torch.float64))
    reference = torch.optim.RAdam([theirs], lr=1e-3, betas=BETAS, eps=EPS, foreach=False)
    mine = walk(lambda theta, grad: RAdam(theta, grad, *BETAS, EPS, early=True), 20)
    for after, grad in zip(mine[1:], gradients(20), strict=True):
        theirs.grad = grad
        reference.step()
        torch.testing.assert_close(after, theirs.data, rtol=1e-6, atol=0.0)


def slow_radam(updates, lr=1e-3):
    """Liu et al. 2020, Algorithm 2, entry by entry in Python; nothing while ρ_t is below 5, as released."""
    (beta1, beta2), grads = BETAS, [each.tolist() for each in gradients(updates)]
    limit = 2 / (1 - beta2) - 1
    path = [torch.linspace(-1, 1, 200, dtype=torch.float64).tolist()]
    for t in range(1, updates + 1):
        rho = limit - 2 * t * beta2**t / (1 - beta2**t)
        new = []
        for i, theta in enumerate(path[-1]):
            m = sum((1 - beta1) * beta1 ** (t - s) * grads[s - 1][i] for s in range(1, t + 1)) / (1 - beta1**t)
            v = sum((1 - beta2) * beta2 ** (t - s) * grads[s - 1][i] ** 2 for s in range(1, t + 1))
            if rho >= 5:
                r = math.sqrt((rho - 4) * (rho - 2) * limit / ((limit - 4) * (limit - 2) * rho))
                theta -= lr * r * m * math.sqrt(1 - beta2**t) / (math.sqrt(v) + EPS)
            new.append(theta)
        path.append(new)
    return path


def test_the_radam_of_the_released_code_rests_for_five_updates_and_then_follows_the_paper():
    mine = walk(lambda theta, grad: RAdam(theta, grad, *BETAS, EPS, early=False), 12)
    for after in mine[1:6]:
        assert torch.equal(after, mine[0])
    assert not torch.equal(mine[6], mine[5])
    for after, slow in zip(mine, slow_radam(12), strict=True):
        torch.testing.assert_close(after, torch.tensor(slow, dtype=torch.float64), rtol=1e-9, atol=1e-12)


def test_torchs_radam_begins_with_momentum_at_the_full_rate():
    path = walk(lambda theta, grad: RAdam(theta, grad, *BETAS, EPS, early=True), 2)
    first, second = gradients(2)
    torch.testing.assert_close(path[1], path[0] - 1e-3 * first)
    torch.testing.assert_close(path[2], path[1] - 1e-3 * (0.09 * first + 0.1 * second) / (1 - 0.81))


def test_the_variance_is_rectified_from_the_sixth_update_on():
    """The published numbers for β₂ = 0.98: ρ_∞ = 99, ρ_5 = 4.92, r_6 = 0.1155, r_7 = 0.147."""
    assert [rectification(t, 0.98) for t in range(1, 6)] == [0.0] * 5
    assert [rectification(t, 0.98) for t in (6, 7)] == pytest.approx([0.1155, 0.147], abs=5e-4)
    assert 99 - 2 * 5 * 0.98**5 / (1 - 0.98**5) == pytest.approx(4.92, abs=5e-3)
    later = [rectification(t, 0.98) for t in range(6, 600)]
    assert later == sorted(later) and later[-1] == pytest.approx(1.0, abs=1e-3)


def test_every_name_makes_its_optimiser_with_the_configurations_constants():
    config = TrainConfig(adam_beta1=0.8, adam_beta2=0.95, adam_eps=1e-4, weight_decay=0.3, momentum=0.7)
    made = {name: row.make(config, torch.zeros(3), torch.ones(3), WHOLE) for name, row in OPTIMIZERS.items()}
    kinds = {"adam": Adam, "adamw": Adam, "muon": Muon, "muon-original": Muon, "lion": Lion, "sgd": SGD}
    kinds |= {"radam": RAdam, "radam-torch": RAdam}
    assert {name: type(one) for name, one in made.items()} == kinds
    assert (made["radam"].early, made["radam-torch"].early) == (False, True)
    assert (made["adam"].decay, made["adamw"].decay, made["lion"].decay) == (0.0, 0.3, 0.3)
    assert made["sgd"].momentum == made["muon"].config.momentum == 0.7
    for name in ("adam", "adamw", "radam", "radam-torch"):
        assert (made[name].beta1, made[name].beta2, made[name].eps) == (0.8, 0.95, 1e-4)
    assert {method.recipe.optimizer for method in DEFAULTS if method.recipe} <= set(OPTIMIZERS)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_what_an_optimiser_remembers_written_into_another_continues_it(name):
    config = TrainConfig(weight_decay=0.1, momentum=0.9)
    groups = (Group(parts=(slice(0, 20), slice(30, 40)), decays=True, shape=(3, 5)), Group(parts=(slice(20, 30),)))
    theta, grad = torch.linspace(-1, 1, 50), torch.zeros(50)
    first = OPTIMIZERS[name].make(config, theta, grad, groups)
    for seed in range(7):
        grad.copy_(torch.randn(50, generator=torch.Generator().manual_seed(seed)))
        first.step(1e-2)
    other = theta.clone()
    second = OPTIMIZERS[name].make(config, other, grad, groups)
    for key, value in second.state().items():
        value.copy_(first.state()[key])
    for seed in (7, 8):
        grad.copy_(torch.randn(50, generator=torch.Generator().manual_seed(seed)))
        first.step(1e-2)
        second.step(1e-2)
    assert torch.equal(theta, other)


def test_warm_up_is_linear_then_inverse_square_root():
    assert [rate(t, 5e-4, 4000) for t in (1, 2000, 4000, 16000)] == pytest.approx([1.25e-7, 2.5e-4, 5e-4, 2.5e-4])


def test_no_warm_up_is_a_constant_rate():
    assert {rate(t, 5e-4, 0) for t in (1, 100, 10_000)} == {5e-4}


def test_a_held_rate_decays_with_the_inverse_square_root_afterwards():
    assert {rate(t, 5e-4, 0, hold=4000) for t in (1, 100, 4000)} == {5e-4}
    assert [rate(t, 5e-4, 0, hold=4000) for t in (4001, 16_000, 36_000)] == pytest.approx(
        [5e-4 * math.sqrt(4000 / 4001), 2.5e-4, 5e-4 / 3]
    )
    assert [rate(t, 1.0, 10, hold=20) for t in (5, 10, 40)] == [rate(t, 1.0, 10) for t in (5, 10, 40)] == [0.5, 1, 0.5]


def test_the_total_is_the_sum_of_the_rates_of_the_first_updates():
    for config in (
        TrainConfig(lr=1e-3, warmup=0),
        TrainConfig(lr=1e-3, warmup=5),
        TrainConfig(lr=1e-3, warmup=0, hold=7),
    ):
        for updates in (0, 1, 7, 20):
            expected = math.fsum(rate(t, config.lr, config.warmup, config.hold) for t in range(1, updates + 1))
            assert total(config, updates) == pytest.approx(expected)
    assert total(TrainConfig(lr=0.5, warmup=0), 6) == 3.0
    assert total(TrainConfig(lr=1.0, warmup=4), 4) == 0.25 + 0.5 + 0.75 + 1.0
