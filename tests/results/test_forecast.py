"""The forecast: what it may look at, its fit against a second one, its scores by hand, its range, its file."""

from __future__ import annotations

import dataclasses
import json
import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from stabkit.paper.studies import today
from stabkit.results.forecast.fit import RIDGE, fit
from stabkit.results.forecast.holdouts import seen
from stabkit.results.forecast.judged import Judged
from stabkit.results.forecast.rows import UnreadableRows, from_csv, to_csv
from stabkit.results.forecast.scores import auc, brier, reliability, skill, wilson
from tests.results.forecast_rows import auc_by_hand, corpus, measured, row

from stabkit.results.forecast import model
from stabkit.results.forecast.links import LINKS, Setting, numbers
from stabkit.results.forecast.measured import UPDATES, measure
from stabkit.spec import ModelConfig, Own, RunSpec, TrainConfig
from stabkit.tasks.synthetic import Synthetic
from stabkit.training import train
from tests.conftest import tiny

JUDGED = Judged(tuple(corpus()))


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
    assert gone.outcome.outcome == "diverged" and measure(gone.records, 5.0) is None
    records = {name: table for name, table in runs[0].records.items() if name != "token_cosine"}
    assert measure(records, 5.0) is None


def test_every_link_says_why_and_more_of_it_is_better():
    assert all(link.label and link.reason for link in LINKS) and len({link.key for link in LINKS}) == len(LINKS)
    good, bad = measured(), measured(gradient_lowest=1e-6, gradient_last=1e-6, ln_growth=30.0, cosine_last=1.0)
    worse = measured(loss_rises=2.0, path=200.0, gradient_total_most=100.0, still=0.5)
    of = {link.key: [link.of(one, Setting(1e-3, 64)) for one in (good, bad, worse)] for link in LINKS}
    assert of["gradient"][0] > of["gradient"][1]
    assert all(np.isfinite(values).all() for values in of.values())


@pytest.mark.parametrize("seed", range(3))
def test_the_fit_is_the_minimum_that_another_optimiser_finds(seed):
    """torch's L-BFGS on the same cost, the weights held above 0 by their squares."""
    random = np.random.default_rng(seed)
    x = random.normal(size=(80, 4)) * [1, 10, 0.1, 1] + 3
    label = x[:, 0] + 0.05 * x[:, 1] - 0.8 * x[:, 3] + random.normal(size=80) > 1
    found = fit(x, label)
    z = torch.tensor((x - x.mean(0)) / x.std(0))
    root = torch.full((4,), 0.7, dtype=torch.float64, requires_grad=True)
    bias = torch.zeros((), dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS([root, bias], max_iter=2000, tolerance_grad=1e-12, line_search_fn="strong_wolfe")

    def cost():
        optimizer.zero_grad()
        w = root**2
        p = z @ w + bias
        value = torch.nn.functional.binary_cross_entropy_with_logits(
            p, torch.tensor(label, dtype=torch.float64), reduction="sum"
        )
        value = value + 0.5 * RIDGE * (w**2).sum()
        value.backward()
        return value

    optimizer.step(cost)
    np.testing.assert_allclose(found.weight, (root**2).detach().numpy(), atol=2e-4)
    assert found.bias == pytest.approx(float(bias.detach()), abs=2e-4) and found.weight.min() >= 0
    assert found.weight[3] == 0, "more of it is worse here: no weight"


def test_of_one_class_the_fit_is_the_share_alone():
    found = fit(np.arange(6.0).reshape(6, 1), np.ones(6, dtype=bool))
    assert found.weight == [0.0] and found.probability(np.array([[99.0]]))[0] == pytest.approx(6.5 / 7)


@given(st.lists(st.tuples(st.integers(0, 20), st.booleans()), min_size=2, max_size=40))
def test_the_auc_is_the_share_of_pairs_told_right(pairs):
    p, label = [one / 20 for one, _ in pairs], [good for _, good in pairs]
    by_hand, found = auc_by_hand(p, label), auc(np.array(p), np.array(label))
    assert found == pytest.approx(by_hand, nan_ok=True)


def test_brier_skill_and_intervals_by_hand():
    p, label = np.array([0.9, 0.8, 0.3, 0.1]), np.array([True, False, True, False])
    assert brier(p, label) == pytest.approx((0.01 + 0.64 + 0.49 + 0.01) / 4)
    assert skill(p, label) == pytest.approx(1 - brier(p, label) / 0.25)
    assert wilson(8, 10) == pytest.approx((0.4902, 0.9433), abs=1e-4)
    first, *_, last = reliability(p, label, np.array([0, 1, 1, 2]))
    assert (first.n, first.runs, first.share, last.n, last.share) == (1, 1, 0.0, 1, 1.0)
    same = reliability(np.full(4, 0.95), label, np.array([0, 0, 1, 1]))[-1]
    assert (same.n, same.runs) == (4, 2) and same.interval == wilson(1, 2), "an interval counts runs, not forecasts"


def test_out_of_group_forecasts_come_from_fits_that_have_not_seen_the_group():
    group = next(group for group in JUDGED.groups if (group.axis, group.value) == ("depth", 12))
    rest = [row for row in JUDGED.corpus if row.depth != 12]
    by_hand = fit(numbers(seen(rest)), np.array([r.trains for r in rest]))
    own = [row for row in JUDGED.corpus if row.depth == 12]
    np.testing.assert_array_equal(group.p, by_hand.probability(numbers(seen(own))))
    assert [JUDGED.corpus[i] for i in group.places] == own


def test_the_group_that_breaks_the_bins_is_told_by_leaving_it_out():
    judged = Judged(JUDGED.rows)
    first = max(judged.groups, key=lambda group: len(group.p))
    first.p[:] = 1 - first.p  # the opposite of what was forecast
    assert judged.calibrated() < judged.calibrated(without=first)
    assert len(judged.pooled(without=first).p) < len(judged.pooled().p)


def test_a_run_of_the_default_seed_another_width_or_a_long_warm_up_is_never_fitted():
    extra = [row(900, seed=0), row(901, hidden=128), row(902, warmup=400), row(903, outcome="early")]
    extra += [row(904, measured=None, outcome="diverged")]
    judged = Judged((*JUDGED.rows, *extra))
    assert judged.corpus == JUDGED.corpus
    assert [one.seed for one, _ in judged.default_grid] == [0] and len(judged.widths) == 1
    assert judged.counted()["early"] == 1 and judged.counted()["diverged_before"] == 1
    assert {axes for _, axes in judged.beyond} == {("warm-up",)}, "its depths and rates are the corpus' own"


def test_shuffled_labels_are_told_no_better_than_by_chance():
    found = JUDGED.shuffled()
    assert len(found) == 50 and abs(np.mean(found) - 0.5) <= 0.05


def test_the_scores_of_a_corpus_in_which_one_link_decides():
    assert JUDGED.pooled().scores.auc > 0.9 and JUDGED.alone(LINKS[0]).scores.auc > 0.9
    assert JUDGED.alone(next(link for link in LINKS if link.key == "frozen")).scores.auc == 0.5, "the same for all"
    low, high = JUDGED.auc_interval(JUDGED.pooled())
    assert low < JUDGED.pooled().scores.auc < high and JUDGED.worst is not None


def test_rows_survive_their_file(tmp_path):
    rows = [*corpus(20), row(30, measured=None, outcome="diverged", validation=math.inf)]
    path = tmp_path / "rows.csv"
    path.write_bytes(to_csv(reversed(rows)))
    assert sorted(from_csv(path), key=lambda one: one.run_id) == sorted(rows, key=lambda one: one.run_id)
    assert to_csv(from_csv(path)) == path.read_bytes()


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda text: "a,b\n1,2\n", "not a file of rows"),
        (lambda text: text.replace("trains", "shines", 1), r"line \d+: 'shines'"),
        (lambda text: text + text.splitlines()[1] + "\n", "stands there twice"),
        (lambda text: text + "x,y\n", "line 22: 2 columns"),
        (lambda text: text.replace("8.2,", "nan,", 1), "not finite"),
    ],
)
def test_a_file_that_is_none_is_refused_with_its_line(damage, said, tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text(damage(to_csv(corpus(20)).decode()))
    with pytest.raises(UnreadableRows, match=said):
        from_csv(path)


@pytest.fixture(scope="module")
def coefficients():
    return model.read(json.dumps(model.fitted(JUDGED.corpus)).encode(), "a test")


def spec(**changes):
    config = {"steps": 16, "warmup": 0, "lr": 2e-3, "max_tokens": 256} | changes
    return RunSpec(
        method="post-ln", model=ModelConfig(encoder_layers=12, decoder_layers=12), train=TrainConfig(**config)
    )


def place(coefficients, run_spec, **changes):
    at = measured(**{"gradient_lowest": 0.1, "gradient_last": 0.1, **changes})
    return model.outside(run_spec, numbers([(at, Setting(run_spec.train.lr, run_spec.model.hidden))])[0], coefficients)


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


def test_words_follow_the_probability():
    words = [model.word(p) for p in (None, 0.95, 0.9, 0.5, 0.1, 0.02)]
    assert words == ["out of range", "likely trains", "likely trains", "open", "likely stuck", "likely stuck"]


def test_damaged_and_foreign_coefficients_are_refused_with_their_digest(tmp_path):
    whole = model.fitted(JUDGED.corpus)
    for change in ({"bias": 9.0}, {"links": ["gradient"]}, {"sha256": "0" * 64}):
        path = tmp_path / "c.json"
        path.write_text(json.dumps(whole | change))
        with pytest.raises(model.ForeignCoefficients, match=r"sha256 [0-9a-f]{64}.*damaged or foreign"):
            model.load(path)
    (tmp_path / "c.json").write_text("no json")
    with pytest.raises(model.ForeignCoefficients, match="damaged or foreign"):
        model.load(tmp_path / "c.json")
    with pytest.raises(model.ForeignCoefficients, match="No such file"):
        model.load(tmp_path / "none.json")


def test_the_coefficients_of_the_package_are_those_of_the_committed_rows():
    """Refitted from docs/forecast.csv and, joined, the search of docs/today.csv: the same to eight digits."""
    from pathlib import Path

    docs = Path(__file__).parents[2] / "docs"
    joined = today.read(from_csv(docs / "today.csv")).halved
    again = model.fitted(Judged(from_csv(docs / "forecast.csv")).fitted_rows, joined)
    kept = json.loads(model.FILE.read_text())
    for name in ("corpus", "runs", "links", "blocks", "abstains", "methods"):
        assert again[name] == kept[name], name
    assert again["before"]["corpus"] == kept["before"]["corpus"]
    for here, there in ((again, kept), (again["before"], kept["before"])):
        for name in ("mean", "scale", "weight", "bias"):
            np.testing.assert_allclose(here[name], there[name], rtol=1e-8, atol=1e-10)
    for name in ("spread", "reach"):
        np.testing.assert_allclose(again[name], kept[name], rtol=1e-8, atol=1e-10)
    assert (docs / "forecast.csv").stat().st_size < 1_000_000
