"""Which items fit a budget: the cheapest first, shared runs counted once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from stabkit.cli.commands import paper
from stabkit.errors import UsageError
from stabkit.options import ranges
from stabkit.options.commands import PaperOptions
from stabkit.paper import plan
from stabkit.paper.items import BY_KEY, ITEMS
from stabkit.paper.plan import Asked
from stabkit.running import cost, surfaces


def asked(out: Path, *keys: str) -> list[Asked]:
    params = {**PaperOptions.defaults(), "out": str(out), "workers": 2, "quiet": True}
    return [paper.ask(BY_KEY[key], params)[0] for key in keys or BY_KEY]


@pytest.fixture(scope="module")
def everything(tmp_path_factory) -> list[Asked]:
    return asked(tmp_path_factory.mktemp("out"))


@pytest.mark.parametrize("budget", [150.0, 600.0, 2700.0, 1e9])
def test_the_plan_keeps_its_budget_and_leaves_out_nothing_that_would_fit(everything, budget: float) -> None:
    steps = plan.plan(everything, set(), budget)
    taken = [step for step in steps if step.fits]
    spent = sum(step.seconds for step in taken)
    assert len(steps) == len(ITEMS) and taken and spent <= budget
    assert all(spent + step.seconds > budget for step in steps if not step.fits)


def test_the_first_is_the_cheapest_of_all_and_each_next_the_cheapest_of_those_left(everything) -> None:
    steps, have = plan.plan(everything, set(), None), set[plan.Piece]()
    left = list(everything)
    for step in steps:
        assert step.seconds == min(plan.seconds(one, have, 1.0) for one in left)
        left.remove(step.asked)
        have |= set(step.asked.work)


def test_runs_that_items_share_are_counted_once(everything) -> None:
    steps = plan.plan(everything, set(), None)
    specs = [spec.run_id for one in everything for request in one.requests for spec in request.specs]
    assert sum(step.missing for step in steps) == len(set(specs)) < len(specs)


def test_what_the_store_holds_costs_nothing(everything) -> None:
    done = {key for one in everything for key in one.work}
    steps = plan.plan(everything, done, 1.0)
    assert all(step.seconds == 0 and step.missing == 0 and step.fits for step in steps)


def test_a_budget_that_fits_nothing_names_the_cheapest_item_and_one_that_would_do(everything) -> None:
    with pytest.raises(UsageError, match="nothing fits; the cheapest item, .* needs about") as told:
        plan.plan(everything, set(), 1.0)
    enough = ranges.duration("--budget", str(told.value).split("--budget ")[1].split(" ")[0])
    assert any(step.fits for step in plan.plan(everything, set(), enough))


def test_a_slower_machine_gets_fewer_items(everything) -> None:
    slow = [replace(one, work={piece: 4 * need for piece, need in one.work.items()}) for one in everything]
    few, many = (sum(step.fits for step in plan.plan(items, set(), 1800.0)) for items in (slow, everything))
    assert few < many


def test_the_cost_of_an_item_is_that_of_its_runs_over_the_workers(tmp_path: Path) -> None:
    (item,) = asked(tmp_path, "fig2")
    runs = [spec for request in item.requests for spec in request.specs]
    assert len(runs) == 2 * 4 * 3
    assert plan.seconds(item, set()) == pytest.approx(sum(map(cost.seconds, runs)) / 2)


def test_points_of_a_landscape_are_those_that_are_drawn(tmp_path: Path) -> None:
    fig1, fig5 = asked(tmp_path, "fig1", "fig5")
    assert surfaces.points(fig1.requests[0].surfaces, 2) == 2 * (15**2 + 3 * 51)
    assert surfaces.points(fig5.requests[0].surfaces, 2) == 2 * (11**2 + 2 * 31) + 11**2


@pytest.mark.parametrize(("text", "seconds"), [("90s", 90), ("45m", 2700), ("45min", 2700), ("1.5h", 5400), ("", None)])
def test_a_budget_is_a_time(text: str, seconds: float | None) -> None:
    assert ranges.duration("--budget", text) == seconds


@pytest.mark.parametrize("text", ["45", "m", "-3m", "0m", "two hours", "1h30m", "1e3s"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--budget takes a time"):
        ranges.duration("--budget", text)
