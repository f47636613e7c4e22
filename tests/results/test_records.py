"""Records: whole, exact, checked."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from stabkit.errors import StoreError
from stabkit.results.records import Recorder, Table, from_bytes, jsonable, to_bytes


@given(
    hnp.arrays(
        np.float64,
        hnp.array_shapes(min_dims=2, max_dims=2, max_side=5),
        elements=st.floats(allow_nan=True, allow_infinity=True),
    )
)
def test_every_float_comes_back_to_the_bit_and_every_nan_as_one(values):
    table = Table(np.arange(len(values)), tuple(f"s{i}" for i in range(values.shape[1])), values)
    back = from_bytes(to_bytes({"x": table}))["x"]
    np.testing.assert_array_equal(back.values, values)
    assert np.signbit(back.values[~np.isnan(values)]).tolist() == np.signbit(values[~np.isnan(values)]).tolist()
    assert back.sites == table.sites


def test_equal_records_give_equal_bytes_whatever_the_nan():
    one, two = np.array([[np.nan]]), np.array([[-np.nan]])
    assert to_bytes({"x": Table(np.array([0]), ("a",), one)}) == to_bytes({"x": Table(np.array([0]), ("a",), two)})


def test_a_recorder_makes_one_table_a_probe_with_its_own_steps():
    recorder = Recorder()
    recorder.add("loss", 0, ("train",), [8.0])
    recorder.add("loss", 1, ("train",), [7.5])
    recorder.add("validation", 1, ("validation",), [7.6])
    tables = recorder.tables()
    assert tables["loss"].at("train").tolist() == [8.0, 7.5] and tables["validation"].steps.tolist() == [1]


@pytest.mark.parametrize("cut", [0, 1, 10, -1, -30])
def test_a_truncated_file_is_refused(cut):
    data = to_bytes({"x": Table(np.array([0]), ("a",), np.array([[1.0]]))})
    with pytest.raises(StoreError):
        from_bytes(data[:cut])


def test_numbers_that_json_cannot_hold_are_strings():
    values = {"a": [float("nan"), 1.0], "b": (float("inf"), -float("inf"))}
    assert jsonable(values) == {"a": ["nan", 1.0], "b": ["inf", "-inf"]}
