"""The loop: prefixes, pairing, divergence, learning."""

import math

import numpy as np
import pytest
import torch

from stabkit.tasks.base import unigram_loss
from stabkit.tasks.synthetic import Synthetic
from stabkit.training import train
from tests.conftest import tiny

TASK = Synthetic(vocab=200, max_tokens=128)


def test_a_long_run_begins_with_the_short_run():
    short, long = (train.run(tiny("admin", steps=steps, dropout=0.1, warmup=0), TASK).records for steps in (3, 6))
    for name in ("loss", "update", "grad_norm", "ln_input", "branch_ratio", "parameter_update"):
        np.testing.assert_array_equal(short[name].values, long[name].values[:4])


def test_the_same_spec_gives_the_same_bits():
    first, second = (train.run(tiny("post-ln", dropout=0.1), TASK) for _ in range(2))
    for name, table in first.records.items():
        np.testing.assert_array_equal(table.values, second.records[name].values)


def test_two_seeds_differ():
    first, second = (train.run(tiny(seed=seed), TASK).records["loss"].values for seed in (0, 1))
    assert (first != second).any()


def test_a_diverged_run_is_a_result_with_its_records_up_to_there():
    result = train.run(tiny("post-ln", steps=50, warmup=0, lr=1e30), TASK)
    assert result.outcome.word == "diverged" and result.outcome.steps < 50
    assert not np.isfinite(result.records["loss"].values[-1]).all()
    assert result.records["update"].values[0].tolist() == [0.0] * 6


def test_nan_in_the_very_first_step_is_a_finding(monkeypatch):
    build = train.build

    def poisoned(*args):
        model = build(*args)
        model.embedding.data[5:] = float("nan")
        return model

    monkeypatch.setattr(train, "build", poisoned)
    result = train.run(tiny(), TASK)
    assert (result.outcome.word, result.outcome.steps) == ("diverged", 0)
    assert math.isnan(result.outcome.validation_loss)


def test_clipping_bounds_the_gradient_that_adam_sees():
    free, clipped = (train.run(tiny(steps=2, warmup=0, clip=clip), TASK).records for clip in (0.0, 1e-9))
    np.testing.assert_array_equal(
        free["grad_norm"].values[0], clipped["grad_norm"].values[0]
    )  # recorded before clipping
    assert clipped["parameter_update"].values[1].max() < free["parameter_update"].values[1].max()


def test_no_steps_is_a_run_that_only_measures():
    result = train.run(tiny(steps=0), TASK)
    assert result.outcome.word == "early" and result.records["loss"].steps.tolist() == [0]


def test_snapshots_are_kept_as_whole_vectors():
    weights = train.run(tiny(steps=4, snapshots=3), TASK).weights
    assert [name for name in weights if name.startswith("theta@")] == ["theta@0", "theta@2", "theta@4"]
    size = sum(w.size for name, w in weights.items() if "@" not in name and name != "omega")
    assert weights["theta@4"].shape == (size,)


def test_no_constant_predictor_beats_the_unigram_by_more_than_sampling():
    task = Synthetic(vocab=200, max_tokens=8192)
    counts, batches = task.target_counts(), task.validation()
    targets = torch.cat([torch.from_numpy(b.target_out[b.target_out != 0]) for b in batches])
    logits = torch.zeros(200, requires_grad=True)
    lbfgs = torch.optim.LBFGS([logits], max_iter=200)

    def loss():
        lbfgs.zero_grad()
        value = torch.nn.functional.cross_entropy(logits.expand(len(targets), -1), targets, label_smoothing=0.1)
        value.backward()
        return value

    lbfgs.step(loss)
    best, ours = float(loss().detach()), unigram_loss(counts, batches, 0.1)
    assert best <= ours < best + 0.02  # the best on these very tokens has seen them


@pytest.mark.slow
def test_a_shallow_model_learns_the_synthetic_task():
    from stabkit.spec import ModelConfig, RunSpec, TrainConfig

    spec = RunSpec(
        method="deepnorm",
        model=ModelConfig(encoder_layers=2, decoder_layers=2),
        train=TrainConfig(steps=300, warmup=0, lr=2e-3),
    )
    outcome = train.run(spec, Synthetic(vocab=2000, max_tokens=512)).outcome
    assert outcome.word == "trains" and outcome.validation_loss < outcome.unigram_loss - 1.0
