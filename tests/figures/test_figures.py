"""The seam's contract: exact frames for a known store, and drawing that survives whatever a store may hold."""

from __future__ import annotations

import importlib
import math
import xml.etree.ElementTree as ET
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from stabkit import figures
from stabkit.figures.ablation.curves import ROBUSTNESS, SCALED, TABLE11
from stabkit.figures.catalogue import CARRIED, FIGURES, SURFACES, WIDENED
from stabkit.figures.chain import findings
from stabkit.figures.chain.layer_curves import GRAD_LAST, GRAD_NORM, GRAD_START
from stabkit.figures.chain.step_curves import LN_INPUT, UPDATE, VALIDATION_LOSS
from stabkit.figures.depth import slope, update_depth
from stabkit.figures.model_curves import OWN, WATCHED
from stabkit.figures.picture import Mark, Note, Picture, RunPicture
from stabkit.methods import with_recipe
from stabkit.report.cards import card, reading
from stabkit.results import records, scales
from stabkit.results import update_fit as depth_fit
from stabkit.results.run import Run
from stabkit.wording import factors
from tests.conftest import FULL
from tests.figures.fake_runs import ended, known, plane, plausible, run, spec, step, sweep, table, wide


def test_every_picture_of_the_folder_is_in_the_table() -> None:
    tables = [picture for table in (FIGURES, SURFACES, CARRIED, WIDENED, OWN.values(), WATCHED) for picture in table]
    assert len({picture.name for picture in tables}) == len(tables)
    home = Path(figures.__file__).parent
    files = [path for path in home.rglob("*.py") if path.parent.name not in ("shared", "drawing", "figures", "probes")]
    for path in files:
        module = importlib.import_module(".".join(("stabkit.figures", *path.relative_to(home).with_suffix("").parts)))
        values = {name: value for name, value in vars(module).items() if isinstance(value, Picture)}
        lost = [name for name, picture in values.items() if picture not in tables]
        assert lost == [], f"{path}: {lost} missing from its table"
        assert values or path.stem in ("__init__", *WITHOUT), f"{path} has no picture"
        for picture in values.values():
            assert picture.room == path.parent.name


def test_a_note_that_explains_a_mark_is_shown_where_the_frame_holds_it() -> None:
    notes = (Note("Always."), Note("✕: diverged.", ("diverged",)), Note("A band.", ("band",)), Note("Both.", MARKS))
    frame = pd.DataFrame({"outcome": ["trains", "stuck"], "seed": [0, 0]})
    assert reading(notes, frame) == "Always. Both."
    assert reading(notes, frame.assign(outcome="diverged", seed=[0, 1])) == "Always. ✕: diverged. A band. Both."
    assert reading(notes[:3], pd.DataFrame({"loss": [1.0]})) == "Always. ✕: diverged. A band.", "of what is not known"


@pytest.mark.parametrize(
    "figure", [*FIGURES, *SURFACES, *CARRIED, *WIDENED, *OWN.values(), *WATCHED], ids=lambda one: one.name
)
def test_a_note_with_the_sign_of_a_mark_names_it(figure: Picture[Any]) -> None:
    for note in figure.read:
        assert ("✕" not in note.text or "diverged" in note.marks) and set(note.marks) <= set(MARKS)


MARKS: tuple[Mark, ...] = ("diverged", "stuck", "band")
WITHOUT = ("findings",)
"""Files that say what pictures of their room show, and hold none."""


def facts(made: Run, label: str, depth: str, outcome: str = "not judged") -> list[object]:
    s = made.spec
    layers = [s.model.encoder_layers, s.model.decoder_layers]
    return [made.run_id, s.method, label, "", depth, *layers, s.seed, outcome]


def known_store() -> tuple[Run, Run]:
    sound = run(
        spec("deepnorm", 2, 3),
        {
            "update": table([0, 1, 16], {"logits": [0, 9, 9], "state": [0.0, 0.25, 0.5]}),
            "grad_norm": table(
                [0, 1, 16],
                {
                    "encoder.1": [7, 7, 7],
                    "decoder.1": [9.0, 1.0, 3.0],
                    "decoder.1.ffn": [8, 8, 8],
                    "decoder.2": [9.0, 2.0, 4.0],
                    "decoder.3@x": [8, 8, 8],
                    "decoder.3": [9.0, 3.0, 5.0],
                },
            ),
        },
    )
    lost = run(
        spec("post-ln", 2, 3, seed=1),
        {
            "update": table([0, 1, 2], {"state": [0.0, 8.0, math.inf]}),
            "grad_norm": table(
                [0, 1, 2],
                {"decoder.1": [1e-8, 1e-9, math.nan], "decoder.2": [0.5, 0.25, 1.0], "decoder.3": [1.0, 2.0, 1.0]},
            ),
        },
        "diverged",
    )
    return sound, lost


def check(frame: pd.DataFrame, columns: tuple[str, ...], rows: list[list[object]]) -> None:
    pd.testing.assert_frame_equal(frame, pd.DataFrame(rows, columns=list(columns)))


def test_update_draws_every_recorded_step_as_it_is() -> None:
    sound, lost = known_store()
    first, second = facts(lost, "Post-LN", "2L-3L", "diverged"), facts(sound, "DeepNorm", "2L-3L")
    rows = [[*first, 64, step, value] for step, value in ((0, 0.0), (1, 8.0), (2, math.inf))]
    rows += [[*second, 64, step, value] for step, value in ((0, 0.0), (1, 0.25), (16, 0.5))]
    check(UPDATE.select([sound, lost]), UPDATE.columns, rows)


def test_update_depth_draws_the_reference_step_or_the_last_finite_one() -> None:
    sound, lost = known_store()
    first, second = facts(lost, "Post-LN", "2L-3L", "diverged"), facts(sound, "DeepNorm", "2L-3L")
    rows = [
        [*first, "post-ln", 64, "unequal", 2.5, 16, 1, 8.0, math.nan, 3, True],
        [*second, "deepnorm", 64, "unequal", 2.5, 16, 16, 0.5, math.nan, 3, True],
    ]
    check(depth_fit.updates([sound, lost]), depth_fit.UPDATE_COLUMNS, rows)


def test_grad_norm_draws_every_decoder_layer_at_the_last_finite_step_and_over_the_window() -> None:
    sound, lost = known_store()
    first, second = facts(lost, "Post-LN", "2L-3L", "diverged"), facts(sound, "DeepNorm", "2L-3L")
    rows = [[*first, 1, 1, 1e-9, 1e-9], [*first, 1, 2, 0.25, 0.25], [*first, 1, 3, 2.0, 2.0]]
    rows += [[*second, 16, layer, layer + 2.0, layer + 1.0] for layer in (1, 2, 3)]
    check(GRAD_NORM.select([sound, lost]), GRAD_NORM.columns, rows)


def measured() -> Run:
    """An encoder-only model whose every table is known."""
    return run(
        spec("post-ln", 1, 0, warmup=0, steps=250),
        {
            "update": table([0, 250], {"state": [0.0, 4.0], "state@step": [0.0, 0.1]}),
            "ln_input": table(
                [0, 250],
                {
                    "encoder.1.self": [8.0, 12.0],
                    "encoder.1.ffn": [10.0, 20.0],
                    "encoder.1.self@omega": [1.0, 1.5],
                    "encoder.1.ffn@omega": [1.25, 2.5],
                },
            ),
            "branch_ratio": table([0, 250], {"encoder.1.self": [0.5, 0.7], "encoder.1.ffn": [1.0, 2.0]}),
            "grad_norm": table([0, 250], {"encoder.1": [2.0, 1.0]}),
            "loss": table([0, 250], {"train": [9.0, 6.0], "probe": [8.4, 5.4]}),
            "validation": table([0, 250], {"validation": [8.0, 5.5]}),
        },
        "trains",
    )


def test_ln_input_is_a_mean_over_the_sub_layers_of_its_origin() -> None:
    own = facts(measured(), "Post-LN", "1L encoder", "trains")
    rows = [
        [*own, 64, "feed-forward", 0, 10.0, 10.0, math.nan],
        [*own, 64, "feed-forward", 250, 20.0, 20.0, math.nan],
        [*own, 64, "attention", 0, 8.0, 8.0, math.nan],
        [*own, 64, "attention", 250, 12.0, 12.0, math.nan],
    ]
    check(LN_INPUT.select([measured()]), LN_INPUT.columns, rows)
    assert findings.growth(LN_INPUT.select([measured()]))["growth"].tolist() == [pytest.approx(16 / 9)]
    assert LN_INPUT.title([measured()]) == "Post-LN's LN inputs grow most: to 1.8 times their start (1L encoder)"


def test_the_ablation_puts_each_scaled_run_on_its_axis_and_the_method_itself_on_both() -> None:
    made = [
        run(spec("deepnorm", 2, alpha_scale=a, beta_scale=b), {"update": table([0, 1], {"state": [0.0, 1.0]})})
        for a, b in ((1.0, 1.0), (2.0, 1.0), (1.0, 0.25), (2.0, 2.0))
    ]
    frame = SCALED.select([*made, run(spec("admin", 2), {})])
    assert frame[["axis", "scale"]].to_numpy().tolist() == [["α", 1.0], ["α", 2.0], ["β", 0.25], ["β", 1.0]]
    assert set(frame["method"]) == {"deepnorm"} and set(frame["condition"]) == {""}
    assert SCALED.select(made[:1]).empty


def test_a_methods_factors_are_drawn_only_where_some_run_is_scaled_and_options_stand_apart() -> None:
    bare = {"update": table([0, 1], {"state": [0.0, 1.0]})}
    scaled = [run(spec("deepnorm", 2, alpha_scale=a, warmup=0), bare) for a in (1.0, 2.0)]
    dropped = [run(spec("deepnorm", 2, alpha_scale=a, warmup=0, options={"beta": "one"}), bare) for a in (1.0, 2.0)]
    beside = run(spec("deepnorm", 2, warmup=150), bare)
    frame = scales.frame([*scaled, *dropped, beside])
    assert len(frame) == 4 and [name for name, _ in scales.groups(frame)] == [
        "DeepNorm, 2L-2L, no warm-up",
        "DeepNorm (beta=one), 2L-2L, no warm-up",
    ]


def whole(frame: pd.DataFrame) -> list[str]:
    return [sentence.whole for sentence in factors.sentences(frame)]


def test_an_ablation_names_what_every_factor_gives_and_the_best_where_it_is_clearly_better() -> None:
    def at(a: float, word: str, loss: float = 5.0, b: float = 1.0, seed: int = 0) -> Run:
        return known(run(spec("deepnorm", 2, alpha_scale=a, beta_scale=b, seed=seed), {}, word), validation_loss=loss)

    runs = [at(1, "trains"), at(1, "trains", seed=1), at(0.25, "stuck"), at(0.25, "trains", seed=1), at(4, "diverged")]
    (said,) = whole(scales.frame(runs))
    assert said == "DeepNorm trains with α × 1; α × 4 diverges; α × 0.25 trains in some seeds only."
    better = [*runs, at(2, "trains", 4.0), at(8, "trains", 4.9)]
    (said,) = whole(scales.frame(better))
    assert said.startswith("DeepNorm trains with α × 1, × 2 and × 8, best with × 2 (4.00 against 5.00); ")
    assert SCALED.title(better) == "DeepNorm trains with α × 1, × 2 and × 8, best with × 2 (4.00 against 5.00)"
    near = whole(scales.frame([*runs, at(2, "trains", 4.96), at(2, "trains", 4.0, seed=1)]))
    assert "none clearly better than × 1 (5.00)" in near[0], "in every seed, and by 0.05"
    both = whole(scales.frame([*better, at(1, "trains", b=2), at(4, "stuck", b=4), at(2, "trains", b=2)]))
    assert both == [
        "DeepNorm trains with α × 1, × 2 and × 8 and β × 1 and × 2, best with α × 2 (4.00 against 5.00); "
        "α × 4 diverges; α × 0.25 trains in some seeds only.",
    ]
    none = whole(scales.frame([at(1, "stuck"), at(2, "stuck"), at(4, "stuck")]))
    assert none == ["DeepNorm trains with none of 3 factors on α: α × 1 to × 4 are stuck."]
    undecided = [run(spec("deepnorm", 2, alpha_scale=a), {}, "early") for a in (1.0, 2.0)]
    assert whole(scales.frame(undecided)) == [], "none is judged"
    assert SCALED.title(undecided) == "Loss against a factor on α or β"


def test_table_11_is_the_method_beside_itself_without_one_part_a_panel_a_setting() -> None:
    def variant(options: dict[str, str], word: str = "trains", **changes: object) -> Run:
        return run(spec("deepnorm", 2, options=options, **changes), {}, word)

    runs = [variant({}), variant({"alpha": "one"}, "diverged"), variant({"beta": "one"})]
    runs += [variant({}, warmup=0), variant({"alpha": "one"}, warmup=0), variant({}, alpha_scale=2.0)]
    frame = TABLE11.select([*runs, run(spec("admin", 2), {})])
    assert frame[["condition", "row", "outcome"]].to_numpy().tolist() == [
        ["no warm-up", "as published", "trains"],
        ["warm-up 4000", "as published", "trains"],
        ["no warm-up", "without DeepNorm (α = 1)", "trains"],
        ["warm-up 4000", "without DeepNorm (α = 1)", "diverged"],
        ["warm-up 4000", "without Init (β = 1)", "trains"],
    ]
    assert TABLE11.select(runs[:1]).empty and "without DeepNorm (α = 1) trains in 1 of 2" in TABLE11.title(runs)
    assert "warm-up 4000: as published trains in 1 of 1, without DeepNorm (α = 1) trains in 0 of 1" in TABLE11.here(
        TABLE11.select(runs)
    )


def test_validation_loss_draws_every_reading_beside_the_unigram_loss() -> None:
    own = facts(measured(), "Post-LN", "1L encoder", "trains")
    check(VALIDATION_LOSS.select([measured()]), VALIDATION_LOSS.columns, [[*own, 6.0, 0, 8.0], [*own, 6.0, 250, 5.5]])


def test_gradients_before_training_are_those_of_step_0() -> None:
    sound, _ = known_store()
    own = facts(sound, "DeepNorm", "2L-3L")
    check(GRAD_START.select([sound]), GRAD_START.columns, [[*own, layer, 9.0] for layer in (1, 2, 3)])


def test_the_last_layers_gradient_is_read_at_step_0_and_over_the_window_without_warm_up() -> None:
    long = run(
        spec("post-ln", 1, warmup=0, steps=250),
        {"grad_norm": table([0, 90, 100, 250], {"decoder.1": [5.0, 100.0, 1.0, 2.0]})},
    )
    alone = run(spec("deepnorm", 0, 1), {"grad_norm": table([0], {"decoder.1": [9.0]})})
    unequal = known_store()[0]
    frame = GRAD_LAST.select([long, alone, unequal])
    assert frame[["method", "when", "grad_norm"]].to_numpy().tolist() == [
        ["post-ln", "step 0", 5.0],
        ["deepnorm", "step 0", 9.0],
        ["post-ln", "mean of steps 100–250", 1.5],
    ]


def test_a_frame_is_the_same_for_records_read_back_from_bytes(tmp_path: Path) -> None:
    made, _ = known_store()
    read = replace(made, path=tmp_path / made.run_id, records=records.from_bytes(records.to_bytes(made.records)))
    read.__dict__["outcome"] = made.outcome
    for figure in FIGURES:
        pd.testing.assert_frame_equal(figure.select([read]), figure.select([made]))


def growing(method: str, exponent: float, seed: int = 0, **changes: object) -> list[Run]:
    return [
        run(
            spec(method, n, seed=seed, **changes),
            {"update": table([0, 16], {"state": [0.0, 0.01 * (1 + seed) * n**exponent * (1 if n <= 50 else 7)]})},
        )
        for n in (2, 6, 12, 50, 100)
    ]


def test_the_exponent_is_fitted_over_6_to_50_layers_and_centres() -> None:
    lines = depth_fit.fit(depth_fit.updates([*growing("deepnorm", 0.6), *growing("deepnorm", 0.6, seed=2)]))
    assert len(lines) == 1
    line = lines.iloc[0]
    assert line.exponent == pytest.approx(0.6) and line.factor == pytest.approx(0.01 * math.sqrt(3))
    assert (line.shallowest, line.deepest, line.seeds) == (6, 50, 2)
    assert line.least == pytest.approx(0.6) and line.greatest == pytest.approx(0.6)


def test_seeds_that_not_every_depth_has_bear_on_no_exponent() -> None:
    """One seed at all depths and another at the shallow ones alone: its luck would be taken for growth."""
    runs = [*growing("deepnorm", 0.6), *growing("deepnorm", 0.1, seed=2)[:2]]
    line = depth_fit.fit(depth_fit.updates(runs)).iloc[0]
    assert line.exponent == pytest.approx(0.6) and line.seeds == 1
    apart = [*growing("deepnorm", 0.6)[:3], *growing("deepnorm", 0.6, seed=2)[3:]]
    assert len(depth_fit.fit(depth_fit.updates(apart))) == 1, "no seed at every depth: all that there is"


def test_fewer_than_three_depths_and_unequal_stacks_have_no_exponent() -> None:
    assert depth_fit.fit(depth_fit.updates(growing("deepnorm", 0.6)[:3])).empty
    unequal = [plausible(spec("post-ln", n, 2 * n)) for n in (6, 12, 18)]
    assert depth_fit.fit(depth_fit.updates(unequal)).empty


def test_where_the_update_has_saturated_there_is_no_exponent() -> None:
    flat = [
        run(spec("admin", n, warmup=0), {"update": table([0, 16], {"state": [0, 9.0 + n / 50]})}) for n in (6, 18, 50)
    ]
    assert depth_fit.fit(depth_fit.updates(flat)).empty


def test_a_run_that_ended_early_has_no_part_in_a_mean_or_a_fit() -> None:
    runs = growing("post-ln", 1.0)
    lost = run(spec("post-ln", 6, seed=9), {"update": table([0, 1, 2], {"state": [0, 1e6, math.nan]})}, "diverged")
    lines = depth_fit.fit(depth_fit.updates([*runs, lost]))
    assert lines.iloc[0].exponent == pytest.approx(1.0)


def test_titles_state_what_the_data_support() -> None:
    runs = [*growing("deepnorm", 0.6), *growing("post-ln", 1.0), *growing("admin", 1.4)]
    assert (
        update_depth.title(runs)
        == "DeepNorm's update grows with depth as N^0.60, Post-LN's as N^1.00; 6–50 layers, one seed"
    )
    assert (
        update_depth.title(growing("admin", 0.5)) == "ADMIN's update grows with depth as N^0.50; 6–50 layers, one seed"
    )
    assert update_depth.title([]) == "How far the output has moved after 0 updates, against depth"
    assert UPDATE.title(runs) == "At 100L-100L the output moves by 1.1 (DeepNorm) to 44 (ADMIN) in 16 updates"
    assert UPDATE.title(growing("admin", 1.4)) == UPDATE.title([])
    assert UPDATE.title([]) == "How far the output moves from its start, step by step"
    assert GRAD_NORM.title([]) == "How much gradient each decoder layer receives"
    vanishing = run(spec("post-ln", 2), {"grad_norm": table([0], {"decoder.1": [3e-9], "decoder.2": [3.0]})})
    assert GRAD_NORM.title([vanishing]) == (
        "At step 0: Post-LN's lowest decoder layer receives 1e-9 of the top layer's gradient at 2L-2L"
    )


def test_a_gradient_of_exactly_nothing_is_said() -> None:
    nothing = run(spec("post-ln", 2), {"grad_norm": table([0], {"decoder.1": [0.0], "decoder.2": [3.0]})})
    assert GRAD_NORM.title([nothing]).endswith("receives nothing of the top layer's gradient at 2L-2L")


def test_exponents_of_two_conditions_are_not_compared() -> None:
    runs = [*growing("deepnorm", 0.6, warmup=0), *growing("post-ln", 1.0)]
    assert "Post-LN" not in update_depth.title(runs) or "DeepNorm" not in update_depth.title(runs)


@cache
def stores() -> dict[str, list[Run]]:
    nothing = run(spec("admin", 6), {})
    zeros = {f"decoder.{i}": [0.0, 0.0] for i in (1, 2)}
    flat = run(spec("admin", 2), {"update": table([0, 1], {"state": [0.0, 0.0]}), "grad_norm": table([0, 1], zeros)})
    huge = run(
        spec("post-ln", 2),
        {
            "update": table([0, 1, 2], {"state": [0.0, 1.7e308, 1e39]}),
            "grad_norm": table([0, 1], {"decoder.1": [1e-320, 1.7e308], "decoder.2": [1e38, 1e38]}),
        },
        "diverged",
    )
    all_nan = run(
        spec("post-ln", 1),
        {"update": table([0], {"state": [math.nan]}), "grad_norm": table([0], {"decoder.1": [math.nan]})},
        "diverged",
    )
    empty = run(spec("post-ln", 3), {"update": table([], {"state": []}), "grad_norm": table([], {"decoder.1": []})})
    return {
        "none": [],
        "one": [plausible(spec("post-ln", 18))],
        "one step": [plausible(spec("post-ln", 1, steps=1))],
        "diverged at step 0": [plausible(spec("post-ln", 18), until=0)],
        "two of three diverged": [
            plausible(spec("post-ln", 18, seed=0), until=0),
            plausible(spec("post-ln", 18, seed=1), until=5),
            plausible(spec("post-ln", 18, seed=2)),
        ],
        "no decoder": [plausible(spec("post-ln", 6, 0)), plausible(spec("deepnorm", 12, 0))],
        "no encoder": [plausible(spec("post-ln", 0, 6)), plausible(spec("deepnorm", 0, 1))],
        "unequal stacks": [plausible(spec(m, 60, 12)) for m in ("post-ln", "admin")],
        "forty": sweep((1, 2, 3, 6, 9), seeds=(0, 1)),
        "eleven depths, two conditions": [
            plausible(spec("admin", n, warmup=w, steps=120)) for n in range(1, 12) for w in (0, 4000)
        ],
        "scaled": [
            plausible(spec("deepnorm", 6, alpha_scale=a, beta_scale=b, seed=s, steps=50))
            for a, b in ((1.0, 1.0), (0.25, 1.0), (4.0, 1.0), (1.0, 4.0))
            for s in (0, 1)
        ],
        "variants": [plausible(spec("admin", 6, options=o)) for o in ({}, {"omega": "closed"})],
        "a plane": [
            *plane(lambda a, b: b / a, lambda a, b: "stuck" if b > a else "trains"),
            *plane(lambda a, b: math.nan, lambda a, b: "diverged", seed=1),
        ],
        "only far from 1": [
            plausible(spec("deepnorm", 2, alpha_scale=a, beta_scale=b), until=u)
            for a, b, u in ((1e-300, 1e-300, 3), (1e6, 1e-45, None), (1e-300, 1e6, 0))
        ],
        "without a part": [
            plausible(spec("deepnorm", 6, options=o, warmup=w), until=None if w else 3)
            for o in ({}, {"alpha": "one"}, {"beta": "one"})
            for w in (0, 150)
        ],
        "single steps": [
            step(m, n, 5.0 * n, lr=lr) for m in ("post-ln", "t-fixup") for n in (2, 6) for lr in (1e-4, 1e-5)
        ],
        "single steps of which one did not end, and one did not move, beside training": [
            step("pre-ln", 2, math.nan),
            step("pre-ln", 2, 0.0, seed=1),
            *(step("deepnorm", n, 5.0) for n in (2, 6, 18)),
            *sweep((2,)),
        ],
        "each method by its own recipe": [
            plausible(with_recipe(spec(m, 6, recipe=r))) for m in ("rezero", "dlcl") for r in ("paper", "shared")
        ],
        "settings one at a time": [
            *(
                ended(spec("deepnorm", 18, lr=lr), w, v)
                for lr, w, v in ((1e-3, "trains", 5), (1, "diverged", math.inf))
            ),
            *(ended(spec("deepnorm", 18, lr=1e-3, max_tokens=n), "stuck", 5.9) for n in (64, 1024)),
            *(ended(wide(spec("deepnorm", 18, lr=1e-3), d), "early", 5.5) for d in (2, 256)),
            ended(spec("admin", 18, lr=1), "diverged", math.nan),
            ended(spec("admin", 18, lr=2), "diverged", math.nan),
        ],
        "no updates": [ended(spec("deepnorm", n, m, steps=0), "early") for n, m in ((60, 12), (48, 24))],
        "no records": [nothing],
        "zeros": [flat],
        "huge": [huge, plausible(spec("deepnorm", 2))],
        "all NaN": [all_nan],
        "no steps": [empty],
    }


OF_ROBUSTNESS = "settings one at a time"
"""The store made for that figure alone."""
PAIRS = [
    (figure, case)
    for i, case in enumerate(stores())
    for j, figure in enumerate(FIGURES)
    if (figure is ROBUSTNESS if case == OF_ROBUSTNESS else FULL or (i + j) % 3 == 0)
]
"""CI draws every figure of every store; locally each figure meets a third of the stores, in turn."""


def test_every_figure_and_every_store_is_drawn() -> None:
    assert {figure for figure, _ in PAIRS} == set(FIGURES) and {case for _, case in PAIRS} == set(stores())


@pytest.mark.slow
@pytest.mark.parametrize(("figure", "case"), PAIRS, ids=lambda value: getattr(value, "name", value))
@np.errstate(all="ignore")
def test_drawing_survives(figure: RunPicture, case: str) -> None:
    runs = stores()[case]
    frame = figure.select(runs)
    assert tuple(frame.columns) == figure.columns
    assert {figure.value, *([figure.index] if figure.index else [])} <= set(frame.columns)
    ET.fromstring(card(figure, frame, runs).svg)
    notes = [note.text for note in figure.read]
    for text in (figure.title(runs), figure.described(frame), figure.see, *notes, figure.caption, figure.short):
        assert text and "nan" not in text


def test_a_diverged_run_stays_visible() -> None:
    last, edge = plausible(spec("post-ln", 18), until=5), plausible(spec("post-ln", 6), until=0)
    others = [plausible(spec("deepnorm", n)) for n in (6, 18)]
    for figure in FIGURES:
        frame = figure.select([last, edge, *others])
        if figure in (slope.PICTURE, VALIDATION_LOSS):  # of one step; the loss was read once
            continue
        if figure.optional and frame.empty:
            continue  # not on their page
        drawn = figure.drawn(frame)
        marks = [line for axes in drawn.axes for line in axes.lines if line.get_marker() == "x"]
        texts = [text.get_text() for axes in drawn.axes for text in axes.texts]
        seen = sum(int(np.isfinite(np.asarray(line.get_xdata(), dtype=float)).sum()) for line in marks)
        assert seen + sum("diverged at" in text or text == "1 run: diverged" for text in texts) >= 2, figure.name
