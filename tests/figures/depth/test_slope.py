"""‖ΔF‖/η of one SGD step: the frame exactly, what pages make of such steps, and real ones in the linear regime."""

from __future__ import annotations

import math
import re

import numpy as np
import pandas as pd
import pytest
import torch

from stabkit import methods
from stabkit.cli import tables
from stabkit.figures.catalogue import FIGURES
from stabkit.figures.depth.slope import PICTURE
from stabkit.figures.drawing import style
from stabkit.model.transformer import tensors
from stabkit.report import order
from stabkit.results import slope
from stabkit.results import update_fit as depth_fit
from stabkit.results.conditions import trained
from stabkit.results.matrix import matrix
from stabkit.results.readings import reference_step
from stabkit.results.run import Run
from stabkit.spec import RunSpec
from stabkit.tasks.synthetic import Synthetic
from stabkit.training import train
from stabkit.wording.answer import answer, instead
from stabkit.wording.slope import clauses, promise, title
from tests.conftest import tiny
from tests.figures.fake_runs import plausible, run, spec, step, table
from tests.report.pages import render

ETA = 2.0**-17
"""A rate by which numbers can be multiplied and divided without rounding."""


def test_the_frame_holds_the_distance_over_the_rate_exactly() -> None:
    made = [step("post-ln", 2, 5.0, ETA), step("deepnorm", 0, 0.75, ETA / 4, decoder=3, seed=1)]
    columns = (*depth_fit.UPDATE_COLUMNS, "rate")
    shared = dict(reference_step=1, step=1, outcome="not judged", predicted=math.nan, width=64, bounded=True)
    facts = "method label condition depth encoder_layers decoder_layers seed"
    names = f"{facts} variant shape layers update theorem rate run".split()
    first = ("post-ln", "Post-LN", f"lr {ETA:g}", "2L-2L", 2, 2, 0, "post-ln", "equal", 2.0, 5.0, 3, ETA)
    other = ("deepnorm", "DeepNorm", f"lr {ETA / 4:g}", "3L decoder", 0, 3, 1, "deepnorm", "decoder", 3.0, 0.75, 2)
    found = ((*first, made[0].run_id), (*other, ETA / 4, made[1].run_id))
    rows = [{**shared, **dict(zip(names, row, strict=True))} for row in found]
    assert slope.COLUMNS == columns
    pd.testing.assert_frame_equal(slope.frame(made), pd.DataFrame(rows)[list(columns)], check_exact=True)


def test_only_one_update_of_sgd_without_warm_up_is_a_single_step() -> None:
    others = [spec("post-ln", 2, **{"optimizer": "sgd", "steps": 1, "warmup": 0} | away) for away in AWAY]
    assert not any(each.single_step for each in others) and step("post-ln", 2, 1.0).spec.single_step
    frame = slope.frame([run(each, {"update": table([0, 1], {"state": [0.0, 1.0]})}) for each in others])
    assert frame.empty and tuple(frame.columns) == slope.COLUMNS


AWAY: tuple[dict[str, object], ...] = ({"optimizer": "adam"}, {"steps": 2}, {"warmup": 1})


def test_the_prediction_is_the_theorems_sum_over_the_rate() -> None:
    """Theorem 3 of Post-LN with all ‖Δθ‖ = η: M·Σ_encoder √2 + Σ_decoder √2, whatever η is."""
    made = step("post-ln", 2, 5.0, ETA)
    names = [f"encoder.{n}.{k}" for n in (1, 2) for k in ("self", "ffn")]
    names += [f"decoder.{n}.{k}" for n in (1, 2) for k in ("self", "cross", "ffn")]
    made.records.update(
        parameter_update=table([0, 1], {name: [0.0, ETA] for name in names}),
        ln_input=table([0], {name: [8.0] for name in names} | {f"{name}@omega": [1.0] for name in names}),
    )
    assert slope.frame([made])["predicted"].tolist() == [pytest.approx(math.sqrt(2) * (2 * 4 + 6))]


def seeds(method: str, depth: int, *slopes: float, **changes: object) -> list[Run]:
    return [step(method, depth, value, ETA, seed=seed, **changes) for seed, value in enumerate(slopes)]


def test_the_table_ranks_centres_over_seeds_at_each_depth() -> None:
    made = [*seeds("post-ln", 6, 4.0, 16.0), *seeds("deepnorm", 6, 2.0), *seeds("pre-ln", 6, 7.5)]
    made += [*seeds("post-ln", 18, 1.0, 1.0), *seeds("deepnorm", 18, 3.0)]
    rows = [
        ["Post-LN", "", "6L-6L", 8.0, 4.0, 16.0, 3],
        ["Pre-LN", "", "6L-6L", 7.5, 7.5, 7.5, 2],
        ["DeepNorm", "", "6L-6L", 2.0, 2.0, 2.0, 1],
        ["Post-LN", "", "18L-18L", 1.0, 1.0, 1.0, 1],
        ["DeepNorm", "", "18L-18L", 3.0, 3.0, 3.0, 2],
    ]
    columns = ["label", "condition", "depth", "slope", "least", "greatest", "rank"]
    pd.testing.assert_frame_equal(slope.table(slope.frame(made)), pd.DataFrame(rows, columns=columns))


def test_a_step_that_diverged_or_moved_nothing_has_no_slope_and_the_last_rank() -> None:
    made = [step("post-ln", 2, math.nan), step("rezero", 2, 0.0), step("deepnorm", 2, 3.0)]
    means = slope.table(slope.frame(made)).set_index("label")
    assert means["slope"].isna().tolist() == [True, True, False] and means["rank"].tolist() == [2, 3, 1]
    assert "nan" not in title(made) + PICTURE.described(slope.frame(made)) and "–" not in title(made)


def test_two_rates_agree_where_their_slopes_are_within_five_percent() -> None:
    def pair(seed: int, share: float) -> list[Run]:
        return [step("post-ln", 2, 4.0, ETA, seed=seed), step("post-ln", 2, 4.0 * share, 4 * ETA, seed=seed)]

    made = [*pair(0, 1.04), *pair(1, 1 / 1.25), *pair(2, 1.0), step("deepnorm", 2, 1.0, ETA)]
    assert slope.agreement(made) == [
        ("Post-LN, 2L-2L, seed 1", pytest.approx(0.25)),
        ("Post-LN, 2L-2L, seed 0", pytest.approx(0.04)),
        ("Post-LN, 2L-2L, seed 2", pytest.approx(0.0)),
    ]
    assert [share > slope.AGREE for _, share in slope.agreement(made)] == [True, False, False]
    assert slope.agreement(seeds("post-ln", 2, 1.0, 2.0)) == [], "seeds are not rates"
    assert slope.agreement([step("post-ln", 2, 0.0, ETA), step("post-ln", 2, 1.0, 4 * ETA)])[0][1] == math.inf


def test_runs_whose_two_rates_disagree_are_not_trusted() -> None:
    def pair(method: str, share: float, seed: int = 0) -> list[Run]:
        return [step(method, 2, 8.0, ETA, seed=seed), step(method, 2, 8.0 * share, 4 * ETA, seed=seed)]

    agree, apart, alone = pair("post-ln", 1.04), pair("deepnorm", 0.8), [step("pre-ln", 2, 1.0, ETA)]
    other = pair("deepnorm", 1.0, seed=1)
    assert slope.trusted([*agree, *apart, *alone, *other]) == [*agree, *alone, *other]
    assert title([*agree, *pair("deepnorm", 1.0)]).endswith("at 2L-2L")
    assert clauses([*agree, *pair("deepnorm", 1.0)])[1:] == ["two rates agree within 5% in 2 of 2 runs"]
    assert clauses([*agree, *apart])[1:] == ["two rates agree within 5% in 1 of 2 runs"]


def test_the_terminal_ranks_the_methods(capsys: pytest.CaptureFixture[str]) -> None:
    def said(made: list[Run]) -> str:
        tables.slopes(made)
        return " ".join(capsys.readouterr().out.split())

    ranked = [*seeds("post-ln", 6, 4.0, 16.0), *seeds("deepnorm", 6, 2.0)]
    assert "8.0 (2)" in (told := said(ranked)) and "4.0 to 16" in told and "2.0 (1)" in told
    assert said([plausible(spec("post-ln", 2))]) == ""


def test_the_title_is_post_ln_over_deepnorm_at_the_shallowest_and_the_deepest() -> None:
    six = [*seeds("post-ln", 6, 20.0), *seeds("deepnorm", 6, 2.0), *seeds("pre-ln", 6, 500.0)]
    deep = [*seeds("post-ln", 18, 90.0), *seeds("deepnorm", 18, 3.0)]
    assert title(six) == "Post-LN's update of one SGD step is 10 times DeepNorm's at 6L-6L"
    assert title([*deep, *six]) == (
        "Post-LN's update of one SGD step is 10 times DeepNorm's at 6L-6L, 30 times at 18L-18L"
    )
    assert title(seeds("pre-ln", 6, 1.0)) == title([]) == NOTHING
    assert PICTURE.described(slope.frame(deep)).endswith("Post-LN: 18L-18L 90; DeepNorm: 18L-18L 3.0.")


NOTHING = "How far one SGD step moves the output, for each unit of learning rate"


def test_exponents_are_of_the_slope_and_have_no_ceiling() -> None:
    """‖ΔF‖/η is no distance: 10·√(2d) of it is as good as any."""
    made = [step("post-ln", n, 100.0 * n**1.5, ETA) for n in (6, 12, 50)]
    (line,) = depth_fit.fit(slope.frame(made), ceiling=False).itertuples()
    assert (line.exponent, line.factor) == (pytest.approx(1.5), pytest.approx(100.0))
    assert depth_fit.fit(slope.frame(made)).empty


TRAINING = [plausible(spec(method, 6)) for method in ("post-ln", "deepnorm")]
STEPS = [step(m, n, v, ETA) for m, n, v in (("post-ln", 2, 24.0), ("post-ln", 6, 60.0), ("deepnorm", 2, 2.0))]
STEPS.append(step("deepnorm", 6, 2.0, ETA))


def test_single_steps_beside_training_move_no_reference_step_no_matrix_and_no_other_picture() -> None:
    both = [*STEPS, *TRAINING]
    assert [list(trained(runs)) for runs in (both, STEPS, [])] == [TRAINING, STEPS, []]
    assert reference_step(trained(both)) == 16 and matrix(trained(both)) == matrix(TRAINING)
    mixed, alone = (
        {
            figure.name: (frame, figure.title(source))
            for figure, source in order.sources(runs, (), ())
            if not ((frame := figure.select(source)).empty and figure.optional)
        }
        for runs in (both, TRAINING)
    )
    assert set(mixed) - set(alone) == {PICTURE.name} and set(alone) < set(mixed)
    for name, (frame, heading) in alone.items():
        pd.testing.assert_frame_equal(mixed[name][0], frame)
        assert mixed[name][1] == heading
    assert set(mixed[PICTURE.name][0]["run"]) == {made.run_id for made in STEPS}
    assert mixed[PICTURE.name][1] == title(STEPS)


def test_a_promise_is_an_exponent_of_the_methods_that_promise_none() -> None:
    made = [
        step(method, depth, level * depth**power, seed=seed)
        for method, power in (("post-ln", 1.5), ("deepnorm", 0.75))
        for seed, level in ((0, 1.0), (1, 3.0))
        for depth in (6, 18, 50)
    ]
    grows = "DeepNorm's one-step update grows as N^0.75 (6–50 layers, 0.75 to 0.75 over 2 seeds); it is derived for N^0"
    assert promise(made) == grows and promise(made[:3]) == ""


def test_a_page_of_single_steps_shows_what_is_known_before_training_and_judges_nothing() -> None:
    page = render(STEPS, command="stabkit sweep")
    shown = set(re.findall(r'id="figure-([a-z_0-9]+)"', page))
    assert "slope" in shown and shown <= {figure.name for figure in FIGURES if figure.at_start}
    assert 'class="matrix"' not in page and "nothing was trained, so there is no outcome" in page
    assert all(made.run_id in page for made in STEPS)
    assert instead(STEPS) == f"{title(STEPS)}."
    assert text_of(page).index(instead(STEPS)) < text_of(page).index('id="figure-slope"')
    assert "12 times DeepNorm's at 2L-2L, 30 times at 6L-6L" in title(STEPS)


@pytest.mark.slow
def test_a_page_of_training_and_single_steps_opens_as_that_of_the_training_alone() -> None:
    mixed = render([*STEPS, *TRAINING], command="stabkit report")
    assert answer(matrix(TRAINING)) in text_of(mixed) and title(STEPS) in text_of(mixed)
    assert 'class="matrix"' in mixed and "nothing was trained" not in mixed
    assert all(made.run_id in mixed for made in (*STEPS, *TRAINING))


def text_of(page: str) -> str:
    return page.replace("&#39;", "'")


def test_the_drawing_has_a_point_a_depth_for_every_method() -> None:
    drawn = PICTURE.drawn(slope.frame(STEPS))
    signs = ("s", "o", *(style.dotted(method)["marker"] for method in methods.KEYS))
    points = [line for axes in drawn.axes for line in axes.lines if line.get_marker() in signs]
    heights = sorted(np.asarray(line.get_ydata()).tolist() for line in points)
    assert heights == [[2.0, 2.0], [pytest.approx(24.0), pytest.approx(60.0)]]


TASK = Synthetic(vocab=200, max_tokens=128)


def really(method: str, rate: float, layers: int = 6) -> RunSpec:
    return tiny(method, layers=layers, steps=1, warmup=0, lr=rate, optimizer="sgd", dtype="float64")


def measured(method: str, rate: float) -> float:
    made = really(method, rate)
    result = train.run(made, TASK)
    assert result.outcome.word == "early" and made.single_step
    return float(slope.frame([run(made, result.records)])["update"].iloc[0])


@pytest.mark.parametrize("method", ["post-ln", "pre-ln", "rezero", "deepnorm"])
def test_in_float64_half_the_rate_gives_the_same_slope(method: str) -> None:
    assert measured(method, 1e-5) == pytest.approx(measured(method, 5e-6), rel=0.01)


def test_at_six_layers_one_step_moves_post_ln_further_than_deepnorm() -> None:
    assert measured("post-ln", 1e-5) > 3 * measured("deepnorm", 1e-5)


def test_the_slope_is_that_of_a_step_made_by_hand() -> None:
    """θ ← θ − η·∂L/∂θ parameter by parameter, and how far the decoder's states are from where they were."""
    spec_ = really("deepnorm", 1e-5, layers=2)
    model = train.build(spec_, TASK, torch.device("cpu")).double()
    source, target_in, target_out = tensors(TASK.train(0, 0))
    logits = model(source, target_in)[1].flatten(0, 1)
    torch.nn.functional.cross_entropy(logits, target_out.t().flatten(), ignore_index=0, label_smoothing=0.1).backward()
    model.eval()
    probe = TASK.probe()
    with torch.no_grad():
        before = model(*tensors(probe)[:2])[0].clone()
        for parameter in model.parameters():
            parameter -= 1e-5 * parameter.grad
        apart = (model(*tensors(probe)[:2])[0] - before).norm(dim=-1)[torch.from_numpy(probe.target_out != 0).t()]
    result = train.run(spec_, TASK)
    assert slope.frame([run(spec_, result.records)])["update"].tolist() == [pytest.approx(float(apart.mean()) / 1e-5)]
