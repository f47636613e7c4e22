"""DeepNet Fig. 7: which runs stand on which axis, and what is said of them."""

from __future__ import annotations

import math
from dataclasses import replace

import pandas as pd
import pytest

from stabkit.figures.ablation.curves import ROBUSTNESS
from stabkit.results import settings
from stabkit.results.run import Run
from stabkit.spec import RunSpec
from tests.figures.fake_runs import ended, spec, wide


def base(**changes: object) -> RunSpec:
    return spec("deepnorm", 18, **{"warmup": 0, "steps": 250, **changes})


def star() -> list[Run]:
    """The base setting, and one more value on each axis."""
    return [
        ended(base(), loss=5.0),
        ended(base(lr=2e-3), loss=4.8),
        ended(base(max_tokens=1024, digest="another"), loss=4.7),
        ended(wide(base(), 128), "diverged", math.nan),
    ]


def test_the_base_setting_stands_on_all_three_axes_beside_the_run_that_differs_there() -> None:
    runs = star()
    frame = settings.frame(runs)
    assert frame[["axis", "value", "validation_loss", "outcome"]].fillna(-1).to_numpy().tolist() == [
        ["learning rate", 5e-4, 5.0, "trains"],
        ["learning rate", 2e-3, 4.8, "trains"],
        ["tokens per batch", 512.0, 5.0, "trains"],
        ["tokens per batch", 1024.0, 4.7, "trains"],
        ["hidden size", 64.0, 5.0, "trains"],
        ["hidden size", 128.0, -1, "diverged"],
    ]
    facts = [runs[0].run_id, "deepnorm", "DeepNorm", "", "18L-18L", 18, 18, 0, "trains"]
    expected = pd.DataFrame([[*facts, "learning rate", 5e-4, 250, 6.0, 5.0]], columns=list(settings.COLUMNS))
    pd.testing.assert_frame_equal(frame.iloc[[0]], expected)


def test_nothing_is_shown_where_no_setting_was_varied_by_itself() -> None:
    alone = ended(base())
    both = ended(base(lr=1e-3, max_tokens=1024))
    other = [ended(spec("deepnorm", 6, warmup=0, steps=250, lr=1e-3)), ended(spec("admin", 18, lr=1e-3))]
    for runs in ([], [alone], [alone, both], [alone, *other], [alone, ended(base(seed=1, lr=1e-3, warmup=9))]):
        frame = settings.frame(runs)
        assert frame.empty and tuple(frame.columns) == settings.COLUMNS
        assert ROBUSTNESS.title(runs) == "Larger learning rates, batches and widths, one at a time"


def test_another_corpus_is_another_setting_and_seeds_are_company() -> None:
    text = [ended(base(max_tokens=n, source="de", target="en", digest=d)) for n, d in ((512, "a"), (1024, "b"))]
    assert settings.frame(text).empty
    same = [ended(base(max_tokens=n, source="de", target="en", digest="a")) for n in (512, 1024)]
    assert len(settings.frame(same)) == 2
    seeds = [ended(base(seed=s, lr=lr)) for s, lr in ((0, 1e-3), (1, 1e-3), (1, 2e-3))]
    assert settings.frame(seeds)[["seed", "value"]].to_numpy().tolist() == [[0, 1e-3], [1, 1e-3], [1, 2e-3]]


def test_a_product_of_two_axes_has_a_line_for_each_value_of_the_other() -> None:
    runs = [ended(base(lr=lr, max_tokens=n)) for lr in (1e-3, 2e-3) for n in (256, 512)]
    frame = settings.frame(runs)
    by = frame.groupby("axis", sort=False)["condition"].agg(lambda texts: sorted(set(texts))).to_dict()
    assert by == {
        "learning rate": ["256 tokens per batch", "512 tokens per batch"],
        "tokens per batch": ["lr 0.001", "lr 0.002"],
    }


def test_the_title_names_who_fails_where() -> None:
    assert ROBUSTNESS.title(star()) == "3 of 4 runs train; not DeepNorm at hidden size 128"
    assert ROBUSTNESS.title(star()[:3]) == (
        "DeepNorm trains at every setting: learning rate 0.0005 to 0.002, 512 to 1024 tokens per batch"
    )
    early = [ended(base(lr=lr), "early") for lr in (1e-3, 2e-3)]
    assert ROBUSTNESS.title(early) == "Larger learning rates, batches and widths, one at a time"


def test_a_panel_an_axis_named_under_it_with_a_cross_for_the_diverged() -> None:
    drawn = ROBUSTNESS.drawn(settings.frame(star()))
    assert [axes.get_title(loc="left") for axes in drawn.axes] == ["learning rate", "tokens per batch", "hidden size"]
    assert [axes.get_xlabel() for axes in drawn.axes] == ["learning rate", "tokens per batch", "hidden size d"]
    assert all(axes.get_xscale() == "log" for axes in drawn.axes)
    crosses = [[line for line in axes.lines if line.get_marker() == "x"] for axes in drawn.axes]
    assert [len(lines) for lines in crosses] == [0, 0, 1]
    assert [float(x) for x in crosses[2][0].get_xdata()] == [128.0]
    deep = [replace_depth(made, 6) for made in star()]
    titles = [axes.get_title(loc="left") for axes in ROBUSTNESS.drawn(settings.frame([*star(), *deep])).axes]
    assert titles == [
        f"{axis}, {depth}"
        for axis in ("learning rate", "tokens per batch", "hidden size")
        for depth in ("6L-6L", "18L-18L")
    ]


def replace_depth(made: Run, depth: int) -> Run:
    model = replace(made.spec.model, encoder_layers=depth, decoder_layers=depth)
    return ended(replace(made.spec, model=model), made.outcome.word, made.outcome.validation_loss)


def test_the_text_of_the_picture_names_every_value_with_its_outcome() -> None:
    told = ROBUSTNESS.described(settings.frame(star()))
    assert "DeepNorm, 18L-18L, learning rate 0.002: 4.80 (trains)" in told
    assert "hidden size 128: – (diverged)" in told


@pytest.mark.parametrize("count", [2, 9])
def test_many_values_are_drawn(count: int) -> None:
    runs = [ended(base(lr=1e-4 * 2**i), loss=5 - 0.1 * i) for i in range(count)]
    (axes,) = ROBUSTNESS.drawn(settings.frame(runs)).axes
    assert len(axes.get_xticks()) <= 6
