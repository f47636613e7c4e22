"""DeepNet Table 4: FLOPs counted by hand, which models cost the same, and what is said of them."""

from __future__ import annotations

import math

import pytest

from stabkit.figures.depth.curves import FLOPS, flops_text
from stabkit.results import flops
from stabkit.results.run import Run
from tests.figures.fake_runs import ended, holding, known, spec, wide


def costing(
    depth: int, decoder: int, parameters: int, hidden: int = 64, method: str = "deepnorm", **more: object
) -> Run:
    """A model of so many parameters without its embeddings."""
    loss, word = more.pop("loss", 5.0), more.pop("outcome", "trains")
    made = wide(spec(method, depth, decoder, **{"steps": 250, **more}), hidden)
    return holding(ended(made, str(word), loss), parameters + 2000 * hidden)


def test_flops_are_six_times_parameters_without_embeddings_times_tokens() -> None:
    """1L-1L, d = 4, FFN 8, no biases: encoder 4·4² + 2·4·8 = 128, decoder 8·4² + 64 = 192; 10 updates of 100 tokens."""
    one = holding(ended(wide(spec("deepnorm", 1, steps=10, max_tokens=100, vocab=50), 4)), 128 + 192 + 50 * 4)
    assert flops.parameters(one) == 320 and flops.tokens(one.spec) == 1000 and flops.flops(one) == 1_920_000


def test_the_budget_is_that_of_the_updates_planned() -> None:
    lost = costing(1, 1, 1000, outcome="diverged", loss=math.nan)
    known(lost, steps=3)
    assert flops.flops(lost) == 6 * 1000 * 250 * 512


def test_the_frame_holds_every_run_of_a_condition_in_which_two_shapes_cost_the_same() -> None:
    runs = [costing(48, 48, 1000, loss=4.9), costing(12, 12, 1100, 128, "post-ln", loss=5.1), costing(6, 6, 100)]
    frame = FLOPS.select(runs)
    assert tuple(frame.columns) == FLOPS.columns
    assert frame[["label", "shape", "hidden", "parameters", "flops", "validation_loss"]].to_numpy().tolist() == [
        ["Post-LN", "12L-12L d=128", 128, 1100.0, 6.0 * 1100 * 128_000, 5.1],
        ["DeepNorm", "6L-6L d=64", 64, 100.0, 6.0 * 100 * 128_000, 5.0],
        ["DeepNorm", "48L-48L d=64", 64, 1000.0, 6.0 * 1000 * 128_000, 4.9],
    ]
    assert set(frame["condition"]) == {""}, "the width is in the model's name"


@pytest.mark.parametrize(("parameters", "present"), [(1149, True), (1151, False), (870, True), (869, False)])
def test_within_15_percent_is_equal(parameters: int, present: bool) -> None:
    runs = [costing(48, 48, 1000), costing(90, 6, parameters)]
    assert len(FLOPS.select(runs)) == (2 if present else 0)
    assert len(list(flops.pairs(FLOPS.select(runs)))) == (2 if present else 0), "in both orders"


def test_one_shape_other_conditions_and_models_without_updates_are_not_compared() -> None:
    seeds = [costing(48, 48, 1000, seed=s) for s in (0, 1)]
    methods = [costing(48, 48, 1000), costing(48, 48, 1000, method="admin")]
    apart = [costing(48, 48, 1000), costing(90, 6, 1000, warmup=0)]
    idle = [costing(48, 48, 1000, steps=0), costing(90, 6, 1000, steps=0)]
    for runs in ([], seeds, methods, apart, idle):
        assert FLOPS.select(runs).empty and FLOPS.title(runs) == "Quality at equal training FLOPs"


def test_the_title_names_the_best_model_and_the_best_of_its_cost() -> None:
    runs = [costing(48, 48, 1000, loss=4.9), costing(12, 12, 1100, 128, "post-ln", loss=5.1)]
    runs += [costing(90, 6, 950, loss=5.3), costing(6, 6, 100, loss=1.0)]
    assert FLOPS.title(runs) == "At equal FLOPs DeepNorm 48L-48L d=64 ends at 4.90 nats, Post-LN 12L-12L d=128 at 5.10"


def test_seeds_are_one_point_and_a_diverged_model_is_a_cross_at_the_edge() -> None:
    runs = [costing(48, 48, 1000, loss=4.8 + 0.2 * s, seed=s) for s in (0, 1)]
    runs += [
        costing(90, 6, 1000, outcome="diverged", loss=math.nan),
        costing(12, 12, 1100, 128, outcome="stuck", loss=6.0),
    ]
    (axes,) = FLOPS.drawn(FLOPS.select(runs)).axes
    told = {text.get_text() for text in axes.texts}
    assert {"48L-48L d=64", "12L-12L d=128"} <= told
    points = {line.get_marker(): line for line in axes.lines if line.get_marker() in ("o", "x", "s")}
    assert [float(points[mark].get_ydata()[0]) for mark in "os"] == [pytest.approx(4.9), 6.0] and "x" in points
    assert "7.7·10⁸ FLOPs, loss 4.90" in FLOPS.described(FLOPS.select(runs))


def test_a_power_of_ten_is_written_out() -> None:
    assert flops_text(1.23e12) == "1.2·10¹²" and flops_text(9.96e8) == "1.0·10⁹"
