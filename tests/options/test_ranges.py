"""The little languages of the command line."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stabkit.errors import UsageError
from stabkit.options import ranges


@pytest.mark.parametrize(
    ("text", "values"),
    [("6", (6,)), ("6,18,50,100", (6, 18, 50, 100)), ("0..4", (0, 1, 2, 3, 4)), (" 3 , 3,2", (3, 2)), ("1..1", (1,))],
)
def test_whole_numbers_lists_and_spans(text, values):
    assert ranges.wholes("--seeds", text, 0, 1000) == values


@pytest.mark.parametrize(
    ("text", "pairs"),
    [("6,18", ((6, 6), (18, 18))), ("60x12", ((60, 12),)), ("2..4", ((2, 2), (3, 3), (4, 4))), ("6,6x6", ((6, 6),))],
)
def test_depths_are_pairs_of_encoder_and_decoder_layers(text, pairs):
    assert ranges.depths("--depths", text) == pairs


@pytest.mark.parametrize(("arch", "pairs"), [("encoder-only", ((6, 0), (18, 0))), ("decoder-only", ((0, 6), (0, 18)))])
def test_depths_of_one_stack_are_one_number_each(arch, pairs):
    assert ranges.depths("--depths", "6,18", ranges.ARCHITECTURES[arch]) == pairs
    with pytest.raises(UsageError, match="one stack has one depth"):
        ranges.depths("--depths", "60x12", ranges.ARCHITECTURES[arch])


@pytest.mark.parametrize(
    "text",
    ["", "6 18", *", 6,,18 1_000 ٣ -5 +5 6.0 1e3 4..0 0.. ..4 0...4 0..4..2 0x x2 6x12x3 nan".split(), "9" * 20],
)
def test_what_is_not_a_depth_is_refused_with_the_option_and_the_token(text):
    with pytest.raises(UsageError, match="--depths"):
        ranges.depths("--depths", text)


@pytest.mark.parametrize("text", ["nan", "inf", "-1", "1e-400", "0", "1e999", "1_0", "", "5e", ".", "0x1p3"])
def test_what_is_not_a_rate_is_refused(text):
    with pytest.raises(UsageError, match="--lr"):
        ranges.reals("--lr", text, 0.0, 1e6, above=True)


def test_a_span_of_millions_is_refused_before_it_is_built():
    with pytest.raises(UsageError, match="at most 10000 are allowed"):
        ranges.wholes("--seeds", "0..99999999", 0, 10**9)


@given(st.text(max_size=30))
def test_any_text_is_values_or_a_usage_error(text):
    for parse in (
        lambda: ranges.depths("--depths", text),
        lambda: ranges.wholes("--seeds", text, 0, 10**6),
        lambda: ranges.reals("--lr", text, 0.0, 1e6),
    ):
        try:
            assert parse()
        except UsageError as error:
            assert "\n" not in str(error) or "\n" in text


@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=20, unique=True))
def test_what_is_written_as_a_list_is_read_back(values):
    assert ranges.wholes("--seeds", ",".join(map(str, values)), 0, 10**6) == tuple(values)


@pytest.mark.parametrize("text", ["E0", "e5", ".", ".e1", "1e", "1.2.3"])
def test_an_exponent_without_a_number_is_no_number(text):
    with pytest.raises(UsageError, match="--lr"):
        ranges.reals("--lr", text, 0.0, 1e6)
