"""A run's profile over depth, against the records that it is made of, one number at a time."""

from __future__ import annotations

import math

import numpy as np
import pytest

from stabkit.results.profile import LOST, profile
from stabkit.results.records import Table
from stabkit.spec import ModelConfig, RunSpec, TaskConfig, TrainConfig
from stabkit.tasks.synthetic import Synthetic
from stabkit.training import train

LAYERS, STEPS = 4, 60


@pytest.fixture(scope="module")
def records():
    spec = RunSpec(
        method="layernorm-scaling",
        model=ModelConfig(encoder_layers=0, decoder_layers=LAYERS, hidden=16, ffn=24),
        train=TrainConfig(steps=STEPS, max_tokens=64, lr=1e-3, warmup=0),
        task=TaskConfig(vocab=200),
    )
    return train.run(spec, Synthetic(vocab=200, max_tokens=64)).records


def test_every_number_is_what_the_records_say(records):
    found = profile(records, STEPS)
    gradient, cosine, stream = (records[name] for name in ("grad_norm", "cosine", "stream"))
    here = list(gradient.steps).index(STEPS)
    layers = [float(gradient.at(f"decoder.{n}")[here]) for n in range(1, LAYERS + 1)]
    assert found.gradient == pytest.approx(layers[0] / layers[-1])
    assert found.gradient_spread == pytest.approx(max(layers) / min(layers))
    ratios = [float(a / b) for a, b in zip(gradient.at("decoder.1"), gradient.at(f"decoder.{LAYERS}"), strict=True)]
    assert found.gradient_lowest == pytest.approx(min(ratios))
    totals = [
        math.sqrt(sum(float(gradient.at(f"decoder.{n}")[i]) ** 2 for n in range(1, LAYERS + 1)))
        for i, step in enumerate(gradient.steps)
        if step >= 50
    ]
    assert found.spikes == pytest.approx(max(totals) / float(np.median(totals)))
    cosines = [float(cosine.at(f"decoder.{n}")[-1]) for n in range(1, LAYERS + 1)]
    assert found.cosine == pytest.approx(sum(cosines) / LAYERS)
    assert found.cosine_deep == pytest.approx(sum(cosines[2:]) / 2)
    sizes = [stream.at(f"decoder.{n}") for n in range(LAYERS + 1)]
    assert found.stream_start == pytest.approx(sizes[-1][0] / sizes[0][0])
    assert found.stream == pytest.approx(sizes[-1][-1] / sizes[0][-1])
    assert found.stream_half == pytest.approx(sizes[2][-1] / sizes[0][-1])
    assert found.loss == pytest.approx(float(records["validation"].at("validation")[-1]))


def test_it_is_read_where_it_is_asked_for_and_nowhere_else(records):
    steps = records["validation"].steps.tolist()
    earlier = profile(records, steps[1])
    assert earlier is not None and earlier.loss == float(records["validation"].at("validation")[1])
    assert earlier.gradient_lowest >= profile(records, STEPS).gradient_lowest
    assert profile(records, STEPS + 1) is None, "the run ended before"
    assert profile({name: table for name, table in records.items() if name != "cosine"}, STEPS) is None


def test_a_gradient_that_is_gone_is_cut_and_one_that_is_no_number_leaves_none(records):
    gradient = records["grad_norm"]

    def with_first(value):
        values = gradient.values.copy()
        values[-1, gradient.sites.index("decoder.1")] = value
        return {**records, "grad_norm": Table(gradient.steps, gradient.sites, values, gradient.version)}

    lost = profile(with_first(0.0), STEPS)
    assert lost.gradient == lost.gradient_lowest == LOST and lost.gradient_spread == 1 / LOST
    assert profile(with_first(math.nan), STEPS) is None


def test_a_run_without_any_gradient_keeps_its_loss(records):
    gradient = records["grad_norm"]
    values = gradient.values.copy()
    values[-1] = 0.0
    found = profile({**records, "grad_norm": Table(gradient.steps, gradient.sites, values, gradient.version)}, STEPS)
    assert found.gradient == found.gradient_lowest == LOST and found.gradient_spread == 1 / LOST
    assert found.loss == profile(records, STEPS).loss
