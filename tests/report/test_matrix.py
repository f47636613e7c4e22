"""The verdict matrix and the page's one sentence, as values."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from stabkit.methods.blocks import BLOCKS, Block
from stabkit.results.matrix import matrix
from stabkit.results.run import Run
from stabkit.wording import legend
from stabkit.wording.answer import answer, instead
from stabkit.words import several
from tests.figures.fake_runs import MEASURED, at16, plausible, run, spec, sweep


def test_rows_are_methods_in_table_order_and_columns_depths() -> None:
    verdicts = matrix(list(reversed(sweep((6, 18)))))
    assert verdicts.depths == ("6L-6L", "18L-18L")
    assert [row.label for row in verdicts.rows] == ["Post-LN", "Post-LN-init", "ADMIN", "DeepNorm"]
    assert [row.group for row in verdicts.rows] == ["Post-LN", "Post-LN", "Post-LN", "DeepNorm"]
    assert [row.method for row in verdicts.rows] == list(MEASURED)
    assert not verdicts.has_conditions and verdicts.reference_step == 16


def test_a_cell_counts_its_seeds_worst_first_and_takes_the_centre() -> None:
    runs = [
        at16("post-ln", 18, 1.0, "trains", seed=0, ratio=0.3),
        at16("post-ln", 18, 100.0, "diverged", seed=1, ratio=math.inf),
        at16("post-ln", 18, math.nan, "trains", seed=2, ratio=1e-6),
    ]
    cell = matrix(runs).rows[0].cells[0]
    assert legend.outcomes(cell) == "diverged 1/3, trains 2/3" and cell.worst == "diverged" and cell.total == 3
    assert cell.update == pytest.approx(10.0) and not cell.at_risk
    assert cell.run_ids == tuple(made.run_id for made in runs)
    assert [outcome.word for outcome in cell.ended] == ["trains", "diverged", "trains"]


def test_missing_and_failed_cells_are_shown_as_such() -> None:
    verdicts = matrix([at16("post-ln", 6, 1.0, "trains")], [(spec("deepnorm", 18), "killed by \x1b[31msignal 9")])
    post, deep = verdicts.rows
    assert [legend.outcomes(cell) for cell in post.cells] == ["trains", "–"] and legend.tint(post.cells[1]) == "missing"
    assert [legend.outcomes(cell) for cell in deep.cells] == ["–", "failed"]
    assert deep.cells[1].reasons == ("killed by \\x1b[31msignal 9",) and math.isnan(deep.cells[1].update)


def test_a_seed_that_failed_is_counted_with_the_others() -> None:
    cell = matrix([at16("post-ln", 6, 1.0, "trains")], [(spec("post-ln", 6, seed=1), "timeout")]).rows[0].cells[0]
    assert legend.outcomes(cell) == "failed 1/2, trains 1/2"


def test_conditions_make_rows_of_their_own() -> None:
    runs = [at16("post-ln", 6, 1.0, "trains", warmup=w) for w in (8, 0)]
    verdicts = matrix([*runs, at16("deepnorm", 6, 1.0, warmup=0)])
    assert [(row.label, str(row.condition)) for row in verdicts.rows] == [
        ("Post-LN", "no warm-up"),
        ("Post-LN", "warm-up 8"),
        ("DeepNorm", "no warm-up"),
    ]


def test_runs_that_are_early_under_a_warm_up_stand_in_the_cells_of_those_without() -> None:
    runs = [at16("post-ln", n, 1.0 + w, ratio=1e-7, warmup=w) for w in (4000, 0) for n in (6, 18)]
    verdicts = matrix(runs)
    (row,) = verdicts.rows
    assert verdicts.warmups == (0,) and not row.condition and [cell.update for cell in row.cells] == [1.0, 1.0]
    assert all(legend.chained(cell)[0].startswith("warm-up 4000: ‖ΔF‖ 4000") for cell in row.cells)
    apart = matrix([*runs, at16("post-ln", 6, 1.0, "trains", warmup=400)])
    assert [str(one.condition) for one in apart.rows] == ["no warm-up", "warm-up 400"], (
        "one that was judged has its row"
    )


def test_runs_without_verdict_or_forecast_say_why() -> None:
    assert instead([]) == "No run has a result yet."
    assert instead([], [(spec(), "x")]) == "No run has a result: all 1 failed."
    assert instead([run(spec("admin", steps=0), {})]).startswith("No update was made")
    assert instead([at16("admin", 6, 1.0)]).endswith("a forecast needs 16 recorded updates, a verdict more.")


def test_many_words_are_counted() -> None:
    assert several(["A"], 9) == "A" and several(["A", "B", "C"], 9) == "A, B and C"
    assert several(list("ABCDE"), 9) == "5 of 9 methods" and several(list("ABCDE"), 5) == "all 5 methods"


def test_the_block_is_named_where_it_is_not_the_papers() -> None:
    def of(key: str, block: Block) -> Run:
        made = spec(key, 18)
        return plausible(replace(made, model=replace(made.model, **BLOCKS[block])), outcome="trains")

    found = matrix([of("post-ln", "llama"), of("deepnorm", "llama")])
    assert found.block == "llama" and "in the block llama" in answer(found)
    both = matrix([of("post-ln", "classic"), of("deepnorm", "llama")])
    assert both.block == "classic" and {str(row.condition) for row in both.rows} == {"classic block", "llama block"}
