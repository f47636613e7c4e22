"""A number against depth, and the verdict on each link: by made-up cells whose law is known."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stabkit.results.depth_fit import depth_fit, geometric
from stabkit.results.line import too_few
from stabkit.results.own import verdict as found
from stabkit.results.own.cell import Broke, Facts, ModelCell, Sublayer, facts
from stabkit.results.own.cure import cure
from stabkit.results.own.decided import decision
from stabkit.results.own.forecast import ours
from stabkit.results.own.rules import worst
from stabkit.results.own.verdict import Limits, verdict
from stabkit.results.records import Table
from stabkit.wording.chain import why

DEPTHS = (6, 12, 24, 48)


def made(
    depth,
    seed=0,
    *,
    growth=1.0,
    update=0.1,
    ratio=1.0,
    broke=None,
    steps=5,
    layers=2,
    shared=False,
    loss=3.0,
    stack="stack",
):
    """A cell of one stack whose chain is given: stream, relative update, lowest gradient ratio at step 3."""
    own = tuple(
        Sublayer(stack=stack, layer=i, kind="self", parameters=0 if shared and i > 1 else 4)
        for i in range(1, layers + 1)
    )
    t = np.arange(steps + 1)
    names = [one.name for one in own]
    gradients = np.ones((steps + 1, layers))
    gradients[3, 0] = ratio
    one = np.ones((steps + 1, layers))
    records = {
        "stream": Table(t, (stack, *names), np.concatenate([one, np.full((steps + 1, 1), growth)], 1)),
        "loss": Table(t, ("train",), np.linspace(4.0, loss, steps + 1)[:, None]),
        "update": Table(t, ("state@relative",), np.where(t == 0, 0.0, update)[:, None]),
        "gradient": Table(t, (*names, "outside"), np.concatenate([gradients, np.ones((steps + 1, 1))], 1)),
    }
    known = Facts(
        factory="a:b", depth=depth, lr=0.0, seed=seed, steps=steps, sublayers=own, how="", notes=(), model="M",
        parameters=1, width=8, tokens=8, batch="", start=1.0, broke=broke, optimizer="AdamW",
        optimizers=("AdamW",), rate=1e-3,
    )  # fmt: skip
    return ModelCell(known, records)


def over(law, seeds=(0, 1, 2), depths=DEPTHS, **chain):
    """Cells whose named link follows a law of (depth, seed)."""
    (name,) = chain
    return [made(depth, seed, **{name: law(depth, seed)}) for depth in depths for seed in seeds]


@given(p=st.floats(-2, 2), c=st.floats(1e-6, 1e6), scatter=st.lists(st.floats(0.5, 2), min_size=3, max_size=3))
def test_a_power_of_the_depth_is_found_whatever_its_size_and_the_seeds_levels(p, c, scatter):
    found = depth_fit({s: {n: c * scatter[s] * n**p for n in DEPTHS} for s in range(3)})
    assert found.exponent == pytest.approx(p, abs=1e-6) and found.high - found.low < 1e-6


def test_an_exponential_is_told_from_a_power():
    found = depth_fit({0: {n: 1.1**n for n in DEPTHS}})
    assert found.exponential and found.factor == pytest.approx(1.1)
    assert not depth_fit({0: {n: n**0.5 for n in DEPTHS}}).exponential


def test_the_interval_is_students_over_the_seeds():
    found = depth_fit({s: {n: n**p for n in DEPTHS} for s, p in enumerate((0.4, 0.5, 0.6))})
    assert found.exponent == pytest.approx(0.5)
    assert found.high - found.exponent == pytest.approx(4.303 * 0.1 / math.sqrt(3), rel=1e-3)


@pytest.mark.parametrize("depths", [(6,), (6, 12), (6, 7, 8)])
def test_few_or_near_depths_are_not_fitted(depths):
    assert depth_fit({0: dict.fromkeys(depths, 1.0)}) is None and "a fit needs" in too_few(depths)


def test_a_seed_that_lacks_a_depth_or_is_not_positive_is_left_out():
    assert depth_fit(
        {0: {n: float(n) for n in DEPTHS}, 1: {6: 1.0}, 2: dict.fromkeys(DEPTHS, 0.0)}
    ).exponent == pytest.approx(1)
    assert math.isnan(geometric([1.0, math.nan])) and geometric([0.0, 4.0]) == 0.0 and geometric([1.0, 4.0]) == 2.0


@pytest.mark.parametrize(
    ("p", "word"),
    [(0.5, "pass"), (0.8, "pass"), (1.0, "pass"), (1.2, "fail"), (0.0, "pass"), (-1.2, "fail")],
)
def test_the_stream_fails_where_it_grows_faster_than_branches_add_up(p, word):
    assert verdict(over(lambda n, s: n**p, growth=None)).stream.verdict == word


def test_a_stream_that_grows_exponentially_fails_by_its_factor():
    found = verdict(over(lambda n, s: 1.06**n, growth=None)).stream
    assert found.verdict == "fail" and "+6 % per layer" in why(found)
    assert verdict(over(lambda n, s: 1.001**n, growth=None)).stream.verdict == "pass"
    shrinks = verdict(over(lambda n, s: 0.8**n, growth=None)).stream
    assert shrinks.verdict == "fail" and "−" not in why(shrinks).partition("exponentially")[0]


@pytest.mark.parametrize("b", [0.1, 0.24, 1.0])
@pytest.mark.parametrize("depths", [(2, 4, 8), (4, 8, 16, 32)])
def test_a_stream_that_begins_level_and_grows_as_a_root_does_not_fail(b, depths):
    cells = over(lambda n, s: (1 + b * n) ** 0.5 * (1 + 0.01 * s), depths=depths, growth=None)
    assert verdict(cells).stream.verdict in ("pass", "cannot tell")


def test_an_interval_that_contains_the_limit_cannot_tell():
    found = verdict(over(lambda n, s: n ** (1.05, 1.1, 1.15)[s], growth=None)).stream
    assert found.verdict == "cannot tell" and "add seeds or depths" in why(found)


@pytest.mark.parametrize(
    ("law", "said"),
    [
        (lambda n, s: 0.1, "10 % of its size"),
        (lambda n, s: 0.05 * n**0.5, "as N^0.50"),
        (lambda n, s: 1.2, "120 % of its size"),
        (lambda n, s: 0.1 * (n / 6) ** 1.2, "121 % of its size, 10 % of its size at 6 layers"),
        (lambda n, s: 40.0, "40 times its size"),
    ],
)
def test_the_update_is_told_and_fails_no_model(law, said):
    found = verdict(over(law, update=None)).update
    assert found.verdict == "pass" and said in why(found)
    assert found.saturated == (found.level > 0.9) and (found.fit is None) == found.saturated


@pytest.mark.parametrize(
    ("law", "word", "limit"),
    [
        (lambda n, s: 1.0, "pass", 1e-4),
        (lambda n, s: 0.005, "pass", 1e-4),
        (lambda n, s: 5e-5, "fail", 1e-4),
        (lambda n, s: (6 / n) ** 1.5, "pass", 1e-4),
        (lambda n, s: 300.0, "pass", 1e4),
        (lambda n, s: 3e4, "fail", 1e4),
        (lambda n, s: math.nan, "pass", 1e-4),
    ],
)
def test_the_gradient_fails_by_its_level(law, word, limit):
    found = verdict(over(law, ratio=None)).gradient
    assert (found.verdict, found.limit) == (word, limit)
    assert found.step == 3 or word == "pass"


def behind_a_norm(cell, **branches):
    """The cell with a norm at the end, and the sizes of its branches."""
    table = Table(np.array([0]), tuple(branches), np.array([list(branches.values())])) if branches else None
    records = {**cell.records, **({"branch": table} if table else {})}
    return replace(cell, facts=replace(cell.facts, normed=("stack",)), records=records)


def test_a_gradient_that_grows_as_the_stream_shrinks_it_behind_a_norm_passes():
    grown = [made(n, s, growth=1e6, ratio=3e6) for n in DEPTHS for s in range(3)]
    assert verdict(grown).gradient.verdict == "fail"
    assert verdict([behind_a_norm(cell) for cell in grown]).gradient.verdict == "pass"
    assert verdict([behind_a_norm(made(n, growth=1e6, ratio=3e10)) for n in DEPTHS]).gradient.verdict == "fail"
    assert verdict([behind_a_norm(made(n, growth=1e6, ratio=3e-6)) for n in DEPTHS]).gradient.verdict == "fail"


def test_of_several_stacks_what_fails_for_certain_stands_for_the_link():
    sure = verdict([made(6, ratio=1e-5)]).gradient
    unsure = replace(sure, certain=False, level=1e-9)
    assert worst([sure, unsure]) is sure and worst([unsure, sure]) is sure


def test_a_change_beside_which_a_link_still_fails_is_no_cure():
    body = made(6, ratio=1e-9)
    assert cure(replace(body, facts=replace(body.facts, change="rate/3"))).word == "fails"


def test_upper_branches_that_weigh_nothing_fail_and_leave_the_word_undecided_at_best():
    idle = verdict([behind_a_norm(made(n, growth=1e6), **{"stack.1.self": 1.0, "stack.2.self": 1e-4}) for n in DEPTHS])
    assert idle.failing == ["stream"] and not idle.stream.certain and "too little to count" in why(idle.stream)
    words = [decision(idle.links, p, None, [], ours().looks).word for p in (None, 0.97, 0.8, 0.2, 0.03)]
    assert words == ["undecided"] * 3 + ["probably fails", "fails"]
    lost = {**idle.links, "finite": replace(idle.finite, verdict="fail")}
    assert decision(lost, 0.97, None, [], ours().looks).word == "fails"


def test_a_depth_of_one_layer_has_no_ratio_and_hides_none():
    cells = [made(1, s, layers=1) for s in range(3)] + [made(n, s, ratio=1e-9) for n in (2, 4, 8) for s in range(3)]
    found = verdict(cells).gradient
    assert found.verdict == "fail" and [own.depth for own in found.evidence] == [2, 4, 8]
    deepest = verdict([*cells, *(made(16, s, layers=1) for s in range(3))]).gradient
    assert deepest.verdict == "cannot tell" and "no two layers at 16 layers" in why(deepest)


def joined(*cells):
    """One cell of several stacks."""
    tables = dict(cells[0].records)
    for name in ("stream", "gradient"):
        own = [cell.records[name] for cell in cells]
        keep = [(site, i) for i, site in enumerate(site for table in own for site in table.sites) if site != "outside"]
        values = np.concatenate([table.values for table in own], 1)[:, [i for _, i in keep]]
        tables[name] = Table(own[0].steps, tuple(site for site, _ in keep), values)
    sublayers = tuple(one for cell in cells for one in cell.facts.sublayers)
    return ModelCell(replace(cells[0].facts, sublayers=sublayers), tables)


def test_each_of_two_stacks_is_judged_over_all_cells():
    """Neither averages into the other: opposite ratios are no 1, and a level stream that is farther from 1 than a
    growing one where both are short hides no growth."""
    cells = [
        joined(
            made(n, s, ratio=1e-5, growth=0.5, stack="encoder"),
            made(n, s, ratio=(0.9e5, 1e5, 1.1e5)[s], growth=n**1.3, stack="decoder"),
        )
        for n in DEPTHS
        for s in range(3)
    ]
    found = verdict(cells)
    assert found.gradient.verdict == "fail" and found.gradient.level in (
        pytest.approx(1e-5),
        pytest.approx(1e5, rel=0.01),
    )
    assert found.stream.verdict == "fail" and why(found.stream).startswith("the decoder's residual stream")


def test_a_stream_that_is_no_number_has_no_size():
    found = verdict([made(n, growth=math.nan) for n in DEPTHS]).stream
    assert found.verdict == "cannot tell" and "has no size" in why(found)


def test_without_an_update_nothing_is_said_of_it():
    cells = [made(n) for n in DEPTHS]
    for cell in cells:
        whole = cell.records["update"]
        cell.records["update"] = Table(whole.steps[:1], whole.sites, whole.values[:1])
    assert "the output's change is not finite" in why(verdict(cells).update)


def test_layers_that_share_their_weights_cannot_tell():
    found = verdict([made(n, shared=True) for n in DEPTHS]).gradient
    assert found.verdict == "cannot tell" and "shared, frozen or cut off" in why(found)


def test_a_layer_that_no_gradient_ever_reaches_fails_and_one_that_is_skipped_does_not():
    cut, skipped = made(6), made(6)
    cut.records["gradient"].values[:, 0] = np.nan
    skipped.records["gradient"].values[2, 0] = np.nan
    assert verdict([cut]).gradient.verdict == "fail" and "nothing of" in why(verdict([cut]).gradient)
    assert verdict([skipped]).gradient.verdict == "pass"


def test_the_first_number_that_is_not_finite_is_named():
    cells = [made(n, broke=Broke(step=3, where="stream of stack.2.self") if n > 12 else None) for n in DEPTHS]
    found = verdict(cells).finite
    assert found.verdict == "fail" and found.step == 3 and "at 24 layers: step 3, stream of stack.2.self" in why(found)
    assert verdict(cells).word == "fails" and verdict(cells).failing == ["finite"]
    assert [own.decision.word for own in verdict(cells).depths] == ["undecided"] * 2 + ["fails"] * 2
    assert verdict(cells).decision.diverges and verdict(cells).decision.updates == 3


def test_one_depth_has_levels_and_no_exponents():
    found = verdict([made(None, seed, ratio=0.5) for seed in (0, 1)])
    assert found.gradient.verdict == "pass" and found.gradient.fit is None
    assert found.stream.verdict == "cannot tell" and "takes no depth" in why(found.stream)
    assert found.word == "undecided" and found.forecast.axes == ("updates", "one batch", "no scores")


def test_the_limits_are_options():
    cells = over(lambda n, s: n**0.5, growth=None)
    assert verdict(cells, Limits(stream=0.4)).stream.verdict == "fail"


def test_facts_survive_json():
    known = made(6, broke=Broke(step=3, where="the loss")).facts
    assert facts(known.to_json()) == known


def test_what_has_a_rate_beyond_all_tested_ones_is_held_against_none_of_their_numbers(monkeypatch):
    cells = [made(6, steps=16), made(12, steps=16)]
    usual = verdict(cells)
    monkeypatch.setattr(found, "forecast", lambda cells: replace(usual.forecast, axes=("rate",)))
    fast = verdict(cells)
    assert usual.update.healthy is not None and fast.update.healthy is None
    assert fast.stream == usual.stream and fast.stream.healthy is not None


def test_links_that_explain_say_after_which_update():
    assert verdict([made(4, steps=6), made(8, steps=5)]).loss.step == 5
