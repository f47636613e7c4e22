"""K runs at once are K runs one by one, to rounding: seeds, rates, factors on α and β, methods unlike in numbers."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from stabkit.spec import RunSpec
from stabkit.tasks import objective
from stabkit.tasks.synthetic import Synthetic
from stabkit.training import train, vmapped
from tests.conftest import tiny


def specs_of(method: str = "deepnorm", n: int = 2, m: int = 2, **train_config: object) -> RunSpec:
    spec = tiny(method, steps=4, warmup=2, lr=1e-3)
    model = replace(spec.model, encoder_layers=n, decoder_layers=m)
    return replace(spec, model=model, dtype="float64", train=replace(spec.train, **train_config))


def task_of(spec: RunSpec):
    whole = Synthetic(vocab=spec.task.vocab, max_tokens=spec.train.max_tokens)
    return objective.of(whole, spec.model.encoder_layers, spec.model.decoder_layers)


def alike(specs: list[RunSpec], rtol: float = 1e-9) -> None:
    """Records, weights and outcomes of the runs at once against those one by one."""
    at_once = vmapped.together(specs, [task_of(spec) for spec in specs])
    for spec, found in zip(specs, at_once, strict=True):
        alone = train.run(spec, task_of(spec), kernels="python")
        assert found.outcome.word == alone.outcome.word and list(found.records) == list(alone.records)
        for name, table in alone.records.items():
            ours = found.records[name]
            assert ours.sites == table.sites and ours.steps.tolist() == table.steps.tolist(), name
            np.testing.assert_allclose(
                ours.values, table.values, rtol=rtol, atol=1e-10, err_msg=f"{spec.run_id} {name}"
            )
        for name, weight in alone.weights.items():
            np.testing.assert_allclose(found.weights[name], weight, rtol=1e-6, atol=1e-9, err_msg=name)
        assert found.kernels == f"python, {len(specs)} runs at once"


@pytest.mark.parametrize("stacks", [(2, 3), (0, 2), (2, 0)], ids=str)
def test_seeds_whose_batches_differ_in_shape(stacks):
    specs = [replace(specs_of("post-ln", *stacks), seed=seed) for seed in range(3)]
    shapes = {task_of(spec).train(spec.seed, step).source.shape for spec in specs for step in range(4)}
    assert len(shapes) > 1 or not stacks[0]
    alike(specs)


@pytest.mark.slow
def test_rates_warm_ups_and_factors_on_alpha_and_beta():
    base = specs_of("deepnorm", clip=0.5)
    alike(
        [
            base,
            replace(base, train=replace(base.train, lr=3e-3, warmup=0)),
            replace(base, alpha_scale=2.0, beta_scale=0.5),
            replace(base, seed=1, beta_scale=2.0),
        ]
    )


@pytest.mark.slow
def test_methods_that_differ_in_numbers():
    """Post-LN and DeepNorm have one structure; a shortcut of 1 is a number as another is."""
    alike([specs_of("post-ln"), specs_of("post-ln-init"), specs_of("deepnorm")])


@pytest.mark.slow
@pytest.mark.parametrize(
    "method",
    [
        *("residual", "dlcl", "sub-ln", "admin", "rezero", "completep", "siamesenorm", "gpas", "nanochat"),
        *("attention-residuals", "hyper-connections", "mhc", "gated-attention", "value-residual", "derf"),
    ],
)
def test_every_kind_of_part_scale_and_wiring(method):
    alike([replace(specs_of(method), seed=seed) for seed in range(2)])


def test_the_llama_block():
    from stabkit.methods.blocks import BLOCKS

    base = specs_of("pre-ln")
    base = replace(base, model=replace(base.model, **BLOCKS["llama"]))
    alike([base, replace(base, seed=3)])


def test_a_run_that_diverges_ends_alone():
    base = specs_of("post-ln", warmup=0)
    specs = [base, replace(base, train=replace(base.train, lr=1e30)), replace(base, seed=1)]
    at_once = vmapped.together(specs, [task_of(spec) for spec in specs])
    assert [one.outcome.word for one in at_once] == ["early", "diverged", "early"]
    alone = train.run(specs[1], task_of(specs[1]), kernels="python")
    assert at_once[1].outcome.steps == alone.outcome.steps
    alike([specs[0], specs[2]])


def test_in_float32_they_are_equal_to_a_millionth():
    specs = [replace(specs_of("deepnorm"), dtype="float32", seed=seed) for seed in range(2)]
    for spec, found in zip(specs, vmapped.together(specs, [task_of(spec) for spec in specs]), strict=True):
        alone = train.run(spec, task_of(spec), kernels="python")
        for name in ("loss", "ln_input", "stream"):
            np.testing.assert_allclose(found.records[name].values, alone.records[name].values, rtol=1e-6)


def test_nothing_is_left_on_a_model():
    """Taps, shifts and scales are as they were: the template's too."""
    specs = [specs_of("post-ln"), specs_of("deepnorm")]
    runs = [train.begun(spec, task_of(spec), torch.device("cpu"), {}, "python") for spec in specs]
    before = [[r.omega for r in one.model.residuals.values()] for one in runs]
    theta = torch.stack([one.flat.theta for one in runs])
    passes = vmapped.VmappedPasses(runs, theta, torch.zeros_like(theta))
    passes.training(0, True)
    assert passes.scales and [[r.omega for r in one.model.residuals.values()] for one in runs] == before
    assert [r.omega for r in passes.template.residuals.values()] == before[0]
    for model in (passes.template, runs[0].model):
        for tap in vmapped._taps(model):
            assert tap.shift is None and not tap.gradients and not any((*tap.watchers.values(), *tap.lengths.values()))
        for site, residual in model.residuals.items():
            assert isinstance(residual.omega, float), site
            for _, parameter in residual.named_parameters():
                assert isinstance(parameter, torch.nn.Parameter)
