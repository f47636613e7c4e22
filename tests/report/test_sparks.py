"""The small curves in the cells of the matrix."""

from __future__ import annotations

import pytest

from stabkit.report.sparks import HEIGHT, MARGIN, MOST_POINTS, sparks
from stabkit.results.matrix import matrix
from stabkit.results.run import Run
from tests.figures.fake_runs import plausible, run, spec, table


def judged(losses: list[float], seed: int = 0) -> Run:
    """A run with these validation losses; its unigram loss is 6."""
    steps = list(range(len(losses)))
    read = {"validation": table(steps, {"validation": losses}), "update": table(steps, {"state": [9.0] * len(steps)})}
    return run(spec("deepnorm", 6, seed=seed), read, "trains")


def test_a_cell_that_was_judged_has_its_validation_losses_and_a_line_at_the_unigram_loss() -> None:
    runs = [judged([8.0, 5.0, 4.0]), judged([8.0, 6.0, 5.0], seed=1)]
    (found,) = sparks(runs, matrix(runs)).values()
    heights = [[float(point.split(",")[1]) for point in curve.split()] for curve in found.curves]
    low, middle, high = HEIGHT - MARGIN, HEIGHT / 2, MARGIN
    assert heights == [[high, pytest.approx(21.5), low], [high, middle, pytest.approx(21.5)]]
    assert found.level == middle, "6 lies halfway from 4 to 8"


def test_any_other_cell_has_the_logarithm_of_its_updates_thinned_and_without_records_no_curve() -> None:
    runs = [plausible(spec("deepnorm", 6, steps=1000)), run(spec("post-ln", 2), {})]
    found = sparks(runs, matrix(runs))
    (heights,) = ([float(point.split(",")[1]) for point in curve.split()] for curve in found[(runs[0].run_id,)].curves)
    assert 2 < len(heights) <= MOST_POINTS and max(heights) == HEIGHT - MARGIN and min(heights) == MARGIN
    assert not "".join(found[(runs[1].run_id,)].curves)
