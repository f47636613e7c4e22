"""Which law a change under a fixed perturbation follows: made-up series of each law, and what is said of runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from stabkit.figures import perturbation
from stabkit.figures.perturbation import UNDECIDED, law, laws
from stabkit.store import Run
from tests.figures.fake_runs import plausible, run, spec, table

Floats = NDArray[np.float64]
OVER: dict[str, Callable[[Floats], Floats]] = {"O(1)": np.ones_like, "O(log n)": np.log, "O(n)": lambda n: n}
few = settings(max_examples=60, deadline=None)


def places(count: int) -> Floats:
    return np.arange(1, count + 1, dtype=np.float64)


@given(
    name=st.sampled_from(["O(log n)", "O(n)"]),
    a=st.floats(-0.9, 0.5),
    b=st.floats(0.01, 100.0),
    factor=st.floats(4.0, 20.0),
)
@few
def test_a_square_that_grows_by_a_law_is_recognised_whatever_its_level(
    name: str, a: float, b: float, factor: float
) -> None:
    n = 12 * factor ** np.linspace(0, 1, 5)
    over = OVER[name](n)
    found, exponent = law(1e-3 * np.sqrt(b * (a * over[0] + over)), n)  # a < 0: b·log(n/n₀) is O(log n) all the same
    assert found in (name, "O(1)") and exponent > 0
    assert found == name or (a * over[0] + over).max() <= 1.5 * (a * over[0] + over).min()


def test_the_referees_example_of_a_logarithm_is_one() -> None:
    n = np.array([18.0, 54.0, 150.0, 300.0])
    assert law(np.sqrt(np.log(n / 6)), n)[0] == "O(log n)"


@pytest.mark.parametrize("power", [2.0, 3.0])
def test_what_grows_faster_than_either_law_is_undecided_and_its_exponent_told(power: float) -> None:
    n = np.array([18.0, 54.0, 150.0, 300.0])
    found, exponent = law(np.sqrt(n**power), n)
    assert exponent == pytest.approx(power) and found in (UNDECIDED, "O(n)")


@given(value=st.floats(1e-6, 1e3), count=st.integers(4, 300))
@few
def test_what_does_not_change_is_constant(value: float, count: int) -> None:
    name, exponent = law(np.full(count, value), places(count))
    assert name == "O(1)" and exponent == pytest.approx(0.0, abs=1e-9)


def test_what_falls_follows_no_law_of_growth() -> None:
    n = np.array([12.0, 36.0, 100.0, 300.0])
    assert law(np.sqrt(1 / n), n) == (UNDECIDED, pytest.approx(-1.0))


def test_noise_alone_is_never_a_law_of_growth() -> None:
    n = places(200)
    noise = [np.random.default_rng(seed).lognormal(0, 0.3, 200) for seed in range(20)]
    assert {law(each, n)[0] for each in noise} == {UNDECIDED}


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, 1e200, 0.0])
@np.errstate(all="ignore")
def test_what_is_not_finite_or_nothing_follows_no_law(bad: float) -> None:
    assert law(np.array([1.0, 2.0, bad, 4.0]), places(4))[0] == ""
    assert law(np.full(4, bad), places(4))[0] == ""


def test_three_depths_follow_no_law() -> None:
    assert law(np.array([1.0, 2.0, 3.0]), places(3))[0] == "" == law(np.empty(0), np.empty(0))[0]


def measured(method: str, layers: int, change: Sequence[float], **changes: object) -> Run:
    """A decoder alone whose state after its sub-layers moves so."""
    sites = [f"decoder.{i // 2 + 1}.{('self', 'ffn')[i % 2]}" for i in range(len(change))]
    columns = {"encoder.1.self": [9e9], **{name: [value] for name, value in zip(sites, change, strict=True)}}
    return run(spec(method, 0, layers, **changes), {"perturbation": table([0], columns)})  # type: ignore[arg-type]


def deep(method: str, over: Callable[[float], float], **changes: object) -> list[Run]:
    """Outputs whose squared change is 10⁻⁶ times `over(n)` at n = 12, 36, 100, 200, whatever comes before."""
    return [
        measured(method, n // 2, [1.0] * (n - 1) + [1e-3 * math.sqrt(over(n))], **changes) for n in (12, 36, 100, 200)
    ]


def test_over_depths_the_law_is_that_of_the_last_sub_layer() -> None:
    runs = [
        *deep("post-ln", lambda n: 2 * n),
        *deep("pre-ln", lambda n: 1 + math.log(n)),
        *deep("deepnorm", lambda n: 3),
    ]
    frame = perturbation.select(runs)
    assert {label: name for label, (name, _) in laws(frame).items()} == {
        "Post-LN": "O(n)",
        "Pre-LN": "O(log n)",
        "DeepNorm": "O(1)",
    }
    assert perturbation.title(runs) == (
        "With the number of sub-layers the output's squared change grows as n^1.0 under Post-LN (O(n)), "
        "as n^0.0 under DeepNorm (O(1))"
    )
    assert set(frame["law"]) == {"O(n)", "O(log n)", "O(1)"}
    assert laws(perturbation.select(runs[:3])) == {}


def test_shapes_of_models_are_not_mixed() -> None:
    """12 sub-layers of a decoder alone and of one beside an encoder are two points, not one."""
    beside = run(spec("post-ln", 4, 4), {"perturbation": table([0], {f"decoder.{i}.ffn": [9.0] for i in range(1, 13)})})
    runs = deep("post-ln", lambda n: 2 * n)
    assert laws(perturbation.select([*runs, beside])) == laws(perturbation.select(runs))


def test_over_depths_seeds_count_by_their_geometric_mean() -> None:
    apart = [made for seed, by in ((0, 10.0), (1, 0.1)) for made in deep("post-ln", lambda n, by=by: by * n, seed=seed)]  # type: ignore[misc]
    lopsided = [*apart, measured("post-ln", 6, [1.0] * 11 + [math.nan], seed=2)]
    assert (
        laws(perturbation.select(apart))
        == laws(perturbation.select(lopsided))
        == {"Post-LN": ("O(n)", pytest.approx(1.0))}
    )


def test_conditions_are_not_mixed() -> None:
    """Each warm-up has its own law; that of the first is told."""
    runs = [*deep("post-ln", lambda n: n, warmup=0), *deep("post-ln", lambda n: 5.0, warmup=4000)]
    assert laws(perturbation.select(runs)) == {"Post-LN": ("O(n)", pytest.approx(1.0))}


def test_the_frame_holds_every_sub_layer_of_the_stack_that_gives_the_output() -> None:
    made = measured("post-ln", 1, [0.25, 0.5])
    facts = [made.run_id, "post-ln", "Post-LN", "", "1L decoder", 0, 1, 0, "early"]
    expected = pd.DataFrame(
        [[*facts, 1, 0.25, "", math.nan], [*facts, 2, 0.5, "", math.nan]], columns=list(perturbation.COLUMNS)
    )
    pd.testing.assert_frame_equal(perturbation.select([made]), expected)
    assert perturbation.series(made).tolist() == [0.25, 0.5]
    assert perturbation.alt(expected).endswith("At the last: Post-LN 1L decoder 0.50.")


@pytest.mark.parametrize("bad", [math.nan, math.inf, 0.0])
@np.errstate(all="ignore")
def test_runs_whose_change_is_not_finite_are_drawn_as_far_as_they_go(bad: float) -> None:
    runs = [measured("post-ln", 2, [1e-3, 2e-3, bad, bad]), measured("deepnorm", 2, [bad] * 4)]
    frame = perturbation.select(runs)
    assert len(frame) == 8 and "nan" not in perturbation.title(runs) + perturbation.alt(frame)
    perturbation.draw(frame)


def test_runs_that_recorded_none_have_no_frame_and_a_title_all_the_same() -> None:
    for runs in ([], [run(spec("post-ln", 2), {})], [run(spec("post-ln", 2), {"perturbation": table([], {})})]):
        frame = perturbation.select(runs)
        assert frame.empty and tuple(frame.columns) == perturbation.COLUMNS and laws(frame) == {}
        assert perturbation.title(runs) == "How far the output moves when every weight moves a little"
    one = perturbation.title([measured("post-ln", 1, [1.0, 2.0])])
    assert one == "How far the output moves when every weight moves a little"


def test_a_page_has_a_curve_a_method_at_each_depth() -> None:
    runs = [plausible(spec(method, n)) for method in ("post-ln", "deepnorm") for n in (2, 3)]
    drawn = perturbation.draw(perturbation.select(runs))
    lengths = [len(np.asarray(line.get_xdata())) for axes in drawn.axes for line in axes.lines]
    assert sorted(lengths) == [6, 6, 9, 9]
