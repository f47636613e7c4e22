"""DeepNet's Table 1 of our own runs: rates, words and groups exactly; and the claims that repeat the paper's."""

from __future__ import annotations

import math

import pandas as pd
import pytest
from matplotlib.colors import to_rgb
from matplotlib.patches import Rectangle

from stabkit import methods
from stabkit.claims.deepnet import table1 as rows
from stabkit.claims.verdict import judge
from stabkit.figures.drawing.palette import OUTCOME_COLOURS
from stabkit.figures.methods import table1
from stabkit.methods.groups import group_of
from stabkit.results.run import Run
from tests.figures.fake_runs import known, run, spec

X = None
PAPER: dict[str, tuple[str, tuple[float | None, ...]]] = {
    "Vanilla Post-LN": ("Post-LN", (28.1, X, X, X)),
    "DS-Init": ("Post-LN", (27.9, X, X, X)),
    "Admin": ("Post-LN", (27.9, 28.8, X, X)),
    "ReZero": ("No-LN", (26.9, X, X, X)),
    "R-Fixup": ("No-LN", (27.5, 28.4, 27.7, X)),
    "T-Fixup": ("No-LN", (27.5, 28.4, 27.9, X)),
    "Vanilla Pre-LN": ("Pre-LN", (27.0, 28.1, 28.0, 27.4)),
    "DLCL": ("Pre-LN", (27.4, 28.2, X, 27.5)),
    "NormFormer": ("Pre-LN", (27.0, 28.3, 27.8, X)),
    "DEEPNET (ours)": ("DEEPNORM", (27.8, 28.8, 29.0, 28.9)),
}
"""DeepNet (journal version), Table 1, as printed: {model: (LN, BLEU at 6L-6L, 18L-18L, 50L-50L and 100L-100L)}; X is
"diverged", which the paper prints once across all columns that it is meant for."""


def ended(method: str, depth: int, word: str, loss: float = 5.0, **changes: object) -> Run:
    made = run(spec(method, depth, **{"warmup": 0, "steps": 250, **changes}), {}, word)  # type: ignore[arg-type]
    known(made, validation_loss=loss, steps=250)
    return made


def seeds(method: str, depth: int, *words: str, **changes: object) -> list[Run]:
    return [ended(method, depth, word, 5.0 + seed, seed=seed, **changes) for seed, word in enumerate(words)]


def test_the_frame_holds_every_run_in_the_order_of_the_papers_groups() -> None:
    runs = [ended(key, 6, "trains") for key in ("deepnorm", "pre-ln", "rezero", "post-ln", "sub-ln", "admin")]
    runs.append(ended("post-ln", 18, "stuck", 5.99))
    frame = table1.select(runs)
    assert frame[["group", "label", "depth"]].to_numpy().tolist() == [
        ["Post-LN", "Post-LN", "6L-6L"],
        ["Post-LN", "Post-LN", "18L-18L"],
        ["Post-LN", "ADMIN", "6L-6L"],
        ["No-LN", "ReZero", "6L-6L"],
        ["Pre-LN", "Pre-LN", "6L-6L"],
        ["Pre-LN", "Sub-LN", "6L-6L"],
        ["DeepNorm", "DeepNorm", "6L-6L"],
    ]
    last = runs[-1]
    facts = [last.run_id, "post-ln", "Post-LN", "", "18L-18L", 18, 18, 0, "stuck"]
    expected = pd.DataFrame([[*facts, "Post-LN", 250, 6.0, 5.99]], columns=list(table1.COLUMNS))
    pd.testing.assert_frame_equal(frame.iloc[[1]].reset_index(drop=True), expected)


def test_every_method_stands_in_the_papers_group_and_a_strange_one_last() -> None:
    groups = {method.key: group_of(method) for method in methods.DEFAULTS}
    for key, (printed, _) in zip(rows.ROWS, PAPER.values(), strict=True):
        assert groups[key].lower() == printed.lower()
    frame = table1.select([ended("tomorrow", 6, "trains"), ended("deepnorm", 6, "trains")])
    assert frame["group"].tolist() == ["DeepNorm", "other"]
    assert set(groups.values()) | {"other"} == set(table1.GROUPS)


def test_nothing_is_selected_where_no_run_was_judged_and_scaled_runs_never_are() -> None:
    early = [ended("post-ln", 6, "early"), ended("deepnorm", 6, "early")]
    for runs in ([], early, [*early, ended("deepnorm", 6, "trains", alpha_scale=2.0)]):
        frame = table1.select(runs)
        assert frame.empty and tuple(frame.columns) == table1.COLUMNS
        assert table1.title(runs) == "Which method trains at which depth"
        assert table1.PICTURE.described(frame) == "No run was judged."
    assert len(table1.select([*early, ended("admin", 6, "stuck")])) == 3, "beside a judged one the others are shown"


def words(*runs: Run) -> tuple[str, str]:
    return table1.words(table1.select(runs))


def test_a_cell_is_a_rate_over_seeds_and_the_median_loss_of_those_that_train() -> None:
    assert words(*seeds("post-ln", 6, *["trains"] * 4)) == ("4/4 train", "6.50")
    mixed = ("trains", "stuck", "trains", "diverged", "stuck")
    assert words(*seeds("post-ln", 6, *mixed)) == ("2/5 train", "6.00; 1 diverged, 2 stuck")
    assert words(*seeds("post-ln", 6, "stuck", "stuck")) == ("0/2 train", "5.50; 2 stuck")


def test_a_single_run_is_called_one_and_a_diverged_one_has_no_loss() -> None:
    assert words(ended("post-ln", 6, "stuck", 5.99)) == ("1 run: stuck", "5.99")
    assert words(ended("post-ln", 6, "diverged", math.nan)) == ("1 run: diverged", "–")
    assert words(*(ended("post-ln", 6, "diverged", math.nan, seed=s) for s in (0, 1))) == ("0/2 train", "–; 2 diverged")


def test_the_title_names_who_trains_and_who_does_not_at_the_deepest_depth_with_several_seeds() -> None:
    runs = [*seeds("deepnorm", 18, "trains", "trains"), *seeds("post-ln", 18, "stuck", "diverged")]
    runs += [*seeds("pre-ln", 18, "trains", "trains"), *seeds("admin", 18, "trains", "stuck")]
    assert table1.title(runs) == "At 18L-18L Pre-LN and DeepNorm train in every run, Post-LN in none"
    assert table1.title([*runs, ended("admin", 50, "trains")]) == table1.title(runs), "one seed is no rate"
    assert table1.title(seeds("admin", 6, "trains", "stuck")) == (
        "At 6L-6L every method trains in some runs, none in all"
    )
    assert table1.title([ended("post-ln", 6, "stuck"), ended("post-ln", 18, "trains")]).startswith("At 18L-18L Post-LN")
    every = [ended(key, 6, "trains") for key in methods.KEYS]
    assert table1.title(every) == "At 6L-6L all 32 methods train"
    assert table1.title([*every, ended("post-ln", 6, "stuck", seed=1)]).startswith("At 6L-6L 31 of 32 methods train")


def test_the_text_of_the_picture_names_every_cell() -> None:
    runs = [*seeds("deepnorm", 18, "trains", "stuck"), ended("post-ln", 6, "diverged", math.nan)]
    assert table1.PICTURE.described(table1.select(runs)) == (
        "Table of outcomes. Post-LN, 6L-6L 1 run: diverged; DeepNorm, 18L-18L 1/2 train."
    )


def test_the_picture_has_a_row_a_method_under_its_group_and_marks_single_and_diverged_runs() -> None:
    runs = [*seeds("deepnorm", 6, "trains", "trains"), *seeds("deepnorm", 18, "trains", "stuck")]
    runs += [ended("post-ln", 6, "stuck"), ended("post-ln", 18, "diverged", math.nan)]
    (axes,) = table1.PICTURE.drawn(table1.select(runs)).axes
    assert [label.get_text() for label in axes.get_xticklabels()] == ["6L-6L", "18L-18L"]
    texts = [text.get_text() for text in axes.texts]
    assert [text for text in texts if text in (*table1.GROUPS, "1 run: diverged", "2/2 train")] == [
        *("Post-LN", "Post-LN", "1 run: diverged"),  # the group and its method
        *("DeepNorm", "DeepNorm", "2/2 train"),
    ]
    patches = [patch for patch in axes.patches if isinstance(patch, Rectangle)]
    assert [patch.get_linewidth() > 0 for patch in patches] == [True, True, False, False], "a single run is dashed"
    assert [patch.get_facecolor()[:3] for patch in patches] == [
        pytest.approx(to_rgb(OUTCOME_COLOURS[word])) for word in ("stuck", "diverged", "trains", "some")
    ]


# The claims of claims/deepnet/table1.py


def test_the_rows_are_those_of_the_papers_table() -> None:
    printed = ["".join("-" if bleu is X else "+" for bleu in row) for _, row in PAPER.values()]
    assert list(rows.ROWS.values()) == printed
    assert rows.DEPTHS == (6, 18, 50, 100)
    assert [methods.label(key, {}) for key in rows.ROWS] == [
        *("Post-LN", "DS-Init", "ADMIN", "ReZero", "R-Fixup", "T-Fixup", "Pre-LN", "DLCL", "NormFormer", "DeepNorm")
    ]


CLAIM = {claim.key.removeprefix("table1-"): claim for claim in rows.CLAIMS}


def verdict(key: str, *runs: Run) -> str:
    return judge(CLAIM[key], runs).verdict


AS_LONG = {"warmup": 4000, "steps": 8000, "max_tokens": 4000}
"""As the paper trains."""


def as_printed(key: str) -> list[Run]:
    pattern = rows.ROWS[key]
    good, bad = "trains", ("stuck", "diverged")
    return [
        ended(key, depth, good if sign == "+" else bad[i % 2], seed=seed, **AS_LONG)
        for i, (depth, sign) in enumerate(zip(rows.DEPTHS, pattern, strict=True))
        for seed in (0, 1)
    ]


@pytest.mark.parametrize("key", [key for key in CLAIM if key != "rezero"])
def test_a_row_holds_where_every_depth_ends_as_printed_and_is_mixed_where_one_does_not(key: str) -> None:
    runs = as_printed(key)
    assert verdict(key, *runs) == "holds" and verdict(key) == "untested"
    for depth in rows.DEPTHS:
        others = [made for made in runs if made.spec.model.encoder_layers != depth]
        word = "trains" if runs[2 * rows.DEPTHS.index(depth)].outcome.word != "trains" else "stuck"
        found = judge(CLAIM[key], [*others, *seeds(key, depth, word, word, **AS_LONG)])
        assert found.verdict == "mixed" and f"fails at {depth}L-{depth}L" in found.measured
        assert judge(CLAIM[key], others).reason == f"not tested: {depth}L"
    assert all(verdict(own, *runs) == "untested" for own in CLAIM if own != key)


def test_rezeros_divergence_is_one_of_half_precision_and_out_of_reach() -> None:
    found = judge(CLAIM["rezero"], as_printed("rezero"))
    words = [place.verdict for place in found.places]
    assert found.verdict == "undecided" and words == ["holds", *["out of reach"] * 3]


def test_the_paper_is_told_beside_a_cell() -> None:
    found = judge(CLAIM["dlcl"], seeds("dlcl", 50, "trains", "trains", **AS_LONG))
    assert found.verdict == "fails" and "DLCL: 2 of 2 trains; paper: diverged (50L-50L)" in found.measured


def test_seeds_that_differ_leave_a_cell_undecided_and_so_do_runs_too_short_to_judge() -> None:
    assert verdict("post-ln", *seeds("post-ln", 6, "trains", "stuck", **AS_LONG)) == "undecided"
    assert verdict("post-ln", *seeds("post-ln", 18, "diverged", "stuck", **AS_LONG)) == "undecided", "6L is not tested"
    assert verdict("post-ln", *seeds("post-ln", 18, "diverged", "stuck")) == "out of reach", "without warm-up"
    for depth, words in ((6, ("early", "trains")), (18, ("early", "stuck")), (18, ("early", "early"))):
        assert verdict("post-ln", *seeds("post-ln", depth, *words)) == "untested"


def test_other_depths_unequal_stacks_options_factors_and_own_recipes_are_not_the_papers_rows() -> None:
    elsewhere = [
        ended("post-ln", 12, "stuck"),
        run(spec("post-ln", 6, 18, warmup=0, steps=250), {}, "stuck"),
        run(spec("post-ln", 18, 6, warmup=0, steps=250), {}, "trains"),
        run(spec("post-ln", 0, 6, warmup=0, steps=250), {}, "stuck"),
        ended("post-ln", 6, "stuck", recipe="paper"),
    ]
    assert verdict("post-ln", *elsewhere) == "untested"
    assert verdict("admin", ended("admin", 6, "stuck", options={"omega": "closed"})) == "untested"
    assert verdict("deepnorm", ended("deepnorm", 6, "stuck", alpha_scale=2.0)) == "untested"


def test_sentences_say_where_a_row_trains_and_where_it_diverges() -> None:
    assert CLAIM["admin"].sentence == "ADMIN trains at 6L and 18L and diverges at 50L and 100L."
    assert CLAIM["dlcl"].sentence == "DLCL trains at 6L, 18L and 100L and diverges at 50L."
    assert CLAIM["deepnorm"].sentence == "DeepNorm trains at 6L, 18L, 50L and 100L."


def test_conditions_stand_one_after_the_other_by_their_values() -> None:
    runs = [ended(method, 6, "trains", lr=lr) for lr in (3.0, 1e-2, 5e-4) for method in ("deepnorm", "post-ln")]
    frame = table1.select(runs)
    assert frame[["condition", "method"]].to_numpy().tolist() == [
        [f"lr {lr}", method] for lr in ("0.0005", "0.01", "3") for method in ("post-ln", "deepnorm")
    ]
    warm = [ended("post-ln", 6, "trains", warmup=warmup) for warmup in (4000, 500, 0)]
    assert table1.select(warm)["condition"].tolist() == ["no warm-up", "warm-up 500", "warm-up 4000"]
