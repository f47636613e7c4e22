"""One number, one place: whatever a page says of one quantity at one place is one function of the runs."""

from __future__ import annotations

import re

import pytest

from stabkit.claims import findings
from stabkit.claims.base import ClaimPlace
from stabkit.figures.chain.step_curves import UPDATE
from stabkit.figures.depth import update_depth
from stabkit.results import update_fit as depth_fit
from stabkit.results.matrix import matrix
from stabkit.results.once import Runs
from stabkit.results.readings import centre
from stabkit.words import short
from tests.figures.fake_runs import sweep

SEEDS = [(0,), (0, 1), (0, 1, 2)]
"""One, an even and an odd number of them."""


def places(runs: Runs, key: str) -> dict[str, ClaimPlace]:
    (found,) = (one for one in findings(runs) if one.claim.key == key)
    return {place.measured.place: place for place in found.places}


@pytest.mark.parametrize("seeds", SEEDS)
def test_the_update_of_a_cell_is_that_of_the_figure_and_of_the_curves_title(seeds: tuple) -> None:
    runs = Runs(sweep((6, 18, 50, 100), seeds))
    frame = depth_fit.updates(runs)
    verdicts = matrix(runs)
    for row in verdicts.rows:
        for depth, cell in zip(verdicts.depths, row.cells, strict=True):
            own = frame[(frame["label"] == row.label) & (frame["depth"] == depth)]
            assert cell.update == pytest.approx(centre(own["update"]))
            assert f"{depth} {short(cell.update)}" in update_depth.PICTURE.described(frame)
    deepest = {row.label: row.cells[-1].update for row in verdicts.rows}
    ends = f"{short(deepest['DeepNorm'])} (DeepNorm) to {short(deepest['Post-LN'])} (Post-LN)"
    assert UPDATE.title(runs) == f"At 100L-100L the output moves by {ends} in 16 updates"


@pytest.mark.parametrize("seeds", SEEDS)
def test_an_exponent_is_one_number_in_title_legend_and_claims(seeds: tuple) -> None:
    runs = Runs(sweep((6, 18, 50), seeds))
    lines = {line.label: line for line in depth_fit.lines(depth_fit.updates(runs))}
    told = places(runs, "constant")["6–50 layers"]
    assert told.value == pytest.approx(lines["DeepNorm"].exponent)
    both = places(runs, "growth")["6–50 layers"].measured.beside
    assert both == " against ".join(f"N^{lines[label].exponent:.2f}" for label in ("Post-LN", "DeepNorm"))
    exponents = [float(one) for one in re.findall(r"N\^([0-9.]+)", update_depth.title(runs))]
    assert sorted(exponents) == sorted(round(lines[label].exponent, 2) for label in ("Post-LN", "DeepNorm"))
