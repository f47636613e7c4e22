"""The gain of the product of mixings, against products made one token at a time; recorded where streams are mixed."""

import numpy as np
import pytest
import torch

from stabkit.model.transformer import tensors
from stabkit.spec import ModelConfig, RunSpec, TaskConfig, TrainConfig
from stabkit.tasks.base import PAD
from stabkit.tasks.synthetic import Synthetic
from stabkit.training import train

TASK = Synthetic(vocab=200, max_tokens=64)


def spec_of(method, n=2, m=2, steps=2, **options):
    return RunSpec(
        method=method,
        options=options,
        model=ModelConfig(encoder_layers=n, decoder_layers=m, hidden=16, ffn=32),
        train=TrainConfig(steps=steps, max_tokens=64, warmup=0, lr=1e-2),
        task=TaskConfig(vocab=200),
        dtype="float64",
    )


def by_hand(model, batch):
    """(forward, backward) gains of every sub-layer: products of each token's own matrices."""
    seen = {name: [] for name in model.stacks}
    handles = [
        tap.register_forward_hook(lambda tap, inputs, r, stack=stack: seen[stack].append(r.detach().numpy()))
        for stack in model.stacks
        for tap in model.history[stack].mixings
    ]
    with torch.no_grad():
        model.eval()(*tensors(batch)[:2])
    for handle in handles:
        handle.remove()
    gains = {}
    for stack, matrices in seen.items():
        real = np.argwhere((batch.source if stack == "encoder" else batch.target_out).T != PAD)
        sites = [site.name for site in model.sites if site.stack == stack]
        for i, name in enumerate(sites):
            up, down = [], []
            for t, b in real:
                product = np.eye(4)
                for r in matrices[: i + 1]:
                    product = r[t, b] @ product
                up.append(np.abs(product).sum(axis=1).max())
                product = np.eye(4)
                for r in matrices[i:]:
                    product = r[t, b] @ product
                down.append(np.abs(product).sum(axis=0).max())
            gains[name], gains[f"{name}@backward"] = np.mean(up), np.mean(down)
    return gains


@pytest.mark.parametrize("method", ["hyper-connections", "mhc"])
def test_it_is_the_largest_sum_of_a_row_up_to_here_and_of_a_column_from_here_on(method):
    spec = spec_of(method)
    result = train.run(spec, TASK)
    model = train.build(spec, TASK, torch.device("cpu"))
    model.load(result.weights)
    table = result.records["mixing"]
    for name, gain in by_hand(model, TASK.probe()).items():
        assert table.at(name)[-1] == pytest.approx(gain, rel=1e-9)


@pytest.mark.parametrize("method", ["mhc", "hyper-connections", "siamesenorm", "attention-residuals"])
def test_where_the_sum_goes_nowhere_the_norms_input_is_what_the_branch_reads(method):
    """Recorded against a hook on the norm before each branch; and its gradient is there."""
    spec = spec_of(method, steps=1)
    model = train.build(spec, TASK, torch.device("cpu"))
    result = train.run(spec, TASK)
    batch, read = TASK.probe(), {}
    for site, residual in model.residuals.items():
        residual.norm_in.register_forward_hook(lambda norm, inputs, out, name=site.name: read.update({name: inputs[0]}))
    with torch.no_grad():
        model.eval()(*tensors(batch)[:2])
    for name, x in read.items():
        real = torch.tensor((batch.source if name.startswith("encoder") else batch.target_out).T != PAD)
        expected = x.norm(dim=-1)[real].mean().item()
        assert result.records["ln_input"].at(name)[0] == pytest.approx(expected, rel=1e-9)
    gradients = result.records["grad_norm"]
    at = [name for name in gradients.sites if name.endswith("@x")]
    assert (gradients.select(at)[0] > 0).all()


@pytest.mark.slow
def test_doubly_stochastic_mixings_have_none_whatever_they_have_learnt():
    for start in ("uniform", "identity", "static"):
        table = train.run(spec_of("mhc", steps=6, start=start), TASK).records["mixing"]
        assert np.abs(table.values - 1).max() < 0.01  # twenty rounds of Sinkhorn's


def test_free_ones_begin_at_one_and_then_do():
    table = train.run(spec_of("hyper-connections", steps=6), TASK).records["mixing"]
    assert table.values[0] == pytest.approx(1.0) and table.values[-1].max() > 1.01


def test_a_run_without_streams_has_no_such_table_and_lacks_none():
    assert "mixing" not in train.run(spec_of("pre-ln"), TASK).records
