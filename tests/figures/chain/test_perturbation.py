"""Which law a change under a fixed perturbation follows: made-up series of each law, and what is said of runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from stabkit.figures.chain.layer_curves import PERTURBATION
from stabkit.results import perturbation
from stabkit.results.perturbation import FLAT, LEAST, LEAST_R2, MARGIN, STEEP, UNDECIDED, law, laws
from stabkit.results.run import Run
from tests.conftest import examples
from tests.figures.fake_runs import plausible, run, spec, table

Floats = NDArray[np.float64]
OVER: dict[str, Callable[[Floats], Floats]] = {"O(log n)": np.log, "O(n)": lambda n: n}
few = examples(60)


def depths(first: int, ratio: float, count: int) -> Floats:
    return np.array([first * ratio**i for i in range(count)])


@given(
    name=st.sampled_from(list(OVER)),
    n=st.builds(depths, st.integers(2, 12), st.floats(2.0, 4.0), st.integers(4, 7)),
    a=st.floats(-0.9, 0.5),
    b=st.floats(1e-9, 1e3),
)
@few
def test_a_square_that_grows_by_a_law_is_recognised(name: str, n: Floats, a: float, b: float) -> None:
    over = OVER[name](n)
    found, exponent = law(np.sqrt(b * (a * over[0] + over)), n)  # a < 0: b·log(n/n₀) is O(log n) all the same
    assert found == name and exponent > 0


@pytest.mark.parametrize("power", [2.0, 3.0])
def test_what_grows_faster_than_either_law_has_its_exponent_told(power: float) -> None:
    found, exponent = law(depths(18, 2.5, 4) ** (power / 2), depths(18, 2.5, 4))
    assert exponent == pytest.approx(power) and found in (UNDECIDED, "O(n)")


def test_noise_alone_is_never_a_law_of_growth() -> None:
    noise = [np.random.default_rng(seed).lognormal(0, 0.3, 200) for seed in range(20)]
    assert {law(each, np.arange(1.0, 201.0))[0] for each in noise} == {UNDECIDED}


@given(name=st.sampled_from(list(OVER)), seed=st.integers(0, 10**6))
@few
def test_a_law_is_recognised_within_two_percent_of_noise(name: str, seed: int) -> None:
    n, noise = depths(12, 3.0, 5), np.random.default_rng(seed).lognormal(0, 0.02, 5)
    assert law(np.sqrt(OVER[name](n)) * noise, n)[0] == name


@given(value=st.floats(1e-6, 1e3), count=st.integers(LEAST, 30))
@few
def test_what_does_not_change_is_bounded_whatever_rounding_makes_of_its_mean(value: float, count: int) -> None:
    name, exponent = law(np.full(count, value), np.arange(1.0, count + 1))
    assert name == "O(1)" and exponent == pytest.approx(0.0, abs=1e-9)


def test_what_changes_by_less_than_half_of_itself_is_bounded_however_well_a_law_fits() -> None:
    n = depths(12, 3.0, 4)
    for square, name in ((FLAT - 0.01, "O(1)"), (FLAT + 0.01, UNDECIDED), (27.0, "O(n)")):
        assert law(np.sqrt(np.interp(n, [n[0], n[-1]], [1.0, square])), n)[0] == name
    assert law(np.sqrt([1.4, 1.0, 1.3, 1.2]), n)[0] == "O(1)"


@given(power=st.floats(-3.0, 3.0), size=st.floats(1e-6, 1e3))
@few
def test_the_exponent_is_that_of_the_square_whatever_the_law(power: float, size: float) -> None:
    n = depths(6, 2.5, 5)
    assert law(size * n ** (power / 2), n)[1] == pytest.approx(power, abs=1e-9)


@pytest.mark.parametrize(
    ("squares", "n", "name"),
    [
        (np.log([3.0, 9.0, 25.0, 50.0]), [18.0, 54.0, 150.0, 300.0], "O(log n)"),
        ([8.0, 4.0, 2.0, 1.0], [6.0, 18.0, 54.0, 162.0], UNDECIDED),
        ([1.0, 4.0, 1.0, 4.0], [6.0, 18.0, 54.0, 162.0], UNDECIDED),
        ([1.0, 4.0, 9.0], [1.0, 4.0, 9.0], ""),
        ([], [], ""),
    ],
)
def test_a_law_of_known_squares(squares: Sequence[float], n: Sequence[float], name: str) -> None:
    assert law(np.sqrt(squares), np.array(n))[0] == name


def test_what_lies_halfway_between_the_laws_is_undecided() -> None:
    n = depths(6, 3.0, 5)
    halves = [(x - x.mean()) / x.std() for x in (np.log(n), n)]
    assert law(np.sqrt(sum(halves) + 3.0), n)[0] == UNDECIDED


@given(st.lists(st.floats(0.1, 10.0), min_size=LEAST, max_size=8))
@few
def test_a_law_explains_nine_tenths_and_a_good_deal_more_than_the_other(squares: list[float]) -> None:
    """R² of a line is the squared correlation."""
    y, n = np.array(squares), np.arange(1.0, len(squares) + 1) ** 2
    if y.max() <= FLAT * y.min() * 1.001:
        return
    explained = {}
    for name, over in OVER.items():
        correlation = float(np.corrcoef(over(n), y)[0, 1])
        explained[name] = max(correlation, 0.0) ** 2
    best, other = sorted(explained, key=lambda name: -explained[name])
    apart = explained[best] - explained[other]
    exponent = float(np.polyfit(np.log(n), np.log(y), 1)[0])
    if min(abs(explained[best] - LEAST_R2), abs(apart - MARGIN), abs(exponent - STEEP)) < 1e-9:
        return
    decided = explained[best] >= LEAST_R2 and apart >= MARGIN and (best != "O(n)" or exponent >= STEEP)
    assert law(np.sqrt(y), n)[0] == (best if decided else UNDECIDED)


@pytest.mark.parametrize("bad", [math.nan, math.inf, 0.0, 1e200])
@np.errstate(all="ignore")
def test_what_is_not_finite_or_did_not_move_follows_no_law(bad: float) -> None:
    n = depths(6, 2.0, 5)
    for change in ([1.0, 2.0, bad, 4.0, 5.0], [bad] * 5):
        name, exponent = law(np.array(change), n)
        assert name == "" and math.isnan(exponent)


def measured(method: str, layers: int, change: Sequence[float], encoder: int = 0, **changes: object) -> Run:
    """A model whose state after its decoder's sub-layers moves so; of an encoder's it says what must not be read."""
    sites = [f"decoder.{i // 3 + 1}.{('self', 'cross', 'ffn')[i % 3]}" for i in range(len(change))]
    columns = {"encoder.1.self": [9e9], **{name: [value] for name, value in zip(sites, change, strict=True)}}
    return run(spec(method, encoder, layers, **changes), {"perturbation": table([0], columns)})  # type: ignore[arg-type]


def deep(method: str, over: Callable[[float], float], encoder: float = 1, **changes: object) -> list[Run]:
    """Outputs whose squared change is 10⁻⁶ times `over(n)` at n = 6, 18, 54 and 150 sub-layers of the decoder, whatever
    comes before; `encoder` layers for each of the decoder's."""
    return [
        measured(method, n // 3, [1.0] * (n - 1) + [1e-3 * math.sqrt(over(n))], round(encoder * n / 3), **changes)
        for n in (6, 18, 54, 150)
    ]


def test_the_law_over_depths_is_that_of_the_last_sub_layer() -> None:
    over: dict[str, Callable[[float], float]] = {
        "post-ln": lambda n: 2 * n,
        "pre-ln": math.log,
        "deepnorm": lambda n: 3,
    }
    runs = [made for method in over for made in deep(method, over[method])]
    found = laws(PERTURBATION.select(runs))
    assert {label: name for label, (name, _) in found.items()} == {
        "Post-LN": "O(n)",
        "Pre-LN": "O(log n)",
        "DeepNorm": "O(1)",
    }
    assert found["Post-LN"][1] == pytest.approx(1.0) and found["DeepNorm"][1] == pytest.approx(0.0, abs=1e-9)
    grows = "With the number of sub-layers the output's squared change grows as"
    assert PERTURBATION.title(runs) == f"{grows} n^1.0 under Post-LN (O(n)), as n^0.0 under DeepNorm (O(1))"
    assert "Its square over the depths: Post-LN n^1.00 O(n); Pre-LN" in PERTURBATION.described(
        PERTURBATION.select(runs)
    )


def test_seeds_count_by_their_centre_and_a_lost_one_is_left_out() -> None:
    apart = [*deep("post-ln", lambda n: 10 * n), *deep("post-ln", lambda n: 0.1 * n, seed=1)]
    lost = measured("post-ln", 2, [1.0] * 5 + [math.nan], 2, seed=2)
    for runs in (apart, [*apart, lost]):
        assert laws(PERTURBATION.select(runs)) == {"Post-LN": ("O(n)", pytest.approx(1.0))}


def test_conditions_are_not_mixed() -> None:
    """Each warm-up has its own law; that of the first is told."""
    runs = [*deep("post-ln", lambda n: n, warmup=0), *deep("post-ln", lambda n: 5.0, warmup=4000)]
    assert laws(PERTURBATION.select(runs)) == {"Post-LN": ("O(n)", pytest.approx(1.0))}


def test_shapes_of_model_are_not_mixed_and_unequal_stacks_have_no_law() -> None:
    single = [measured("post-ln", n, [1.0] * (2 * n - 1) + [9.0]) for n in (2, 100)]  # a decoder alone, twice
    assert laws(PERTURBATION.select([*deep("post-ln", lambda n: n), *single])) == {
        "Post-LN": ("O(n)", pytest.approx(1.0))
    }
    assert laws(PERTURBATION.select(deep("post-ln", lambda n: n, encoder=2))) == {}


def test_of_fewer_depths_nothing_is_said() -> None:
    runs = [*deep("post-ln", lambda n: n)[:3], *deep("deepnorm", lambda n: 1.0)[:3]]
    frame = PERTURBATION.select(runs)
    assert laws(frame) == {} and set(frame["law"]) == {""}
    assert PERTURBATION.title(runs) == NOTHING == PERTURBATION.title(deep("post-ln", lambda n: n)), "one has no other"


NOTHING = "How far the output moves when every weight moves a little"


def test_the_frame_holds_every_sub_layer_of_the_stack_that_gives_the_output_and_the_law() -> None:
    made = measured("post-ln", 1, [0.25, 0.5, 0.75], 1)
    facts = [made.run_id, "post-ln", "Post-LN", "", "1L-1L", 1, 1, 0, "undecided"]
    rows = [[*facts, i, 0.25 * i, ""] for i in (1, 2, 3)]
    expected = pd.DataFrame(rows, columns=list(PERTURBATION.columns))
    pd.testing.assert_frame_equal(PERTURBATION.select([made]), expected)
    assert perturbation.series(made).tolist() == [0.25, 0.5, 0.75]
    assert PERTURBATION.described(expected).endswith(
        "by decoder sub-layer, logarithmic. At the last: Post-LN, 1L-1L 0.75."
    )
    told = PERTURBATION.select(deep("post-ln", lambda n: n))
    assert set(told["law"]) == {"n^1.00, O(n)"}


@pytest.mark.parametrize("bad", [math.nan, math.inf, 0.0])
@np.errstate(all="ignore")
def test_runs_whose_change_is_not_finite_are_drawn_as_far_as_they_go(bad: float) -> None:
    runs = [measured("post-ln", 1, [1e-3, 2e-3, bad], 1), *deep("deepnorm", lambda n: bad)]
    frame = PERTURBATION.select(runs)
    assert len(frame) == 3 + 6 + 18 + 54 + 150 and laws(frame) == {}
    assert "nan" not in PERTURBATION.title(runs) + PERTURBATION.described(frame)
    PERTURBATION.drawn(frame)


def test_runs_that_recorded_none_have_no_frame_and_a_title_all_the_same() -> None:
    for runs in ([], [run(spec("post-ln", 2), {})], [run(spec("post-ln", 2), {"perturbation": table([], {})})]):
        frame = PERTURBATION.select(runs)
        assert frame.empty and tuple(frame.columns) == PERTURBATION.columns and laws(frame) == {}
        assert PERTURBATION.title(runs) == NOTHING


def test_a_page_has_a_curve_a_method_at_each_depth() -> None:
    runs = [plausible(spec(method, n)) for method in ("post-ln", "deepnorm") for n in (2, 3)]
    drawn = PERTURBATION.drawn(PERTURBATION.select(runs))
    lengths = [len(np.asarray(line.get_xdata())) for axes in drawn.axes for line in axes.lines]
    assert sorted(lengths) == [6, 6, 9, 9]
