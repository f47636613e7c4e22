"""The forecast: what it may look at, its range, its words, its file of coefficients; and that it imports no fitting."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys

import numpy as np
import pytest

from stabkit.results.forecast import logistic, model
from stabkit.results.forecast.links import FITTED, RunSetting
from stabkit.results.forecast.logistic import numbers
from stabkit.results.forecast.measured import UPDATES, measure
from stabkit.spec import ModelConfig, Own, RunSpec, TrainConfig
from stabkit.tasks.synthetic import Synthetic
from stabkit.training import train
from studies.forecast.coefficients import document
from tests.conftest import tiny
from tests.studies.study_rows import corpus, measured


@pytest.fixture(scope="module")
def runs():
    """The same run, 16 updates of it and 60."""
    task = Synthetic(vocab=200, max_tokens=128)
    return [train.run(tiny("post-ln", layers=2, steps=steps, warmup=0, lr=3e-3), task) for steps in (16, 60)]


def test_a_forecast_reads_the_first_sixteen_updates_alone(runs):
    short, long = (measure(one.records, one.outcome.unigram_loss) for one in runs)
    assert short is not None and short == long


def test_what_is_measured_is_what_the_records_hold(runs):
    records, found = runs[1].records, measure(runs[1].records, 5.0)
    grads, loss = records["grad_norm"], records["loss"].at("probe")
    ratio = grads.at("decoder.1")[: UPDATES + 1] / grads.at("decoder.2")[: UPDATES + 1]
    assert found.gradient_lowest == min(ratio) and found.gradient_last == ratio[16] and found.gradient_start == ratio[0]
    assert found.update_first == records["update"].at("state")[1]
    assert found.update_last == records["update"].at("state")[16]
    assert found.path == pytest.approx(sum(records["update"].at("state@step")[: UPDATES + 1]))
    assert found.loss_rises == pytest.approx(sum(max(0.0, loss[t] - loss[t - 1]) for t in range(2, 17)))
    assert found.loss_least == min(loss[1:17]) and found.cosine_last == records["token_cosine"].at("state")[16]
    assert found.still == 0.0 and 0 < found.moved < 3 and found.unigram == 5.0


def test_a_shorter_run_or_one_that_diverged_by_then_has_no_forecast(runs):
    task = Synthetic(vocab=200, max_tokens=128)
    short = train.run(tiny(layers=1, steps=15, warmup=0), task)
    assert measure(short.records, 5.0) is None
    gone = train.run(tiny("rezero", layers=1, steps=20, warmup=0, optimizer="sgd", lr=1e9), task)
    assert gone.outcome.word == "diverged" and measure(gone.records, 5.0) is None
    records = {name: table for name, table in runs[0].records.items() if name != "token_cosine"}
    assert measure(records, 5.0) is None


@pytest.fixture(scope="module")
def coefficients():
    return model.read(json.dumps(document(corpus())).encode(), "a test")


def spec(**changes):
    config = {"steps": 16, "warmup": 0, "lr": 2e-3, "max_tokens": 256} | changes
    return RunSpec(
        method="post-ln", model=ModelConfig(encoder_layers=12, decoder_layers=12), train=TrainConfig(**config)
    )


def place(coefficients, run_spec, **changes):
    at = measured(**{"gradient_lowest": 0.1, "gradient_last": 0.1, **changes})
    return model.outside(
        run_spec, numbers([(at, RunSetting(run_spec.train.lr, run_spec.model.hidden))], FITTED)[0], coefficients
    )


def test_what_the_corpus_holds_is_in_range_and_what_it_does_not_says_along_which_axis(coefficients):
    assert place(coefficients, spec()) == ()
    assert "warm-up" in place(coefficients, spec(warmup=4000))
    assert place(coefficients, spec(max_tokens=1024)) == ("max_tokens",) and not place(
        coefficients, spec(max_tokens=512)
    )
    assert place(coefficients, spec(optimizer="sgd")) == ("train.optimizer",)
    wide = dataclasses.replace(spec(), model=ModelConfig(encoder_layers=12, decoder_layers=12, hidden=1024))
    assert "width" in place(coefficients, wide)
    alone = dataclasses.replace(spec(), model=ModelConfig(encoder_layers=12, decoder_layers=0))
    assert "encoder-only" in place(coefficients, alone)
    llama = dataclasses.replace(spec(), model=dataclasses.replace(spec().model, norm="rms"))
    assert place(coefficients, llama) == ("block",)
    scaled = Own(file="my.py", name="f", digest="0" * 64, label="Mine", scaled=True)
    own = dataclasses.replace(spec(), method="own-mine", own=scaled)
    assert "factors" in place(coefficients, own), "the rate that is a link is not the one that moves the weights"
    assert "factors" not in place(coefficients, dataclasses.replace(own, own=dataclasses.replace(scaled, scaled=False)))
    assert "rest" in place(coefficients, spec(), step_last=1e6)


def test_a_rate_too_low_to_train_by_then_is_out_of_range_at_its_width(coefficients):
    assert coefficients.lowest == {64: 5e-4}
    assert "rate" not in place(coefficients, spec(lr=4e-4)) and "rate" in place(coefficients, spec(lr=3e-4))
    by = dataclasses.replace(coefficients, lowest={64: 2e-3, 128: 5e-4})
    wide = dataclasses.replace(spec(lr=5e-4), model=ModelConfig(encoder_layers=12, decoder_layers=12, hidden=128))
    assert "rate" not in place(by, wide) and "rate" in place(by, spec(lr=5e-4))


def test_a_method_that_no_fit_has_seen_is_forecast_by_the_gradient_alone_where_that_is_better(coefficients):
    alone = logistic.Logistic(np.zeros(3), np.ones(3), np.array([2.0, 0.0, 0.0]), 1.0)
    by = dataclasses.replace(coefficients, alone={"adamw": alone})
    mine = Own(file="my.py", name="f", digest="0" * 64, label="Mine")
    own = dataclasses.replace(spec(optimizer="adamw"), method="own-mine", own=mine)
    assert model.fit_of(own, by) is alone and model.fit_of(spec(optimizer="adamw"), by) is by.logistic
    assert model.fit_of(dataclasses.replace(own, train=spec().train), by) is by.logistic, "under Adam all links"
    ours = model.ours().alone
    assert set(ours) == {"adamw"} and list(ours["adamw"].weight[1:]) == [0.0, 0.0] and ours["adamw"].weight[0] > 0


def test_words_follow_the_probability():
    words = [logistic.word(p) for p in (None, 0.9, 0.65, 0.64, 0.36, 0.35, 0.1)]
    assert words == ["undecided", "trains", "probably trains", "undecided", "undecided", "probably fails", "fails"]


def test_damaged_and_foreign_coefficients_are_refused_with_their_digest(tmp_path):
    whole = document(corpus())
    for change in ({"bias": 9.0}, {"links": ["gradient"]}, {"sha256": "0" * 64}):
        path = tmp_path / "c.json"
        path.write_text(json.dumps(whole | change))
        with pytest.raises(logistic.ForeignCoefficients, match=r"sha256 [0-9a-f]{64}.*damaged or foreign"):
            model.load(path)
    (tmp_path / "c.json").write_text("no json")
    with pytest.raises(logistic.ForeignCoefficients, match="damaged or foreign"):
        model.load(tmp_path / "c.json")
    with pytest.raises(logistic.ForeignCoefficients, match="No such file"):
        model.load(tmp_path / "none.json")


def test_predicting_imports_no_fitting_no_scores_and_no_study():
    line = "import sys; from stabkit.results.forecast.model import load; load(); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", line], capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert not loaded & {"studies", "scipy", "sklearn", "torch", "pandas"}
    forecast = [name for name in done.stdout.split() if name.startswith("stabkit.results.forecast.")]
    assert sorted(name.rpartition(".")[2] for name in forecast) == ["links", "logistic", "measured", "model"]
