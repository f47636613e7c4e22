"""DeepNet Fig. 8: the fit against numpy's, exact laws, and which runs it takes."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stabkit.figures.depth import depth_law
from stabkit.results.line import log_law
from stabkit.results.run import Run
from tests.figures.fake_runs import ended, spec

DEPTHS = (6, 18, 50)


def exact(
    a: float, b: float, method: str = "deepnorm", depths: tuple[int, ...] = DEPTHS, **changes: object
) -> list[Run]:
    """Runs whose losses are A·ln(2N) + B."""
    return [
        ended(spec(method, n, **{"warmup": 0, "steps": 250, **changes}), loss=a * math.log(2 * n) + b) for n in depths
    ]


def test_exact_data_give_their_own_law() -> None:
    a, b, r2 = log_law([12, 36, 100], [3 * math.log(d) - 2 for d in (12, 36, 100)])
    assert (a, b, r2) == (pytest.approx(3), pytest.approx(-2), pytest.approx(1))
    a, b, r2 = log_law([1, math.e, math.e**2], [0.0, 1.0, 0.0])
    assert (a, b, r2) == (pytest.approx(0, abs=1e-12), pytest.approx(1 / 3), pytest.approx(0, abs=1e-12))


def test_one_depth_has_no_law_and_equal_values_no_share_explained() -> None:
    assert all(map(math.isnan, log_law([], []))) and all(map(math.isnan, log_law([12], [5.0])))
    assert all(map(math.isnan, log_law([12, 12], [5.0, 6.0])))
    a, b, r2 = log_law([12, 24], [5.0, 5.0])
    assert (a, b) == pytest.approx((0, 5), abs=1e-12) and math.isnan(r2)


@given(
    st.lists(st.tuples(st.integers(1, 2000), st.floats(-100, 100)), min_size=3, max_size=12, unique_by=lambda p: p[0])
)
def test_the_fit_is_numpys(points: list[tuple[int, float]]) -> None:
    depths, values = [float(d) for d, _ in points], [v for _, v in points]
    a, b, r2 = log_law(depths, values)
    slope, intercept = np.polyfit(np.log(depths), values, 1)
    assert a == pytest.approx(slope, abs=1e-6) and b == pytest.approx(intercept, abs=1e-6)
    if np.ptp(values) > 1e-3:
        assert r2 == pytest.approx(np.corrcoef(np.log(depths), values)[0, 1] ** 2, abs=1e-6)


def test_the_frame_holds_the_line_beside_every_judged_run() -> None:
    runs = [*exact(-0.3, 6.0), ended(spec("deepnorm", 100, warmup=0, steps=250), "diverged", math.nan)]
    frame = depth_law.select(runs)
    assert tuple(frame.columns) == depth_law.COLUMNS
    assert frame["layers"].tolist() == [12, 36, 100, 200] and frame["fitted"].tolist() == [True] * 3 + [False]
    assert set(frame["shape"]) == {"equal"}
    for column, value in (("A", -0.3), ("B", 6.0), ("R2", 1.0)):
        assert frame[column].tolist() == [pytest.approx(value)] * 4
    assert depth_law.PICTURE.title(runs) == "DeepNorm: loss = −0.3·ln d + 6, R² 1.00, over 12 to 100 layers, one seed"
    assert depth_law.PICTURE.described(frame) == (
        "Quality against depth, logarithmic, with a fitted line per method. "
        "DeepNorm: loss = −0.3·ln d + 6, R² 1.00, one seed."
    )


def test_a_depth_is_the_mean_of_its_seeds() -> None:
    seeds = [*exact(-0.3, 6.1), *exact(-0.3, 5.9, seed=1), ended(spec("deepnorm", 18, warmup=0, steps=250, seed=2))]
    frame = depth_law.select(seeds[:-1])
    assert frame["A"].iloc[0] == pytest.approx(-0.3) and frame["B"].iloc[0] == pytest.approx(6.0)
    stuck = ended(spec("deepnorm", 18, warmup=0, steps=250, seed=2), "stuck", 6.0)
    assert depth_law.select([*seeds[:-1], stuck])["A"].iloc[0] == pytest.approx(-0.3), "it has no say"


def test_a_depth_is_the_mean_of_the_seeds_that_train_at_every_depth() -> None:
    """Seed 1 is worse by 1 nat and stuck at 18L: with it in the means of 6L and 50L the slope would be another."""
    worse = [run for run in exact(-0.3, 7.0, seed=1) if run.spec.model.encoder_layers != 18]
    stuck = ended(spec("deepnorm", 18, warmup=0, steps=250, seed=1), "stuck", 6.0)
    frame = depth_law.select([*exact(-0.3, 6.0), *worse, stuck])
    assert frame["A"].iloc[0] == pytest.approx(-0.3) and frame["B"].iloc[0] == pytest.approx(6.0)
    assert set(frame.loc[frame["fitted"], "seed"]) == {0} and len(frame) == 6
    dots = [line for line in depth_law.PICTURE.drawn(frame).axes[0].lines if line.get_marker() == "."]
    assert len(dots) == 2, "what is left out is seen"
    stuck_deep = ended(spec("deepnorm", 100, warmup=0, steps=250), "stuck", 6.0)
    deeper = [stuck_deep, *exact(0.0, 4.0, depths=(100,), seed=1)]
    wider = depth_law.select([*exact(-0.3, 6.0), *deeper])
    assert wider.loc[wider["fitted"], "layers"].tolist() == [12, 36, 100], "another seed's depth takes no line away"
    assert wider["A"].iloc[0] == pytest.approx(-0.3) and set(wider["seeds"]) == {1}
    both = depth_law.select(
        [*exact(-0.3, 6.1), *exact(-0.3, 5.9, seed=1), *exact(0.0, 4.0, depths=(6, 18, 100), seed=2)]
    )
    assert set(both.loc[both["fitted"], "seed"]) == {0, 1} and set(both["seeds"]) == {2}, "of equal lines the surest"
    assert depth_law.law(both.iloc[0]).endswith("R² 1.00, 2 seeds")
    apart = [*exact(-0.3, 6.0, depths=(6, 18)), *exact(-0.3, 6.0, depths=(50,), seed=1)]
    assert depth_law.select(apart).empty, "no seed is at three depths"


def test_fewer_than_three_depths_that_train_unequal_stacks_and_short_runs_have_no_law() -> None:
    assert depth_law.select(exact(-0.3, 6.0)[:2]).empty
    lost = [*exact(-0.3, 6.0)[:2], ended(spec("deepnorm", 50, warmup=0, steps=250), "stuck", 6.0)]
    assert depth_law.select(lost).empty
    unequal = [ended(spec("deepnorm", n, 2 * n), loss=5 - n / 100) for n in DEPTHS]
    assert depth_law.select(unequal).empty
    assert depth_law.select([ended(spec("deepnorm", n), "early") for n in DEPTHS]).empty
    assert depth_law.select([ended(spec("deepnorm", n, warmup=w)) for n, w in ((6, 0), (18, 0), (50, 9))]).empty
    decoders = [ended(spec("deepnorm", 0, n), loss=5 - n / 100) for n in DEPTHS]
    assert set(depth_law.select(decoders)["shape"]) == {"decoder"}
    assert depth_law.PICTURE.title([]) == "Quality against the logarithm of depth"


def test_the_picture_has_every_law_in_its_legend() -> None:
    lost = ended(spec("post-ln", 100, warmup=0, steps=250), "diverged", math.nan)
    runs = [*exact(-0.3, 6.0), *exact(-0.1, 6.0, "post-ln"), lost]
    drawn = depth_law.PICTURE.drawn(depth_law.select(runs))
    (axes,) = drawn.axes
    texts = [text.get_text() for text in drawn.legends[0].get_texts()]
    laws = {f"{label}: loss = −{a}·ln d + 6, R² 1.00, one seed" for label, a in (("Post-LN", 0.1), ("DeepNorm", 0.3))}
    assert laws <= set(texts)
    crosses = [line for line in axes.lines if line.get_marker() == "x"]
    assert [float(x) for line in crosses for x in line.get_xdata()] == [200.0]
