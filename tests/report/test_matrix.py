"""The verdict matrix and the page's one sentence, as values."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from stabkit.methods import KEYS
from stabkit.methods.blocks import BLOCKS, Block
from stabkit.report.verdict import legend
from stabkit.report.verdict.answer import answer
from stabkit.report.verdict.headline import headline, mixing, separation
from stabkit.report.verdict.matrix import matrix
from stabkit.results.run import Run
from stabkit.words import several
from tests.figures.fake_runs import MEASURED, at16, plausible, run, spec, sweep, table


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
    assert cell.gradient_ratio == pytest.approx(math.sqrt(0.3e-6)), "between two medians"
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


def test_the_sentence_compares_the_two_that_differ_most_at_the_deepest_depth() -> None:
    runs = [at16("post-ln", 100, 4.54, ratio=1.3e-14), at16("admin", 100, 0.83), at16("deepnorm", 100, 0.11)]
    runs += [at16("post-ln", 6, 0.27), at16("deepnorm", 6, 0.02)]
    assert headline(runs) == (
        "At 100L-100L Post-LN's first 16 updates move the output 41 times as far as DeepNorm's; "
        "its lowest decoder layer receives 10⁻¹⁴ of the top layer's gradient at its lowest."
    )


def test_the_sentence_says_how_both_end_once_they_are_judged() -> None:
    runs = [at16("post-ln", 18, 8.0, "stuck", seed=s) for s in (0, 1)]
    runs += [at16("deepnorm", 18, 2.0, "trains", seed=s) for s in (0, 1, 2)]
    assert headline(runs) == "At 18L-18L Post-LN is stuck where DeepNorm trains, in every seed."
    runs.append(at16("post-ln", 18, 8.0, "trains", seed=2))
    assert "Post-LN is stuck in 2 of 3 runs where DeepNorm trains in 3 of 3 runs" in headline(runs)


def test_the_sentence_does_not_compare_what_is_not_paired() -> None:
    unpaired = [at16("post-ln", 18, 8.0, seed=0), at16("deepnorm", 18, 2.0, seed=1)]
    assert "times as far as" not in headline(unpaired)
    mixed = [at16("post-ln", 18, 8.0, warmup=0), at16("deepnorm", 18, 2.0)]
    assert "times as far as" not in headline(mixed)


def test_where_all_have_saturated_the_first_update_is_compared() -> None:
    def saturated(method: str, first: float, ratio: float) -> Run:
        made = spec(method, 18, warmup=0)
        return run(made, {"update": table([0, 1, 16], {"state": [0.0, first, 9.5]})}, gradient_ratio_lowest=ratio)

    assert headline([saturated("post-ln", 6.0, 1e-7), saturated("deepnorm", 1.2, 0.04)]) == (
        "At 18L-18L Post-LN's first update moves the output 5.0 times as far as DeepNorm's; "
        "its lowest decoder layer receives 10⁻⁷ of the top layer's gradient at its lowest."
    )
    assert headline([saturated("post-ln", 6.0, 1e-7), saturated("deepnorm", 6.6, 0.04)]) == (
        "At 18L-18L DeepNorm's first update moves the output about as far as Post-LN's; "
        "Post-LN's lowest decoder layer receives 10⁻⁷ of the top layer's gradient at its lowest."
    )


def test_the_sentence_of_one_method_speaks_of_its_depths() -> None:
    runs = [at16("post-ln", n, v, seed=s) for n, v in ((6, 0.25), (18, 0.5), (50, 2.0)) for s in (0, 1)]
    assert headline(runs) == "From 6L-6L to 50L-50L Post-LN's first 16 updates move the output 8.0 times as far."
    assert headline(runs[:1]) == (
        "At 6L-6L Post-LN's first 16 updates move the output by 0.25, where its length is √64 = 8.0."
    )


def test_the_sentence_names_divergence() -> None:
    lost = [plausible(spec("post-ln", 18, seed=s), until=3) for s in (0, 1)]
    assert headline(lost) == "At 18L-18L Post-LN diverges in 2 of 2 runs."
    both = [*lost, *(at16(m, 6, v) for m, v in (("admin", 3.0), ("deepnorm", 1.0)))]
    assert headline(both).endswith("as far as DeepNorm's; at 18L-18L Post-LN diverges in 2 of 2 runs.")


def test_the_sentence_of_nothing() -> None:
    assert headline([]) == "No run has a result yet."
    assert headline([], [(spec(), "x")]) == "No run has a result: all 1 failed."
    assert headline([run(spec("admin"), {})]) == "One run of ADMIN has ended; it has no model update to compare."


def test_whether_the_gradient_ratio_separates_is_computed() -> None:
    def stuck(ratio: float, end: float = 6.0) -> Run:
        made = at16("post-ln", 18, 1.0, "stuck", ratio=ratio)
        made.records["loss"] = table([0, 13, 16], {"probe": [6.0, 6.0, end]})  # type: ignore[index]
        return made

    trains = at16("deepnorm", 18, 1.0, "trains", ratio=0.2)
    told = separation([trains, stuck(1e-6)])
    assert told.startswith("On this page, 1 stuck run by the loss alone, all Post-LN at 18L-18L: gradient ratio ")
    assert "at least 0.200 in runs that train, at most 10⁻⁶ in stuck ones (no overlap)" in told
    assert "0.400 in stuck ones (they overlap)" in separation([trains, stuck(0.4)])
    assert separation([trains]) == "" == separation([trains, stuck(1e-6, end=5.0)]), "its loss was still falling"


def test_many_methods_are_counted_and_the_sentence_keeps_its_verb() -> None:
    def ends(training: tuple[str, ...]) -> str:
        return headline([at16(key, 18, 1.0, "trains" if key in training else "stuck") for key in KEYS])

    assert ends(("deepnorm", "pre-ln")).startswith("At 18L-18L 30 of 32 methods fail where Pre-LN and DeepNorm train")
    few = tuple(key for key in KEYS if key not in ("post-ln", "admin"))
    assert ends(few).startswith("At 18L-18L Post-LN is stuck and ADMIN is stuck where 30 of 32 methods train")
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


def test_by_how_much_mixings_let_a_stream_grow_is_told_of_who_mixes_where_it_is_deepest() -> None:
    def mixes(method: str, depth: int, gain: float, seed: int = 0) -> Run:
        made = at16(method, depth, 1.0, seed=seed)
        made.records["mixing"] = table([0, 16], {"e1.attn": [1.0, 1.0], "e1.ffn": [1.0, gain]})  # type: ignore[index]
        return made

    runs = [mixes("mhc", 18, 1.004), mixes("hyper-connections", 6, 900.0)]
    runs += [mixes("hyper-connections", 18, gain, seed) for seed, gain in enumerate((54.2, 20.0))]
    assert mixing([*runs, at16("pre-ln", 50, 1.0)]) == (
        "their product lets a stream grow by at most 1.00 times with mHC at 18L-18L, 54.2 times with Hyper-connections "
        "at 18L-18L."
    )
    assert mixing([at16("pre-ln", 50, 1.0)]) == ""
