"""The forecast's study: its fit against a second one, its scores by hand, its hold-outs, its rows, its coefficients."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from stabkit.results.forecast import model
from stabkit.results.forecast.links import RunSetting
from stabkit.results.intervals import wilson
from studies.forecast.coefficients import document
from studies.forecast.evaluation import Evaluation
from studies.forecast.holdouts import out_of_group
from studies.forecast.joined import rows_beside
from studies.forecast.regression import RIDGE, features, fit
from studies.forecast.scores import auc, brier, reliability, skill
from studies.forecast.which_link import LINKS
from studies.forecast.widened import widen
from studies.rows import UnreadableRows, from_csv, to_csv
from tests.studies.study_rows import auc_by_hand, corpus, measured, row

EVALUATION = Evaluation(tuple(corpus()))


def test_every_link_says_why_and_more_of_it_is_better():
    assert all(link.label and link.reason for link in LINKS) and len({link.key for link in LINKS}) == len(LINKS)
    good, bad = measured(), measured(gradient_lowest=1e-6, gradient_last=1e-6, ln_growth=30.0, cosine_last=1.0)
    worse = measured(loss_rises=2.0, path=200.0, gradient_total_most=100.0, still=0.5)
    of = {link.key: [link.of(one, RunSetting(1e-3, 64)) for one in (good, bad, worse)] for link in LINKS}
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
    assert wilson(0.8, 10) == pytest.approx((0.4902, 0.9433), abs=1e-4)
    first, *_, last = reliability(p, label, np.array([0, 1, 1, 2]))
    assert (first.n, first.runs, first.share, last.n, last.share) == (1, 1, 0.0, 1, 1.0)
    same = reliability(np.full(4, 0.95), label, np.array([0, 0, 1, 1]))[-1]
    assert (same.n, same.runs) == (4, 2) and same.interval == wilson(0.5, 2), "an interval counts runs, not forecasts"


@pytest.mark.slow
def test_out_of_group_forecasts_come_from_fits_that_have_not_seen_the_group():
    own = [row for row in EVALUATION.corpus if row.depth == 12]
    rest = [row for row in EVALUATION.corpus if row.depth != 12]
    label = np.array([r.trains for r in rest])
    for groups, by in ((EVALUATION.plain, fit(features(rest), label)), (EVALUATION.groups, widen(rest, label))):
        group = next(group for group in groups if (group.axis, group.value) == ("depth", 12))
        np.testing.assert_array_equal(group.p, by.probability(features(own)))
        assert group.name == "12 layers" and [EVALUATION.corpus[i] for i in group.places] == own


def test_widening_turns_the_scores_as_another_optimiser_would():
    """scipy's minimiser on the same likelihood; a fit that was too sure has a slope below 1."""
    rows, label = EVALUATION.corpus, EVALUATION.label
    plain, found = fit(features(rows), label), widen(rows, label)
    groups = out_of_group(rows, label)
    run, p = (np.concatenate([getattr(group, name) for group in groups]) for name in ("places", "p"))
    p = np.clip(p, 1e-9, 1 - 1e-9)
    z, weight = np.log(p / (1 - p)), 1 / np.bincount(run)[run]

    def cost(at):
        q = 1 / (1 + np.exp(-(at[0] + at[1] * z)))
        return -(weight * np.where(label[run], np.log(q), np.log(1 - q))).sum()

    shift, slope = minimize(cost, [0.0, 1.0], method="BFGS").x
    np.testing.assert_allclose(found.weight, plain.weight * slope, rtol=1e-3)
    assert found.bias == pytest.approx(plain.bias * slope + shift, rel=1e-3, abs=1e-3)


def test_of_what_cannot_be_held_out_the_plain_fit_stays():
    same = [row(i, method="post-ln", decoder_layers=7) for i in range(6)]
    label = np.array([True, False] * 3)
    np.testing.assert_array_equal(widen(same, label).weight, fit(features(same), label).weight)


@pytest.mark.slow
def test_four_of_five_bins_of_the_committed_rows_come_true_and_most_are_decided(committed):
    """Judged on groups that neither fit nor widening has seen."""
    assert committed.calibrated() >= 4 and committed.pooled().scores.coverage >= 0.6
    assert sum(bin_.calibrated for bin_ in reliability(*_plain(committed))) < 4, "not widened they do not"


def _plain(evaluation):
    pooled = evaluation.pooled(plain=True)
    return pooled.p, pooled.label, pooled.run


@pytest.fixture(scope="module")
def committed():
    return Evaluation(from_csv(Path(__file__).parents[2] / "docs" / "evidence" / "forecast.csv"))


@pytest.mark.slow
def test_the_group_that_breaks_the_bins_is_told_by_leaving_it_out():
    evaluation = Evaluation(EVALUATION.rows)
    first = max(evaluation.groups, key=lambda group: len(group.p))
    first.p[:] = 1 - first.p  # the opposite of what was forecast
    assert evaluation.calibrated() < evaluation.calibrated(without=first)
    assert len(evaluation.pooled(without=first).p) < len(evaluation.pooled().p)


def test_a_run_of_the_default_seed_another_width_or_a_long_warm_up_is_never_fitted():
    extra = [row(900, seed=0), row(901, hidden=128), row(902, warmup=400), row(903, outcome="early")]
    extra += [row(904, measured=None, outcome="diverged")]
    evaluation = Evaluation((*EVALUATION.rows, *extra))
    assert evaluation.corpus == EVALUATION.corpus
    assert [one.seed for one, _ in evaluation.default_grid] == [0] and len(evaluation.widths) == 1
    assert evaluation.counted()["early"] == 1 and evaluation.counted()["diverged_before"] == 1
    assert {axes for _, axes in evaluation.beyond} == {("warm-up",)}, "its depths and rates are the corpus' own"


@pytest.mark.slow
def test_shuffled_labels_are_told_no_better_than_by_chance():
    found = EVALUATION.shuffled()
    assert len(found) == 50 and abs(np.mean(found) - 0.5) <= 0.05


@pytest.mark.slow
def test_the_scores_of_a_corpus_in_which_one_link_decides():
    assert EVALUATION.pooled().scores.auc > 0.9 and EVALUATION.alone(LINKS[0]).auc > 0.9
    assert EVALUATION.alone(next(link for link in LINKS if link.key == "frozen")).auc == 0.5, "the same for all"
    low, high = EVALUATION.auc_interval(EVALUATION.pooled())
    assert low < EVALUATION.pooled().scores.auc < high and EVALUATION.worst is not None


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


@pytest.mark.slow
def test_the_coefficients_of_the_package_are_those_of_the_committed_rows():
    """Refitted from docs/evidence/forecast.csv and, joined, the rows beside it: the same to eight digits."""
    docs = Path(__file__).parents[2] / "docs" / "evidence"
    again = document(Evaluation(from_csv(docs / "forecast.csv")).fitted_rows, rows_beside(docs))
    kept = json.loads(model.FILE.read_text())
    for name in ("corpus", "runs", "links", "optimizers", "blocks", "abstains", "methods"):
        assert again[name] == kept[name], name
    assert again["before"]["corpus"] == kept["before"]["corpus"]
    for here, there in ((again, kept), (again["before"], kept["before"])):
        for name in ("mean", "scale", "weight", "bias"):
            np.testing.assert_allclose(here[name], there[name], rtol=1e-8, atol=1e-10)
    for name in ("spread", "reach"):
        np.testing.assert_allclose(again[name], kept[name], rtol=1e-8, atol=1e-10)
    assert (docs / "forecast.csv").stat().st_size < 1_000_000
