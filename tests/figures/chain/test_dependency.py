"""What the output consists of: shares of variance by hand, and the frame that is drawn of them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stabkit.figures.chain.layer_curves import DEPENDENCY
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


@pytest.mark.parametrize(
    ("branch", "shortcut", "shares"),
    [
        ([1.0, 2.0], [3.0, 8.0], [0.6, 0.2, 0.2]),  # the second keeps 0.8 of each share before it
        ([1.0] * 3, [1.0] * 3, [0.125, 0.125, 0.25, 0.5]),  # as large as its shortcut: halves what was there
        ([1.0] * 5, [1.0, 2.0, 3.0, 4.0, 5.0], [1 / 6] * 6),  # on a stream that grows: equal shares
        ([0.0] * 4, [1.0] * 4, [1.0, 0.0, 0.0, 0.0, 0.0]),
    ],
)
def test_the_shares_by_hand(branch: list[float], shortcut: list[float], shares: list[float]) -> None:
    assert share.dependencies(made_of(branch, shortcut)).tolist() == pytest.approx(shares)


@given(st.lists(st.tuples(SQUARES, SQUARES), min_size=1, max_size=30))
@examples(60)
def test_the_output_is_whole(squares: list[tuple[float, float]]) -> None:
    branch, shortcut = zip(*squares, strict=True)
    found = share.dependencies(made_of(branch, shortcut))
    assert found.sum() == pytest.approx(1.0) and (found >= 0).all()
    left = 1.0
    for place in reversed(range(len(branch))):  # from the output down
        part = branch[place] / (branch[place] + shortcut[place])
        assert found[place + 1] == pytest.approx(left * part)
        left *= 1 - part


def test_of_an_encoder_decoder_it_is_the_decoder_and_of_an_encoder_alone_the_encoder() -> None:
    both = {"encoder.1.ffn": [9.0], "encoder.1.ffn@branch": [9.0], "encoder.1.ffn@shortcut": [1.0]}
    both |= {"decoder.1.ffn": [1.0], "decoder.1.ffn@branch": [1.0], "decoder.1.ffn@shortcut": [3.0]}
    alone = {name: values for name, values in both.items() if name.startswith("encoder")}
    for made, shares in (
        (run(spec("post-ln", 1), {"branch_ratio": table([0], both)}), [0.75, 0.25]),
        (run(spec("post-ln", 1, 0), {"branch_ratio": table([0], alone)}), [0.1, 0.9]),
    ):
        assert share.dependencies(made).tolist() == pytest.approx(shares)


def test_of_each_method_the_deepest_model_and_the_first_seed_are_drawn() -> None:
    shallow = made_of([1.0] * 2, [1.0] * 2)
    deep = [made_of([value] * 4, [1.0] * 4, seed=seed) for seed, value in ((1, 3.0), (0, 1.0))]
    frame = DEPENDENCY.select([shallow, *deep, made_of([0.0] * 4, [1.0] * 4, "rezero")])
    assert tuple(frame.columns) == DEPENDENCY.columns
    assert frame[["label", "depth", "seed", "sublayer", "share"]].to_numpy().tolist() == [
        *(["Post-LN", "2L decoder", 0, i, pytest.approx(0.5 ** min(4, 5 - i))] for i in range(5)),
        *(["ReZero", "2L decoder", 0, i, float(not i)] for i in range(5)),
    ]
    (axes,) = DEPENDENCY.drawn(frame).axes
    assert min(float(np.min(line.get_ydata())) for line in axes.lines) == 1e-6, "what is smaller is drawn there"


def test_runs_from_before_mean_squares_were_recorded_have_no_shares() -> None:
    old = run(spec("post-ln", 0, 1), {"branch_ratio": table([0], {"decoder.1.self": [0.5], "decoder.1.ffn": [0.5]})})
    empty = run(spec("post-ln", 1), {"branch_ratio": table([], {"decoder.1.self": []})})
    for runs in ([], [old], [empty], [run(spec("post-ln", 1), {})]):
        assert DEPENDENCY.select(runs).empty and DEPENDENCY.title(runs) == "What the output consists of"


def test_where_layers_read_a_history_nothing_is_said() -> None:
    """DLCL's shortcut is no single stream, whether its norm stands before or after."""
    for options in ({}, {"norm": "post"}):
        dlcl = made_of([1.0] * 4, [1.0] * 4, "dlcl", options=options)
        assert DEPENDENCY.select([dlcl]).empty and math.isnan(share.effective(dlcl))
        assert set(DEPENDENCY.select([dlcl, made_of([1.0] * 4, [1.0] * 4)])["method"]) == {"post-ln"}


def test_the_title_is_of_the_last_branch_where_it_weighs_most_and_least() -> None:
    runs = [made_of([1.0] * 4, [1.0] * 4), made_of([1.0] * 4, [3.0] * 4, "deepnorm")]
    assert DEPENDENCY.title(runs) == (
        "At 2L decoder the last branch makes 50 % of the output under Post-LN, 25 % under DeepNorm"
    )
    assert DEPENDENCY.described(DEPENDENCY.select(runs)).endswith(
        "Of the last: Post-LN, 2L decoder 0.50; DeepNorm, 2L decoder 0.25."
    )
    DEPENDENCY.drawn(DEPENDENCY.select([plausible(spec("post-ln", 18), until=0)]))
