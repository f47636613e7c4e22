"""Very Deep Transformers Fig. 2: the perplexity of both kinds of batches, exactly, and what is said of it."""

from __future__ import annotations

import math

import pandas as pd
import pytest

from stabkit.figures.methods.perplexity import PICTURE
from stabkit.results.run import Run
from tests.figures.fake_runs import plausible, run, spec, table


def made(method: str, ends: float, outcome: str = "trains", depth: int = 18, **changes: object) -> Run:
    """Perplexity 1000 at step 0 and `ends` at step 250, on training batches half of it."""
    steps = [0, 1, 250] if outcome != "diverged" else [0, 1]
    nll = [math.log(1000), math.log(500), math.log(ends) if ends < math.inf else math.nan][: len(steps)]
    records = {
        "loss": table(steps, {"train": nll, "probe": nll, "train@nll": [value - math.log(2) for value in nll]}),
        "validation": table([0, steps[-1]], {"validation": nll[::2] or nll, "nll": [nll[0], nll[-1]]})
        if outcome != "diverged"
        else table([0, 1], {"validation": nll, "nll": [nll[0], math.nan]}),
    }
    return run(spec(method, depth, **{"warmup": 0, "steps": 250, **changes}), records, outcome)


def test_the_frame_holds_every_reading_of_both_panels() -> None:
    one = made("admin", 50.0)
    frame = PICTURE.select([one])
    facts = [one.run_id, "admin", "ADMIN", "", "18L-18L", 18, 18, 0, "trains"]
    rows = [[*facts, "training batches", step, value] for step, value in ((0, 500.0), (1, 250.0), (250, 25.0))]
    rows += [[*facts, "validation", step, value] for step, value in ((0, 1000.0), (250, 50.0))]
    pd.testing.assert_frame_equal(frame, pd.DataFrame(rows, columns=list(PICTURE.columns)))


def test_short_runs_and_runs_without_these_records_are_left_out() -> None:
    bare = run(spec("admin", 6, steps=250), {"loss": table([0], {"train": [8.0], "probe": [8.0]})})
    assert PICTURE.select([made("admin", 50.0, steps=39), bare, run(spec("admin", 9, steps=250), {})]).empty
    assert len(PICTURE.select([made("admin", 50.0, steps=40)])) == 5
    assert PICTURE.title([]) == "Perplexity, update by update"
    assert PICTURE.described(PICTURE.select([])).startswith("No run is long enough")


def test_the_title_compares_the_ends_at_the_deepest_place() -> None:
    runs = [made("post-ln", 400.0), made("admin", 50.0), made("admin", 40.0, depth=6), made("post-ln", 45.0, depth=6)]
    assert PICTURE.title(runs) == "At 18L-18L ADMIN's validation perplexity ends at 50.0, Post-LN's at 400"
    lost = [made("post-ln", math.inf, "diverged"), made("admin", 50.0)]
    assert PICTURE.title(lost) == "At 18L-18L ADMIN's validation perplexity ends at 50.0, Post-LN diverged"
    seeds = [*lost[:1], made("admin", 40.0), made("admin", 90.0, seed=1)]
    assert "ADMIN's validation perplexity ends at 60.0" in PICTURE.title(seeds), "geometric"
    assert PICTURE.title(lost[:1]) == "Perplexity, update by update"


def test_two_panels_a_depth_and_a_diverged_run_ends_in_a_cross() -> None:
    runs = [made("post-ln", math.inf, "diverged"), made("admin", 50.0), made("admin", 40.0, depth=6)]
    drawn = PICTURE.drawn(PICTURE.select(runs))
    assert [axes.get_title(loc="left") for axes in drawn.axes] == [
        *("6L-6L, training batches", "6L-6L, validation", "18L-18L, training batches", "18L-18L, validation")
    ]
    crosses = [
        [(float(x), float(y)) for line in axes.lines if line.get_marker() == "x" for x, y in line.get_xydata()]
        for axes in drawn.axes
    ]
    assert crosses == [[], [], [(1.0, pytest.approx(250))], [(0.0, pytest.approx(1000))]], "where it was finite last"
    assert all(axes.get_yscale() == "log" for axes in drawn.axes)


def test_a_perplexity_beyond_what_a_float_holds_is_infinite_and_survives() -> None:
    huge = run(
        spec("post-ln", 2, steps=50),
        {"loss": table([0, 1], {"train": [1.0, 900.0], "probe": [1.0, 900.0], "train@nll": [1.0, 900.0]})},
        "diverged",
    )
    frame = PICTURE.select([huge, plausible(spec("admin", 2, steps=50))])
    assert frame["perplexity"].iloc[1] == math.inf
    PICTURE.drawn(frame)
