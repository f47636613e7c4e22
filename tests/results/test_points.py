"""Of several seeds what lies between; hundreds of sub-layers as the medians of neighbours."""

import numpy as np
import pandas as pd
import pytest

from stabkit.results.points import MOST_PLACES, WHOLE, median, medians, over_seeds, size


@pytest.mark.parametrize("places", [1, 18, MOST_PLACES, MOST_PLACES + 1, 54, 150, 300, 3000])
def test_a_group_is_whole_layers_and_no_panel_has_many_more_points_than_asked(places):
    many = size(places)
    assert many == 1 if places <= MOST_PLACES else many % WHOLE == 0 and places / many <= MOST_PLACES


def test_a_beat_of_three_kinds_of_sub_layer_is_gone_and_both_ends_are_kept():
    kinds = np.tile([1.0, 2.0, 9.0], 100)
    frame = pd.DataFrame({"run": "a", "depth": "100L", "place": range(1, 301), "value": kinds, "last": kinds * 2})
    found, told = medians(frame, "place", ["value", "last"], ["run"])
    assert told == ", medians of 6" and set(found["depth"]) == {"100L"}
    assert found["place"].tolist()[0] == 1 and found["place"].max() == 300
    inside = found[(found["place"] > 6) & (found["place"] < 294)]
    assert inside["value"].tolist() == [2.0] * 48 and (inside["last"] == 4.0).all()


def test_few_places_stay_as_they_are():
    frame = pd.DataFrame({"run": "a", "place": range(1, MOST_PLACES + 1), "value": 1.0})
    found, told = medians(frame, "place", ["value"], ["run"])
    assert found is frame and told == ""


def test_of_several_runs_the_middle_the_least_and_the_greatest_without_nan() -> None:
    x, middle, low, high = over_seeds([2, 1, 2, 1], [4.0, np.nan, 8.0, 3.0], median)
    assert x.tolist() == [1, 2] and middle.tolist() == [3.0, 6.0]
    assert low.tolist() == [3.0, 4.0] and high.tolist() == [3.0, 8.0]
