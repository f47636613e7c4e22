"""What may be compared with what."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stabkit import methods, words
from stabkit.methods.base import Method
from stabkit.methods.groups import group_of
from stabkit.results import conditions as comparison
from stabkit.results import readings as numbers
from stabkit.results.conditions import ends_in_norm, norm_after_sum, output_layers, output_stack
from tests.figures.fake_runs import plausible, spec


def conditions(specs):
    return [str(condition) for condition in comparison.conditions(specs)]


def test_runs_that_differ_in_the_seed_alone_share_the_empty_condition() -> None:
    assert conditions([spec("post-ln", 6), spec("deepnorm", 18, seed=3)]) == ["", ""]


def test_a_condition_names_only_what_differs() -> None:
    specs = [spec(warmup=0, lr=2e-3), spec(warmup=4000, lr=2e-3), spec(warmup=0, lr=2e-3, seed=1)]
    assert conditions(specs) == ["no warm-up", "warm-up 4000", "no warm-up"]
    two = conditions([spec(alpha_scale=0.25, steps=32), spec(beta_scale=4.0)])
    assert two == ["32 steps, α × 0.25, β × 1", "16 steps, α × 1, β × 4"]


def test_two_settings_that_read_alike_are_numbered_apart() -> None:
    texts = conditions([spec(digest="0123456789ab"), spec(digest="0123456789ac")])
    assert texts == ["corpus 01234567 [1]", "corpus 01234567 [2]"]


def test_the_synthetic_languages_digest_is_not_told_beside_the_size_of_its_batches() -> None:
    two = [spec(digest=d, max_tokens=n) for d, n in (("aa", 256), ("bb", 512))]
    assert conditions(two) == ["256 tokens per batch", "512 tokens per batch"]
    assert conditions([*two, spec(digest="cc", max_tokens=512)]) == [
        *("256 tokens per batch", "512 tokens per batch [1]", "512 tokens per batch [2]")
    ]
    files = [spec(digest=d, max_tokens=n, source="de") for d, n in (("aa", 256), ("bb", 512))]
    assert conditions(files)[0] == "256 tokens per batch, corpus aa"


def test_conditions_stand_in_the_order_of_their_values() -> None:
    specs = [spec(warmup=4000), spec(warmup=0), spec(warmup=400)]
    order = comparison.condition_order(specs)
    texts = [str(condition) for condition in sorted(order, key=lambda condition: order[condition])]
    assert texts == [
        "no warm-up",
        "warm-up 400",
        "warm-up 4000",
    ]


def test_runs_are_shown_once_and_in_table_order() -> None:
    runs = [plausible(spec(m, n, seed=s)) for m in ("deepnorm", "post-ln") for n in (18, 6) for s in (1, 0)]
    placed = [(s.label, s.run.spec.depth, s.run.spec.seed) for s in comparison.shown([*runs, *runs])]
    assert placed == [
        (label, depth, seed) for label in ("Post-LN", "DeepNorm") for depth in ("6L-6L", "18L-18L") for seed in (0, 1)
    ]


def test_a_method_of_another_version_stands_for_itself() -> None:
    other = spec("some-new-method", options={"a": "b"})
    assert comparison.method_label(other) == "some-new-method (a=b)"
    assert comparison.method_group(other) == "other"


def test_the_reference_step_is_16_or_the_last_that_all_runs_share() -> None:
    long, short = plausible(spec(steps=40)), plausible(spec(steps=9))
    assert numbers.reference_step([long]) == 16
    assert numbers.reference_step([long, short]) == 9
    assert numbers.reference_step([long, plausible(spec("post-ln"), until=3)]) == 16
    assert numbers.reference_step([]) == 16


@pytest.mark.parametrize(
    ("value", "read"),
    [(1.5, 1.5), (3, 3.0), ("inf", math.inf), ("-inf", -math.inf), ("1.5", math.nan), (None, math.nan), ([], math.nan)],
)
def test_numbers_of_json_files_are_read_back(value: object, read: float) -> None:
    assert words.number(value) == read or math.isnan(read) and math.isnan(words.number(value))
    assert math.isnan(words.number("nan"))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        *[(0.75, "0.75"), (41.2, "41"), (4.54, "4.5"), (0.0, "0"), (1e-14, "1e-14"), (1.34e-7, "1.3e-7")],
        *[(0.0999, "0.10"), (9.99, "10"), (12345.0, "12000"), (3e5, "3e5"), (-2e-9, "-2e-9")],
        *[(math.nan, "–"), (math.inf, "∞"), (-math.inf, "−∞")],
    ],
)
def test_numbers_are_written_for_reading(value: float, text: str) -> None:
    assert words.short(value) == text


@given(st.floats(min_value=1e-300, max_value=1e300), st.integers(1, 4))
def test_a_written_number_is_the_number_to_its_digits(value: float, digits: int) -> None:
    assert math.isclose(float(words.short(value, digits)), value, rel_tol=0.51 * 10 ** (1 - digits))


@pytest.mark.slow
@given(st.text())
def test_a_plain_text_holds_nothing_that_does_not_print(text: str) -> None:
    assert words.plain(text).isprintable()


def test_the_centre_takes_finite_positive_values_alone() -> None:
    assert numbers.centre([1.0, 100.0, math.nan, math.inf, 0.0]) == pytest.approx(10.0)
    assert math.isnan(numbers.centre([math.nan]))


def test_the_output_comes_from_the_decoder_or_from_an_encoder_alone() -> None:
    assert output_layers(spec("post-ln", 3, 2)) == ["decoder.1", "decoder.2"] == output_layers(spec("post-ln", 0, 2))
    assert output_layers(spec("post-ln", 2, 0)) == ["encoder.1", "encoder.2"]
    assert output_stack([6, 3]) == "decoder" == output_stack([])
    assert output_stack([0]) == "encoder" and output_stack([0, 6]) == "decoder or encoder"


@pytest.mark.parametrize("method", methods.DEFAULTS, ids=methods.KEYS)
def test_which_outputs_have_a_ceiling_and_which_sums_enter_a_norm_follows_the_group(method: Method) -> None:
    for layers in ((2, 2), (2, 0), (0, 2)):
        if not method.undefined(*layers):
            bounds = method.key in ("dyt", "derf")  # and norms nothing
            ends = (group_of(method) not in ("No-LN", "Dual") and not bounds) or method.key == "siamesenorm"
            assert ends_in_norm(spec(method.key, *layers)) == ends
            partly = method.key in ("keel", "siamesenorm")  # its first has none; one of its streams
            after = group_of(method) in ("Post-LN", "DeepNorm", "Dual") and not partly
            assert norm_after_sum(spec(method.key, *layers)) == after
    assert ends_in_norm(spec("tomorrow", 2)) and norm_after_sum(spec("tomorrow", 2))
