"""Very Deep Transformers Fig. 2: the perplexity of both kinds of batches, exactly, and what is said of it."""

from __future__ import annotations

import math

import pandas as pd
import pytest

from stabkit.figures.methods import perplexity
from stabkit.results.run import Run
from tests.figures.fake_runs import known, plausible, run, spec, table


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
    frame = perplexity.select([one])
    facts = [one.run_id, "admin", "ADMIN", "", "18L-18L", 18, 18, 0, "trains"]
    rows = [[*facts, "training batches", step, value] for step, value in ((0, 500.0), (1, 250.0), (250, 25.0))]
    rows += [[*facts, "validation", step, value] for step, value in ((0, 1000.0), (250, 50.0))]
    pd.testing.assert_frame_equal(frame, pd.DataFrame(rows, columns=list(perplexity.COLUMNS)))


def test_short_runs_and_runs_without_these_records_are_left_out() -> None:
    bare = run(spec("admin", 6, steps=250), {"loss": table([0], {"train": [8.0], "probe": [8.0]})})
    assert perplexity.select([made("admin", 50.0, steps=39), bare, run(spec("admin", 9, steps=250), {})]).empty
    assert len(perplexity.select([made("admin", 50.0, steps=40)])) == 5
    assert perplexity.title([]) == "Perplexity, update by update"
    assert perplexity.PICTURE.described(perplexity.select([])).startswith("No run is long enough")


def test_the_title_compares_the_ends_at_the_deepest_place() -> None:
    runs = [made("post-ln", 400.0), made("admin", 50.0), made("admin", 40.0, depth=6), made("post-ln", 45.0, depth=6)]
    assert perplexity.title(runs) == "At 18L-18L ADMIN's validation perplexity ends at 50.0, Post-LN's at 400"
    lost = [made("post-ln", math.inf, "diverged"), made("admin", 50.0)]
    assert perplexity.title(lost) == "At 18L-18L ADMIN's validation perplexity ends at 50.0, Post-LN diverged"
    seeds = [made("admin", 40.0), made("admin", 90.0, seed=1)]
    assert perplexity.title(seeds) == "ADMIN's validation perplexity ends at 60.0 (18L-18L)"  # geometric
    assert perplexity.title(lost[:1]) == "Perplexity, update by update"


def test_two_panels_a_depth_and_a_diverged_run_ends_in_a_cross() -> None:
    runs = [made("post-ln", math.inf, "diverged"), made("admin", 50.0), made("admin", 40.0, depth=6)]
    drawn = perplexity.PICTURE.drawn(perplexity.select(runs))
    assert [axes.get_title(loc="left") for axes in drawn.axes] == [
        *("6L-6L, training batches", "6L-6L, validation", "18L-18L, training batches", "18L-18L, validation")
    ]
    crosses = [
        [(float(x), float(y)) for line in axes.lines if line.get_marker() == "x" for x, y in line.get_xydata()]
        for axes in drawn.axes
    ]
    assert crosses == [[], [], [(1.0, pytest.approx(250))], [(0.0, pytest.approx(1000))]], "where it was finite last"
    assert all(axes.get_yscale() == "log" for axes in drawn.axes)
    alone = perplexity.PICTURE.drawn(perplexity.select(runs[:2]))
    assert [axes.get_title(loc="left") for axes in alone.axes] == ["training batches", "validation"]


def test_of_many_depths_the_validation_alone_is_drawn_each_named_where_its_line_ends() -> None:
    runs = [made("admin", ends, depth=depth) for depth, ends in ((6, 90.0), (12, 80.0), (18, 70.0), (24, 60.0))]
    assert len(perplexity.PICTURE.drawn(perplexity.select(runs)).axes) == 8, "four depths have two panels each"
    runs.append(made("admin", 40.0, depth=36))
    (axes,) = perplexity.PICTURE.drawn(perplexity.select(runs)).axes
    assert (axes.get_title(loc="left"), axes.get_ylabel()) == ("ADMIN", "validation perplexity")
    assert [text.get_text() for text in axes.texts] == ["36L-36L", "24L-24L", "18L-18L", "12L-12L", "6L-6L"]
    ends = {
        round(float(line.get_ydata()[-1])): line
        for line in axes.lines
        if len(line.get_xdata()) == 2 and line.get_ydata()[0] > 900
    }
    assert sorted(ends) == [40, 60, 70, 80, 90]
    assert ends[40].get_linestyle() == "-" and ends[90].get_linewidth() < ends[60].get_linewidth()
    told = "validation perplexity ends lowest at 36L-36L (40.0), highest at 6L-6L (90.0)"
    assert perplexity.title(runs) == f"ADMIN: {told}"
    lost = made("admin", math.inf, "diverged", depth=48)
    told_lost = "validation perplexity ends lowest at 36L-36L (40.0), 48L-48L diverged"
    assert perplexity.title([*runs, lost]) == f"ADMIN: {told_lost}"
    rose = made("admin", 2000.0, depth=48)  # a run that diverged may end at a number
    known(rose, word="diverged")
    assert perplexity.title([*runs, rose]) == f"ADMIN: {told_lost}"
    assert perplexity.title([runs[0], rose]) == (
        "ADMIN: validation perplexity ends lowest at 6L-6L (90.0), 48L-48L diverged"
    )
    assert perplexity.title([rose]) == "Perplexity, update by update"
    assert perplexity.title([*runs, rose, made("admin", 30.0, depth=48, seed=1)]).endswith("48L-48L diverged in a run")
    faster = [*runs, made("admin", 20.0, lr=2e-3), made("admin", 20.0, lr=2e-3, depth=6)]
    assert perplexity.title(faster) == f"ADMIN, lr 0.0005: {told}", "of the condition with the most shapes"
    two = perplexity.PICTURE.drawn(perplexity.select(faster))
    assert len(two.axes) == 2
    (legend,) = two.legends
    assert [text.get_text() for text in legend.get_texts()] == ["ADMIN"], "conditions are panels, not line styles"
    assert [line.get_linestyle() for line in legend.get_lines()] == ["-"]
    two = [*runs, *(made("post-ln", 95.0, depth=depth) for depth in (6, 36))]
    assert [axes.get_title(loc="left") for axes in perplexity.PICTURE.drawn(perplexity.select(two)).axes] == [
        "Post-LN",
        "ADMIN",
    ]


def test_a_perplexity_beyond_what_a_float_holds_is_infinite_and_survives() -> None:
    huge = run(
        spec("post-ln", 2, steps=50),
        {"loss": table([0, 1], {"train": [1.0, 900.0], "probe": [1.0, 900.0], "train@nll": [1.0, 900.0]})},
        "diverged",
    )
    frame = perplexity.select([huge, plausible(spec("admin", 2, steps=50))])
    assert frame["perplexity"].iloc[1] == math.inf
    perplexity.PICTURE.drawn(frame)
