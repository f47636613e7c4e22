"""The sentence that answers: by verdict or by forecast, computed from the matrix."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from stabkit.report.provenance import condition
from stabkit.report.sweep_document import cells
from stabkit.results.forecast import model
from stabkit.results.forecast.logistic import word
from stabkit.results.forecast.model import Forecast
from stabkit.results.matrix import matrix
from stabkit.results.outcome import AT_UNIGRAM
from stabkit.results.run import Run
from stabkit.wording import legend
from stabkit.wording.answer import answer, in_short
from stabkit.words import HEADLINE, fitting
from tests.figures.fake_runs import at16
from tests.report.pages import render

DEPTHS = (6, 18, 50)


def told(method: str, *ps: float | None, axes: tuple[str, ...] = (), **changes: object) -> list[Run]:
    """Early runs of a method at DEPTHS with these probabilities."""
    runs = []
    for depth, p in zip(DEPTHS, ps, strict=False):
        run = at16(method, depth, 9.0, warmup=0, **changes)
        run.__dict__["forecast"] = Forecast(word=word(p), p_trains=p, features={}, axes=axes, corpus="ab")
        runs.append(run)
    return runs


def test_methods_that_share_a_fate_are_named_together() -> None:
    runs = [*told("post-ln", 0.95, 0.02, 0.01), *told("admin", 0.97, 0.96, 0.95), *told("deepnorm", 0.99, 0.99, 0.99)]
    assert answer(matrix(runs)) == (
        "Without warm-up at 5e-4, forecast for 400 updates from the first 16, 1 seed, synthetic task. Post-LN is "
        "forecast to train at 6L-6L, to fail from 18L-18L on. ADMIN and DeepNorm are forecast to train at "
        "every depth."
    )


def test_where_one_seed_trains_and_another_does_not_no_word_is_of_every_seed() -> None:
    runs = [at16("deepnorm", 18, 9.0, word, warmup=0, seed=seed) for seed, word in enumerate(("trains", "stuck"))]
    runs += [at16("deepnorm", 6, 9.0, "stuck", warmup=0, seed=seed) for seed in range(2)]
    assert answer(matrix(runs)).endswith("DeepNorm is stuck at 6L-6L, trains in some seeds only at 18L-18L.")
    assert in_short(matrix(runs)) == "At 18L-18L DeepNorm trains in some seeds only."


def test_between_the_firm_words_a_forecast_is_probable_or_undecided() -> None:
    said = answer(matrix([*told("deepnorm", 0.95, 0.8, 0.4), *told("admin", 0.2, 0.3, 0.05)]))
    assert "DeepNorm is forecast to train at 6L-6L, probably trains at 18L-18L, is undecided at 50L-50L" in said
    assert "ADMIN probably fails to 18L-18L, is forecast to fail at 50L-50L" in said


def test_out_of_range_names_the_axis_and_the_way_out() -> None:
    runs = told("deepnorm", None, None, None, axes=("warm-up",))
    assert answer(matrix(runs)).endswith("(warm-up): the warm-up hides the answer; `--warmup 0` shows it.")
    wide = told("deepnorm", None, None, None, axes=("width",))
    assert answer(matrix(wide)).endswith("(width): no forecast is given.")
    (row,) = matrix(wide).rows
    assert [legend.notes(cell)[0] for cell in row.cells] == ["outside the forecast's range: width"] * 3
    beside = answer(matrix([*wide, *told("post-ln", 0.05)]))
    assert "Post-LN is forecast to fail at 6L-6L" in beside and "DeepNorm is undecided at every depth" in beside


def test_a_forecast_is_told_apart_from_what_was_seen() -> None:
    seen = [at16("deepnorm", 6, 9.0, "trains", warmup=0), at16("deepnorm", 18, 9.0, "stuck", warmup=0)]
    assert answer(matrix(seen)).startswith(
        "Without warm-up at 5e-4, after 16 updates, 1 seed, synthetic task. DeepNorm"
    )
    runs = [*seen, *told("post-ln", 0.95, 0.02)]
    assert answer(matrix(runs)).endswith(
        "Post-LN is forecast to train at 6L-6L, to fail at 18L-18L. DeepNorm trains at 6L-6L, is stuck at "
        "18L-18L. Forecasts are for 400 updates from the first 16."
    )
    assert in_short(matrix(runs)) == "At 18L-18L DeepNorm is stuck; Post-LN is forecast to fail."
    tints = [legend.tint(cell) for row in matrix(runs).rows for cell in row.cells]
    assert tints == ["forecast trains", "forecast fails", "trains", "stuck"]
    assert [cell["basis"] for cell in cells(matrix(runs))] == ["forecast", "forecast", "seen", "seen"]


@pytest.mark.parametrize("axis", ["warm-up", "<warm-up>"])
def test_a_command_in_the_headline_is_set_as_one(axis: str) -> None:
    page = render(told("deepnorm", None, axes=("warm-up", axis)), command="x")
    (headline,) = re.findall('<p class="headline">(.*)</p>', page)
    assert headline.endswith("<code>--warmup 0</code> shows it.") and "<warm-up>" not in headline


def test_a_headline_names_the_deepest_depth_and_counts_where_names_are_too_long() -> None:
    few = matrix([*told("deepnorm", 0.95, 0.95), *told("admin", 0.95, 0.5)])
    assert in_short(few) == "At 18L-18L DeepNorm is forecast to train; ADMIN is undecided."
    four = {"deepnorm": 0.95, "admin": 0.5, "post-ln-init": 0.5, "post-ln": 0.02}
    assert in_short(matrix([run for method, p in four.items() for run in told(method, 0.95, p)])) == (
        "At 18L-18L DeepNorm is forecast to train, Post-LN to fail; 2 are undecided."
    )
    assert in_short(matrix(told("deepnorm", 0.95, 0.95))) == "DeepNorm is forecast to train at every depth."
    names = ("pre-ln", "deepnorm", "admin", "residual", "rezero", "sub-ln", "dyt", "keel", "peri-ln", "mix-ln")
    many = matrix([run for i, name in enumerate(names) for run in told(name, (0.95, 0.02)[i % 2])])
    assert in_short(many) == "At 6L-6L 5 of 10 methods are forecast to train; 5 of 10 methods are forecast to fail."


def test_no_headline_is_longer_than_a_line() -> None:
    assert fitting("a" * 91, "b" * 90 + ".") == "b" * 90 + "."
    assert fitting("word " * 30).endswith("…") and len(fitting("word " * 30)) <= HEADLINE


def test_without_verdict_or_forecast_there_is_no_answer() -> None:
    assert answer(matrix([at16("deepnorm", 6, 1.0)])) == "" and answer(matrix([])) == ""


@pytest.mark.parametrize(
    ("ps", "word", "p", "shown"),
    [
        ((0.99, 0.8, 0.97), "probably trains", 0.8, "0.80"),
        ((0.97, 0.5), "undecided", 0.5, "0.50"),
        ((0.2, 0.95, 0.97), "undecided", 0.2, "0.20 to 0.97"),
        ((0.05, 0.3), "fails", 0.05, "0.05"),
        ((0.05, None), "undecided", None, ""),
    ],
)
def test_a_cell_is_said_by_its_least_likely_seed(ps: Sequence[float | None], word: str, p: float, shown: str) -> None:
    runs = [one for seed, p in enumerate(ps) for one in told("deepnorm", p, seed=seed, axes=("width",) * (p is None))]
    (cell,) = cells(matrix(runs))
    assert (cell["word"], cell["p_trains"]) == (word, p)
    ((given,),) = (row.cells for row in matrix(runs).rows)
    assert legend.probability(given) == shown and given.seeds_differ == ("to" in shown)
    assert cell["run_ids"] == [run.run_id for run in runs]
    assert (cell["model"], cell["encoder_layers"], cell["decoder_layers"]) == ("deepnorm", 6, 6)


def test_one_condition_after_the_other() -> None:
    runs = [*told("deepnorm", 0.95, lr=1e-3), *told("deepnorm", 0.05, lr=1e-2)]
    said = answer(matrix(runs))
    assert said.startswith(
        "Without warm-up, forecast for 400 updates from the first 16, 1 seed, synthetic task. lr 0.001: DeepNorm "
        "is forecast to train at 6L-6L. lr 0.01: DeepNorm"
    )


def test_of_many_conditions_those_in_which_something_fails_are_told_first() -> None:
    runs = [
        run for lr, p in ((1e-4, 0.95), (1e-3, 0.95), (2e-3, 0.95), (2e-2, 0.05)) for run in told("deepnorm", p, lr=lr)
    ]
    said = answer(matrix(runs))
    assert "lr 0.02: DeepNorm is forecast to fail" in said and "lr 0.002" not in said
    assert said.endswith("The table has 1 more condition.")


def test_a_cell_near_the_line_is_named_and_what_decides_it():
    runs = [at16("post-ln", 18, 9.0, "trains", warmup=0), at16("deepnorm", 18, 3.0, "trains", warmup=0)]
    for run, apart in zip(runs, (0.05, 0.4), strict=True):
        near = replace(run.outcome, steps=250, unigram_loss=6.0, validation_loss=AT_UNIGRAM * 6.0 - apart)
        run.__dict__["outcome"] = near
    assert [run.outcome.near_line for run in runs] == [True, False]
    said = answer(matrix(runs))
    assert said.endswith(" Post-LN at 18L-18L ends within 0.1 nats of the limit: train twice as long to decide.")


def test_a_page_names_the_condition_that_its_sentence_holds_under():
    runs = [at16("post-ln", 18, 9.0, warmup=warmup, seed=seed) for seed in range(3) for warmup in (0, 4000)]
    said = condition([run.spec for run in runs])
    assert said == "Adam at 5e-4, warm-up of 0 and 4000 updates, 16 updates of 512 tokens, seeds 0 to 2, synthetic"
    one = condition([at16("post-ln", 18, 9.0, warmup=0, lr=lr).spec for lr in (1e-3, 2e-3, 4e-3)])
    assert one.startswith("Adam at 1e-3 to 4e-3, no warm-up,") and "seed 0," in one and condition([]) == ""
    assert f'<p class="note">{said}</p>' in render(runs, command="stabkit sweep")


def test_a_method_that_the_fit_has_not_seen_is_named() -> None:
    runs = told("deepnorm", 0.95)
    runs[0].__dict__["forecast"] = replace(runs[0].forecast, unseen=True)
    assert answer(matrix(runs)).endswith(
        " The forecast's fit has no run of DeepNorm: with methods that it had not seen, its AUC was 0.94 (Adam)."
    )
    assert cells(matrix(runs))[0]["unseen"] is True


def test_the_worth_of_a_forecast_for_an_unseen_method_is_that_of_the_study() -> None:
    page = Path("docs/evidence/forecast.md").read_text(encoding="utf-8")
    for name, auc in model.UNSEEN.values():
        (row,) = re.findall(rf"\| every method unseen in turn, {name} \|[^|]*\| ([\d.]+)/", page)
        assert float(row) == auc, name


def loss_of(method: str, losses: Sequence[float], depth: int = 6) -> list[Run]:
    """A run a seed that ended at these losses."""
    runs = [at16(method, depth, 9.0, "trains", warmup=0, seed=seed) for seed in range(len(losses))]
    for run, loss in zip(runs, losses, strict=True):
        run.__dict__["outcome"] = replace(run.outcome, validation_loss=loss)
    return runs


def test_the_lowest_loss_is_marked_only_where_the_seeds_separate_it() -> None:
    near = matrix([*loss_of("deepnorm", [5.0, 5.1]), *loss_of("admin", [5.05, 5.2])])
    assert not near.lowest
    clear = matrix([*loss_of("deepnorm", [5.0, 5.1]), *loss_of("admin", [5.11, 5.2])])
    assert len(clear.lowest) == 1 and "lowest" not in in_short(clear), "another rate may order them otherwise"
    assert not matrix([*loss_of("deepnorm", [5.0]), *loss_of("admin", [5.04])]).lowest, "single seeds"
    assert matrix([*loss_of("deepnorm", [5.0]), *loss_of("admin", [5.06])]).lowest


def test_the_fit_knows_its_own_methods_and_no_user_s() -> None:
    spec = at16("deepnorm", 18, 9.0).spec
    by = model.ours()
    assert not model.unseen(spec, by) and model.unseen(replace(spec, method="nowhere"), by)
