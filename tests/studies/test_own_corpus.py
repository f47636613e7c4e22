"""The corpus of users' models: its design is what its rows are of, its coefficients are those of the package."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn import functional

from stabkit.errors import StabkitError
from stabkit.results.own import forecast, rules
from stabkit.results.own.alarm import ALARM_FALSE, ALARM_RECALL, HELPED, OF_ALL
from stabkit.results.own.decided import numbers as verdict_numbers
from stabkit.results.own.forecast import AXES, LINKS, ours
from stabkit.results.own.measured import measured
from stabkit.results.own.verdict import verdict
from studies.own import corpus, cured, document, judge, page, training
from studies.own.design import CASES, IMAGES, LENGTH, cases
from studies.own.design import ROWS as ROWS_OF_A_BATCH
from studies.own.fit import probability
from studies.own.judge import decision
from studies.own.models import ACTIVATIONS, INITS, PATCH, SCHEMES, Model, Shape
from studies.own.steppers import Lion, optimizers
from studies.own.training import label

DOCS = Path(__file__).parents[2] / "docs" / "evidence"
ROWS = list(corpus.read(DOCS / "own_corpus.csv").values())
NUMBERS = {row.case.number for row in ROWS}
PLAIN = Shape(
    kind="decoder", scheme="pre", width=64, depth=2, init="xavier", activation="gelu", norm="layer", tied=False,
    bias=True, words=50, length=16,
)  # fmt: skip


def test_the_design_has_every_scheme_as_often_in_either_half_and_is_drawn_once():
    drawn = list(cases())
    assert len(drawn) == CASES >= 400 and drawn == list(cases()) and drawn[:10] == list(cases(10))
    for judging in (False, True):
        counts = Counter(case.shape.scheme for case in drawn if case.judge is judging and not case.regression)
        assert set(counts) == set(SCHEMES) and max(counts.values()) - min(counts.values()) <= 1
    assert {case.shape.init for case in drawn} == set(INITS)


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("kind", ["decoder", "encoder", "vision", "series", "denoiser"])
def test_every_scheme_is_a_model_of_every_kind(scheme, kind):
    tied = kind not in ("series", "denoiser")
    model = Model(replace(PLAIN, scheme=scheme, kind=kind, activation=ACTIVATIONS[len(scheme) % 3], tied=tied))
    images, numbers, words = torch.zeros(2, 3, 32, 32), torch.zeros(2, 16, 50), torch.zeros(2, 16, dtype=torch.long)
    given = {"vision": images, "denoiser": images, "series": numbers}.get(kind, words)
    scores = model(given)
    assert scores.shape == ((2, 50) if kind == "vision" else (2, 16, 50)) and scores.isfinite().all()


@pytest.mark.parametrize("name", ["series", "noise"])
def test_a_regressions_level_is_that_of_the_best_constant(name):
    case = next(case for case in cases() if case.task == name)
    loss = training.task(case, DOCS).at
    shape = (ROWS_OF_A_BATCH, LENGTH, PATCH) if name == "series" else (IMAGES, 16, 3 * PATCH**2)
    losses = [float(loss(lambda given: torch.zeros(shape), step)) for step in range(1, 41)]
    assert np.mean(losses) == pytest.approx(training.task(case, DOCS).frequencies, rel=0.05)


def test_a_decoder_sees_nothing_of_what_comes_and_an_encoder_does():
    for kind in ("decoder", "encoder"):
        torch.manual_seed(0)
        model = Model(replace(PLAIN, kind=kind))
        one, other = torch.zeros(1, 16, dtype=torch.long), torch.zeros(1, 16, dtype=torch.long)
        other[0, -1] = 7
        assert torch.allclose(model(one)[0, 0], model(other)[0, 0]) == (kind == "decoder")


def test_lion_is_its_papers_rule():
    p = torch.nn.Parameter(torch.tensor([1.0, -2.0]))
    optimizer = Lion([p], lr=0.1)
    m, expected = torch.zeros(2), p.detach().clone()
    for g in (torch.tensor([1.0, -3.0]), torch.tensor([-0.5, 2.0])):
        p.grad = g.clone()
        optimizer.step()
        expected -= 0.1 * torch.sign(0.9 * m + 0.1 * g)
        m = 0.99 * m + 0.01 * g
        assert torch.allclose(p.detach(), expected)


def test_muon_steps_matrices_of_blocks_and_adamw_all_else():
    model = Model(PLAIN)
    muon, rest = optimizers(model, "muon", 0.02)
    held = [p for own in (muon, rest) for group in own.param_groups for p in group["params"]]
    assert len(held) == len({id(p) for p in held}) == len(list(model.parameters()))
    assert all(p.dim() == 2 for group in muon.param_groups for p in group["params"])


@pytest.mark.parametrize(
    ("held", "word"),
    [(1.0, "trains"), (2.4, "trains"), (2.6, "unclear"), (3.8, "stuck"), (4.2, "stuck"), (99.0, "diverged"),
     (float("nan"), "diverged")],
)  # fmt: skip
def test_an_outcome_is_how_far_the_loss_went_from_frequencies_to_the_reference(held, word):
    assert label([4.6, 4.0], held, 4.0, 1.0) == word


def test_rows_are_of_their_cases_and_survive_the_file(tmp_path):
    assert len(ROWS) >= 400 and {row.case.number for row in ROWS if row.case.judge} == {n for n in NUMBERS if n >= 420}
    corpus.write(tmp_path / "rows.csv", ROWS)
    assert (tmp_path / "rows.csv").read_bytes() == (DOCS / "own_corpus.csv").read_bytes()
    text = (DOCS / "own_corpus.csv").read_text().replace(",deepnorm-no-alpha,", ",post,", 1)
    (tmp_path / "wrong.csv").write_text(text)
    with pytest.raises(ValueError, match="another scheme than its case"):
        corpus.read(tmp_path / "wrong.csv")


def test_the_packages_coefficients_are_the_fit_of_the_committed_rows():
    packaged, again = json.loads(forecast.FILE.read_text()), json.loads(json.dumps(document.document(ROWS)))
    assert packaged["corpus"] == again["corpus"] and packaged["looks"]["told"] == again["looks"]["told"]
    for name in ("mean", "scale", "weight", "bias", "reach", "spread"):
        assert np.allclose(packaged[name], again[name], rtol=1e-5, atol=1e-8), name
    for key, weights in packaged["looks"]["weights"].items():
        assert np.allclose(weights, again["looks"]["weights"][key], rtol=1e-2, atol=1e-2), key


def test_the_fit_looks_at_no_row_of_the_judging_part():
    spoilt = [
        replace(row, ends="stuck" if row.ends == "trains" else "trains") if row.case.judge else row for row in ROWS
    ]
    ours, theirs = document.document(ROWS), document.document(spoilt)
    assert all(ours[name] == theirs[name] for name in ("weight", "bias", "places", "quantiles", "reach"))
    assert ours["looks"]["weights"] == theirs["looks"]["weights"] and ours["looks"]["told"] != theirs["looks"]["told"]


@pytest.mark.slow
def test_the_page_is_that_of_the_rows():
    texts = page.texts(ROWS, cured.read(DOCS / "own_cures.csv"))
    assert texts == {name: (DOCS / name).read_text() for name in texts}


def test_a_row_has_the_word_of_the_command_where_a_link_fails():
    row = next(row for row in ROWS if row.case.shape.scheme == "pre" and row.measured is not None and not row.fails)
    seen = row.measured

    def word(p=0.97, **changed):
        return decision(replace(row, measured=replace(seen, **changed)), p, ours().looks, trained=False).word

    assert word() == "trains" and word(0.5) == word(None) == "undecided" and word(0.7) == "probably trains"
    assert word(gradient_lowest=1e-6) == word(room=2.0) == word(finite=False) == "fails"
    assert word(gradient_highest=3e4, growth=2.0) == "fails"
    assert word(gradient_highest=3e4, growth=30.0) == "trains", "behind the norm at the end"
    assert word(dilution=1e-5, growth=1e6) == "undecided" and word(0.02, dilution=1e-5, growth=1e6) == "fails"


@pytest.mark.slow
@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_row_has_the_word_that_the_command_gives_its_model(scheme, tmp_path):
    """Of a shallow model of every scheme, probed now: the study's numbers of it and the command's cell."""
    drawn = next(row for row in ROWS if row.case.shape.scheme == scheme and row.case.shape.kind == "decoder")
    case = replace(drawn.case, task="chain", shape=replace(PLAIN, scheme=scheme, depth=4, words=100, length=32))
    cell = corpus.probed_cell(case, tmp_path, updates=2)
    row = replace(drawn, case=case, measured=measured(cell), refused="")
    theirs = verdict([cell])
    assert decision(row, theirs.forecast.probability, ours().looks, trained=False).word == theirs.word
    ours_, numbers = judge.numbers(row), verdict_numbers(cell)
    assert [own.normed for own in ours_.stacks.values()] == [own.normed for own in numbers.stacks.values()]
    for name, link in rules.rules([ours_]).items():
        own = theirs.links[name]
        assert (link.verdict, link.certain) == (own.verdict, own.certain), name
    assert numbers.unreached_share <= rules.MOST_UNREACHED and not numbers.unregistered


def test_a_probe_without_a_result_has_no_probability_and_one_that_lost_a_number_is_lost():
    row = next(row for row in ROWS if row.measured is not None and row.measured.finite)
    by = ours().logistic
    assert probability(replace(row, measured=None, refused="no sublayers"), by) is None
    assert (
        probability(replace(row, measured=None), by)
        == probability(replace(row, measured=replace(row.measured, finite=False)), by)
        == 0
    )
    assert 0 < probability(row, by) < 1


def test_damaged_coefficients_are_refused(tmp_path):
    body = json.loads(forecast.FILE.read_text()) | {"bias": 9.0}
    with pytest.raises(StabkitError, match="damaged or foreign"):
        forecast.read(json.dumps(body).encode(), "a test")
    assert len(body["links"]) == len(LINKS) and len(body["axes"]) == len(AXES)


def test_a_models_scores_are_its_heads():
    torch.manual_seed(0)
    model = Model(replace(PLAIN, tied=True))
    assert model.head.weight is model.tokens.weight
    tokens = torch.randint(0, 50, (2, 16))
    loss = functional.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten())
    assert loss.isfinite()


def test_what_a_watch_says_its_silence_is_worth_is_what_the_page_counts():
    heard, failed, half = ALARM_RECALL
    (row,) = [line for line in (DOCS / "verdict.md").read_text().splitlines() if line.startswith("| any of them |")]
    assert f"({heard} of {failed};" in row and row.split("|")[3].strip() == str(half)
    assert "({} of {};".format(*ALARM_FALSE) in row


def test_what_an_advice_is_said_to_have_helped_is_what_the_rows_count():
    rows = {row.case.number: row for row in ROWS}
    for link, (change, helped, of) in HELPED.items():
        tried = [
            row.tried[change]
            for number, row in cured.read(DOCS / "own_cures.csv").items()
            if change in row.tried and (link in OF_ALL or link in rows[number].alarms)
        ]
        assert (helped, of) == (sum(tuple(one) == ("trains", "seen") for one in tried), len(tried)), link
