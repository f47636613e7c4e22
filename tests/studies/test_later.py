"""What the corpus lacks: the design of the runs that are joined, and how the fit without them tells them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from stabkit import methods
from stabkit.options import lines
from stabkit.options.requests import request_of
from stabkit.results.outcome import LOST, RECOVERED
from stabkit.spec import RunSpec
from studies.forecast import baselines, joined_words, page
from studies.forecast.baselines import Baselines
from studies.forecast.coefficients import document
from studies.forecast.evaluation import Evaluation
from studies.forecast.joined import Joined, rows_beside
from studies.forecast.later import BLOCKS, DESIGN, KEYS, LADDER, RATE, RUNGS, SEED, SEEDED, joined
from studies.forecast.unseen import FAILED, TRUSTED
from studies.markdown import table_lines
from studies.rows import StudyRow, from_csv, to_csv
from tests.studies.study_rows import corpus, measured, row

DOCS = Path(__file__).parents[2] / "docs" / "evidence"
ROWS = DOCS / "later.csv"


def specs(*commands: str) -> list[RunSpec]:
    found = []
    for line in commands:
        name, options = lines.words(line)
        assert name == "sweep"
        found += request_of(name, {**options, "out": "nowhere"}).specs
    return found


def test_five_seeds_of_every_method_at_one_rate_in_both_blocks() -> None:
    runs = specs(*SEEDED)
    count = Counter((one.model.norm, one.model.decoder_layers) for one in runs)
    assert count == {(norm, n): 13 * 5 for norm in ("layer", "rms") for n in (6, 18)}
    assert {one.model.encoder_layers for one in runs} == {0} and {one.train.max_tokens for one in runs} == {256}
    assert {one.method for one in runs} == set(KEYS) <= set(methods.SETS["2026"]) and len(KEYS) == 13


def test_the_ladder_has_rates_on_both_sides_and_a_seed_of_its_own() -> None:
    runs = specs(*LADDER)
    assert {one.train.lr for one in runs} == set(RUNGS) and {one.seed for one in runs} == {SEED}
    assert {one.model.decoder_layers for one in runs} == {6, 18, 50}
    assert SEED not in {one.seed for one in specs(*SEEDED)}
    assert all(b / a == pytest.approx(2) for a, b in zip(RUNGS, RUNGS[1:], strict=False))
    assert {one.train.verdict_at for one in specs(*DESIGN.commands)} == {250}


def of(optimizer: str, count: int, failing: int, *, seen: bool = True, **given: Any) -> list[StudyRow]:
    """Runs of an optimiser, the last of which fail; `seen`: their gradient tells."""
    start = {"adam": 1000, "adamw": 2000, "muon": 3000}[optimizer]
    found = []
    for i in range(count):
        fails = i >= count - failing
        ratio = 10**-3.9 if fails and seen else 0.9
        at = measured(gradient_lowest=ratio, gradient_last=ratio)
        place = {"optimizer": optimizer, "measured": at, "outcome": "stuck" if fails else "trains", **given}
        found.append(row(start + i, **place))
    return found


def test_an_optimiser_whose_failures_are_told_is_given_a_forecast_and_joined() -> None:
    found = Joined.of(corpus(), of("adamw", 40, 12))
    assert found.optimizers == {"adam", "adamw"} and len(found.fitted) == len(found.corpus) + 40
    assert found.before.weight == pytest.approx(Joined.of(corpus(), ()).before.weight)


def test_one_whose_failures_are_not_told_or_are_too_few_is_not() -> None:
    blind, few = of("muon", 40, 12, seen=False), of("muon", 40, FAILED - 1)
    for rows in (blind, few):
        found = Joined.of(corpus(), [*of("adamw", 40, 12), *rows])
        assert found.optimizers == {"adam", "adamw"} and len(found.fitted) == len(found.corpus) + 40
        assert any("None is given under Muon" in text for text in joined_words.paragraphs(found))


@pytest.mark.slow
def test_a_method_whose_failures_are_not_told_abstains_and_blocks_are_judged_by_known_optimisers() -> None:
    rows = [*of("adamw", 40, 12, block="llama"), *of("muon", 40, 12, seen=False, method="dyt")]
    assert Joined.of(corpus(), rows).abstains == set(), "only under an optimiser without a forecast"
    found = Joined.of(corpus(), [*rows, *of("adam", 20, 10, seen=False, method="dyt")])
    assert found.abstains == {"dyt"} and "llama" in found.blocks
    body = document(found.corpus, found.rows)
    assert (body["optimizers"], body["abstains"], body["blocks"]) == (["adam", "adamw"], ["dyt"], ["classic", "llama"])
    text = " ".join(joined_words.paragraphs(found))
    assert "None is given for DyT" in text and f"below {TRUSTED:g}" in text


@pytest.mark.slow
def test_the_page_has_them_and_survives_having_none(undrawn: None) -> None:
    some = tuple(corpus(60))
    study: Any = SimpleNamespace(rows=some, design=DESIGN, commands=DESIGN.commands, path=ROWS, missing=(), failed=())
    evaluation = Evaluation(some)
    joined, none = Joined.of(some, of("adamw", 40, 12)), Joined.of(some, ())
    whole = page.render(study, evaluation, joined, Baselines(joined).schemes, "python -m studies forecast")
    assert "updates tell which of the papers&#39; methods train under Adam (AUC" in whole and "gradient alone" in whole
    assert "under AdamW" in whole and "12 of 40 fail" in whole and "Do forecasts come true?" in whole
    few = Evaluation(some[:1])
    assert "What the corpus lacks" not in page.render(study, few, none, (), "stabkit")
    assert joined_words.to_json(none) == {} and joined_words.paragraphs(none) == []


# — what is committed —


def test_the_committed_rows_are_of_the_study_and_read_back_to_the_byte() -> None:
    found = from_csv(ROWS)
    assert to_csv(found) == ROWS.read_bytes()
    assert {one.method for one in found} == set(KEYS) and {one.block for one in found} == set(BLOCKS)
    assert {one.rate for one in found if one.seed != SEED} == {RATE}
    assert {one.rate for one in found if one.seed == SEED} <= set(RUNGS)
    assert sum(one.outcome == "early" for one in found) <= 0.05 * len(found)


@pytest.fixture(scope="module")
def committed() -> Joined:
    return Joined.of(Evaluation(from_csv(DOCS / "forecast.csv")).fitted_rows, rows_beside(DOCS))


@pytest.mark.slow
def test_the_forecast_was_scored_before_it_was_joined(committed: Joined) -> None:
    """The coefficients hold the fit without these runs, and that is the one by which they are judged."""
    body = document(committed.corpus, committed.rows)
    assert len(joined(from_csv(ROWS))) >= 120 and len(committed.runs.of("block")) == 2
    assert body["before"]["runs"] == len(committed.corpus) < body["runs"] == len(committed.fitted)
    assert committed.before.weight == pytest.approx(body["before"]["weight"])
    assert committed.runs.highest == max(one.rate for one in committed.corpus) == 0.03


def test_what_the_forecast_misses_gets_none(committed: Joined) -> None:
    """Told before it is joined: skill by runs of both outcomes, or against everyone's base rate where all end alike."""
    near = committed.known.within
    doubted = {key for key, one in near.of("method").items() if near.skill(one.whole) < TRUSTED}
    assert committed.abstains == doubted - {one.method for one in committed.corpus}
    alike = near.of("method")["peri-ln"].whole
    share = near.whole.base_rate
    assert alike.trained == alike.n and near.skill(alike) == pytest.approx(1 - alike.brier / (share * (1 - share)))
    for name in committed.optimizers - {"adam"}:
        whole = committed.runs.within.of("optimizer")[name].whole
        assert whole.skill >= TRUSTED and whole.n - whole.trained >= FAILED


def test_how_many_trained_whose_gradient_was_lost_is_counted_on_the_committed_rows() -> None:
    rows = [row for name in ("forecast.csv", "later.csv", "2026.csv") for row in from_csv(ROWS.parent / name)]
    judged = [row for row in rows if row.measured and row.outcome != "early"]
    lost = [row for row in judged if row.profile and row.profile.gradient_lowest < LOST]
    assert (sum(row.trains for row in lost), len(lost)) == RECOVERED
    early = [row for row in judged if row.measured and row.measured.gradient_lowest < LOST]
    assert (sum(row.trains for row in early), len(early)) == (0, 126)


@pytest.mark.slow
def test_the_docs_have_the_forecast_beside_what_costs_less(committed: Joined) -> None:
    lines = table_lines(("held out", *baselines.HEADS), baselines.table(Baselines(committed).schemes))
    assert "\n".join(lines) in (ROWS.parent / "forecast.md").read_text()
    assert Baselines(committed).alone() == ("adamw",), "as in the package's coefficients"
