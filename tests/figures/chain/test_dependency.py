"""What each residual sum consists of: shares of variance by hand, and the frame that is drawn of them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stabkit.figures.chain import dependency
from stabkit.results import share
from stabkit.results.run import Run
from tests.conftest import examples
from tests.figures.fake_runs import plausible, run, spec, table

SQUARES = st.floats(1e-6, 1e6)


def made_of(branch: Sequence[float], shortcut: Sequence[float], method: str = "post-ln", **changes: object) -> Run:
    """A decoder alone (two sub-layers a layer) with these mean squares at step 0, and others later."""
    sites = [f"decoder.{i // 2 + 1}.{('self', 'ffn')[i % 2]}" for i in range(len(branch))]
    columns = {name: [1.0, 9.0] for name in sites}
    columns |= {f"{name}@branch": [value, 9.0] for name, value in zip(sites, branch, strict=True)}
    columns |= {f"{name}@shortcut": [value, 9.0] for name, value in zip(sites, shortcut, strict=True)}
    return run(spec(method, 0, -(-len(branch) // 2), **changes), {"branch_ratio": table([0, 16], columns)})  # type: ignore[arg-type]


def test_two_sub_layers_by_hand() -> None:
    """First sum: branch 1, shortcut 3. Second: branch 2, shortcut 8, so that it keeps 0.8 of each share before it."""
    found = dependency.shares(np.array([1.0, 2.0]), np.array([3.0, 8.0]))
    assert found.tolist() == [[0.75, 0.25, 0.0], pytest.approx([0.6, 0.2, 0.2])]


def test_branches_as_large_as_their_shortcut_halve_what_was_there() -> None:
    found = dependency.shares(np.ones(5), np.ones(5))
    for i in range(5):
        own = [0.5 ** (i + 1), *(0.5 ** (i + 1 - j) for j in range(i + 1)), *[0.0] * (4 - i)]
        assert found[i].tolist() == own


def test_equal_branches_on_a_stream_that_grows_have_equal_shares() -> None:
    """Without norms the shortcut of sum i is the input and i − 1 branches before it."""
    found = dependency.shares(np.ones(6), np.arange(1.0, 7.0))
    for i in range(6):
        np.testing.assert_allclose(found[i, : i + 2], 1 / (i + 2))
        assert (found[i, i + 2 :] == 0).all()


def test_branches_of_zero_leave_everything_to_the_input() -> None:
    found = dependency.shares(np.zeros(4), np.ones(4))
    assert found[:, 0].tolist() == [1.0] * 4 and not found[:, 1:].any()


@given(st.lists(st.tuples(SQUARES, SQUARES), min_size=1, max_size=30))
@examples(60)
def test_every_sum_is_whole_and_made_of_nothing_that_comes_after_it(squares: list[tuple[float, float]]) -> None:
    branch, shortcut = np.array(squares).T
    found = dependency.shares(branch, shortcut)
    np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=1e-9)
    assert (found >= 0).all() and not np.triu(found, 2).any()


@given(st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=20))
@examples(40)
def test_the_last_sum_is_what_the_shares_of_branch_ratio_say(ratios: list[float]) -> None:
    squares = np.array(ratios) ** 2
    last = dependency.shares(squares, np.ones(len(ratios)))[-1]
    np.testing.assert_allclose(last[1:], share.shares(np.array(ratios)), rtol=1e-9, atol=1e-300)


def grid(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.pivot(index="sum", columns="branch", values="share")


def test_the_frame_holds_a_row_a_pair_of_sum_and_branch() -> None:
    made = made_of([1.0, 2.0], [3.0, 8.0])
    facts = [made.run_id, "post-ln", "Post-LN", "", "1L decoder", 0, 1, 0, "early"]
    rows = [
        [*facts, i, j, value]
        for i, own in ((1, (0.75, 0.25, 0.0)), (2, (0.6, 0.2, 0.2)))
        for j, value in enumerate(own)
    ]
    pd.testing.assert_frame_equal(dependency.select([made]), pd.DataFrame(rows, columns=list(dependency.COLUMNS)))


def test_of_an_encoder_decoder_it_is_the_decoder_and_of_an_encoder_alone_the_encoder() -> None:
    both = {"encoder.1.ffn": [9.0], "encoder.1.ffn@branch": [9.0], "encoder.1.ffn@shortcut": [1.0]}
    both |= {"decoder.1.ffn": [1.0], "decoder.1.ffn@branch": [1.0], "decoder.1.ffn@shortcut": [3.0]}
    made = run(spec("post-ln", 1), {"branch_ratio": table([0], both)})
    assert dependency.dependencies(made).tolist() == [[0.75, 0.25]]
    alone = {name: values for name, values in both.items() if name.startswith("encoder")}
    made = run(spec("post-ln", 1, 0), {"branch_ratio": table([0], alone)})
    assert dependency.dependencies(made).tolist() == [[pytest.approx(0.1), pytest.approx(0.9)]]


@pytest.mark.parametrize("sublayers", [2, 23, 24, 25, 54, 300])
def test_a_long_stack_is_thinned_and_no_share_is_lost(sublayers: int) -> None:
    random = np.random.default_rng(sublayers)
    made = made_of(random.lognormal(size=sublayers).tolist(), random.lognormal(size=sublayers).tolist())
    whole, drawn = dependency.dependencies(made), grid(dependency.select([made]))
    kept = drawn.index.to_numpy()
    assert len(kept) == min(sublayers, dependency.LIMIT) and kept[0] == 1 and kept[-1] == sublayers
    assert drawn.columns.tolist() == [0, *kept]
    np.testing.assert_allclose(drawn.sum(axis=1), 1.0)
    np.testing.assert_allclose(drawn[0], whole[kept - 1, 0])
    before = 0
    for branch in kept:  # each column holds the branches since the column before it
        np.testing.assert_allclose(drawn[branch], whole[kept - 1, before + 1 : branch + 1].sum(axis=1), atol=1e-15)
        before = branch


def test_of_each_method_the_deepest_model_and_the_first_seed_are_drawn() -> None:
    shallow = made_of([1.0] * 2, [1.0] * 2)
    deep = [made_of([value] * 4, [1.0] * 4, seed=seed) for seed, value in ((1, 3.0), (0, 1.0))]
    other = made_of([0.0] * 4, [1.0] * 4, "rezero")
    frame = dependency.select([shallow, *deep, other])
    assert frame[["label", "depth", "seed"]].drop_duplicates().to_numpy().tolist() == [
        ["Post-LN", "2L decoder", 0],
        ["ReZero", "2L decoder", 0],
    ]
    assert frame[frame["label"] == "ReZero"].query("branch == 0")["share"].tolist() == [1.0] * 4


def test_runs_from_before_mean_squares_were_recorded_have_no_matrix() -> None:
    old = run(spec("post-ln", 0, 1), {"branch_ratio": table([0], {"decoder.1.self": [0.5], "decoder.1.ffn": [0.5]})})
    empty = run(spec("post-ln", 1), {"branch_ratio": table([], {"decoder.1.self": []})})
    for runs in ([], [old], [empty], [run(spec("post-ln", 1), {})]):
        frame = dependency.select(runs)
        assert frame.empty and tuple(frame.columns) == dependency.COLUMNS
        assert dependency.title(runs) == "What each residual sum consists of"


def test_where_layers_read_a_history_nothing_is_said() -> None:
    """DLCL's shortcut is no single stream, whether its norm stands before or after."""
    for options in ({}, {"norm": "post"}):
        dlcl = made_of([1.0] * 4, [1.0] * 4, "dlcl", options=options)
        assert dependency.select([dlcl]).empty and math.isnan(share.effective(dlcl))
        assert set(dependency.select([dlcl, made_of([1.0] * 4, [1.0] * 4)])["method"]) == {"post-ln"}


def test_the_title_is_of_the_last_branch_where_it_weighs_most_and_least() -> None:
    runs = [made_of([1.0] * 4, [1.0] * 4), made_of([1.0] * 4, [3.0] * 4, "deepnorm")]
    assert dependency.title(runs) == (
        "At 2L decoder the last branch makes 50 % of the output under Post-LN, 25 % under DeepNorm"
    )
    assert dependency.PICTURE.described(dependency.select(runs)) == (
        "Heat maps of shares. Share of its own branch in the last sum: Post-LN, 2L decoder 0.50; "
        "DeepNorm, 2L decoder 0.25."
    )


def test_the_picture_has_a_panel_a_method_blank_above_the_diagonal() -> None:
    runs = [made_of([1.0] * 4, [1.0] * 4), made_of([0.0] * 4, [1.0] * 4, "rezero")]
    drawn = dependency.PICTURE.drawn(dependency.select(runs))
    images = [np.ma.filled(axes.images[0].get_array(), np.nan) for axes in drawn.axes if axes.images]
    assert len(images) == 2
    for image, lowest in zip(images, (np.log10(0.5**4), -3.0), strict=True):
        assert np.isnan(image[np.triu_indices(4, 2, 5)]).all() and np.nanmin(image) == pytest.approx(lowest)
    dependency.PICTURE.drawn(dependency.select([plausible(spec("post-ln", 18), until=0)]))
