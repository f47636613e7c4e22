"""The small curves of a single run."""

from __future__ import annotations

import math

from stabkit.report import panel
from stabkit.words import short
from tests.figures.fake_runs import plausible, run, spec


def test_a_runs_curves_begin_and_end_where_its_records_do() -> None:
    one = plausible(spec("deepnorm", 6))
    (found,) = panel.panels([one])
    update, gradient = found.curves[1:]
    values = one.records["update"].at("state")
    seen = values[values > 0]
    assert found.words == "DeepNorm 6L-6L, seed 0" and found.key == panel.key(one.spec)
    assert f"{short(float(seen[0]), 3)} at step" in update.words and short(float(seen[-1]), 3) in update.words
    assert update.words.endswith("logarithmic") and "layer 1 to" in gradient.words
    heights = [float(point.split(",")[1]) for point in update.points.split()]
    assert min(heights) >= 0 and len(heights) <= panel.MOST_POINTS
    assert math.isclose(max(heights), panel.OF_RUN[1] - panel.OF_RUN[2]), "the least value stands at the bottom"


def test_a_run_without_records_says_so() -> None:
    (found,) = panel.panels([run(spec("post-ln", 2), {})])
    assert all(curve.points == "" and curve.words.endswith("not recorded") for curve in found.curves)
