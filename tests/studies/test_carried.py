"""The rate foretold at the double depth, held against the best there: on made valleys, and what is committed."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from stabkit.results.valley import Trial, rungs
from stabkit.running.transfer import CaseName, Place, SearchPlan, Trained
from studies.carried import cases, page, rows, study
from studies.carried.cases import CASES
from studies.carried.rows import CarriedRow, Rows

DOCS = Path(__file__).parents[2] / "docs"
RATES = rungs(*map(float, cases.RATES.split("..")))


def made(p: float, noise: float = 0.002) -> Rows:
    """Every case searched through: its best rate goes as depth^p."""
    known: Rows = {}
    for case in CASES:
        for depth in (*case.depths, case.held_out):
            best = 8e-3 * (depth / case.depths[0]) ** p
            for i, rate in enumerate(RATES):
                for seed in cases.SEEDS:
                    away = math.log2(rate / best)
                    loss = 5 + 0.05 * away**2 + noise * math.sin(13 * seed + 5 * i + depth)
                    known[CarriedRow(case.key, depth, rate, seed)] = Trial(loss, away < 4)
    return known


def test_there_are_a_dozen_cases_of_methods_and_factories_under_several_optimisers() -> None:
    keys = [case.key for case in CASES]
    assert len(keys) == len(set(keys)) >= 12 and sum("factory" in case.options for case in CASES) >= 3
    assert {case.options.get("optimizer") for case in CASES} >= {"adamw", "muon"}
    assert all(case.held_out == 2 * case.depths[-1] == case.whole["depths"][-1] for case in CASES)


@pytest.mark.parametrize("p", [0.0, -0.5])
def test_a_law_that_holds_is_foretold_and_loses_nothing(p: float) -> None:
    found = page.held_out(made(p))
    assert len(found) == len(CASES)
    for one in found:
        assert one.off < 1.15 and one.lost and abs(one.lost.value) < 0.01
        assert one.fit.drift and one.fit.drift.value == pytest.approx(p, abs=0.1)
    text = page.page(made(p))
    assert f"best in {len(CASES)}, and" in " ".join(text.split()) and "pre-ln adamw" in text


def test_a_law_that_ends_is_told_to_be_off() -> None:
    """The best rate falls to the last depth of the fit, and no further."""
    known = made(-0.8)
    for case in CASES[:1]:
        for rate in RATES:
            for seed in cases.SEEDS:
                known[CarriedRow(case.key, case.held_out, rate, seed)] = known[
                    CarriedRow(case.key, case.depths[0], rate, seed)
                ]
    first = page.held_out(known)[0]
    assert first.off > 3 and first.lost and first.lost.value > 0.1


def test_a_case_that_is_not_searched_through_is_left_out() -> None:
    known = {row: trial for row, trial in made(0.0).items() if row.case != CASES[0].key or row.depth < 48}
    assert len(page.held_out(known)) == len(CASES) - 1
    assert f"{len(CASES)} cases are planned" in page.page({})


def test_what_has_a_row_is_not_trained_again(tmp_path: Path) -> None:
    path, case, asked = tmp_path / "rows.csv", CASES[0], list[Any]()
    plan = SearchPlan(
        axis="depth", cases={"pre-ln": CaseName("Pre-LN", "pre-ln")}, sizes=(6,), rungs=RATES, seeds=(0,), steps=3
    )

    def train(places: Any) -> Trained:
        asked.append(places)
        return Trained({place: Trial(math.inf if place.rung else 5.25, not place.rung) for place in places}, ())

    kept = study._kept(path, case, plan, train)
    places = [Place("pre-ln", 6, rung, 0) for rung in (0, 1)]
    assert kept(places) == kept(places) and len(asked) == 1
    assert rows.read(path)[CarriedRow(case.key, 6, RATES[0], 0)] == Trial(5.25, True)
    assert kept([*places, Place("pre-ln", 6, 2, 0)]) and asked[1] == [Place("pre-ln", 6, 2, 0)]
    before = path.read_bytes()
    rows.write(path, rows.read(path))
    assert path.read_bytes() == before


def test_the_committed_page_is_what_the_rows_say() -> None:
    known = rows.read(DOCS / "transfer.csv")
    assert (DOCS / "transfer.md").read_text(encoding="utf-8") == page.page(known)
    assert {row.case for row in known} <= {case.key for case in CASES}
    assert " ".join(page.summary(known).split()) in " ".join((DOCS / "results.md").read_text(encoding="utf-8").split())
