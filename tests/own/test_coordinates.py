"""`stabkit probe --widths`: coordinates over width, their laws, their verdicts."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

import stabkit
from stabkit.errors import UsageError
from stabkit.report.result import CoordinatesResult
from stabkit.results.intervals import Interval
from stabkit.results.own.coordinates import Coordinate, Coordinates, coordinates
from stabkit.wording import widths as wording
from tests.commands import stabkit as command
from tests.commands import strict
from tests.own.probing import cell

pytestmark = pytest.mark.usefixtures("undrawn")
MODULE = "tests.own.carried_models"
WIDTHS = (16, 32, 64)


def probed(name: str, out: Path) -> CoordinatesResult:
    found = stabkit.probe(f"{MODULE}:{name}", 2, widths=WIDTHS, seeds=(0, 1, 2), steps=4, out=out)
    assert isinstance(found, CoordinatesResult)
    return found


@pytest.mark.slow
def test_a_plain_models_updates_grow_with_width_and_those_of_mup_do_not(tmp_path: Path) -> None:
    plain, scaled = (probed(name, tmp_path) for name in ("tiny", "scaled"))
    by = {row.key: row for row in plain.found.rows}
    assert plain.found.verdict == "drifts" and by["update"].law and by["update"].law.low > 0.3
    kept = {row.key: row for row in scaled.found.rows}
    assert all(kept[key].law and abs(kept[key].law.value) < 0.25 for key in ("stream", "update_first", "update"))  # type: ignore[union-attr]
    assert scaled.found.verdict != "drifts" and "drift with width" in plain.verdict
    assert set(plain.runs["width"]) == set(WIDTHS) and plain.page.exists()


@pytest.mark.slow
def test_the_command_has_a_table_a_document_and_an_exit_code(tmp_path: Path) -> None:
    asked = ("probe", f"{MODULE}:tiny", "--depths", "2", "--widths", "16,32,64", "--steps", "2", "--out", str(tmp_path))
    body = strict(command(*asked, "--json").stdout)
    assert body["verdict"] == "drifts" and [one["coordinate"] for one in body["coordinates"]][0] == "stream"
    again = command(*asked, "--strict")
    assert again.returncode == 7 and "coordinates drift" in again.stderr and "drifts" in again.stdout


@pytest.mark.slow
def test_a_width_that_breaks_and_one_that_is_ignored_are_said(tmp_path: Path) -> None:
    found = probed("breaking", tmp_path)
    assert found.found.broken == {64: 2} and "at width 64 a number is not finite" in found.verdict
    with pytest.raises(UsageError, match="wide at every width asked for"):
        probed("narrow", tmp_path)


def made(p: float, spread: float = 0.01) -> Coordinate:
    from stabkit.results.line import slope

    random = np.random.default_rng(0)
    points = {
        seed: [(math.log(w), p * math.log(w) + spread * float(random.normal())) for w in (16, 32, 64, 128)]
        for seed in range(3)
    }
    return Coordinate(key="x", name="x", label="x", sizes={16: 1.0}, law=slope(points))


@pytest.mark.parametrize(("p", "verdict"), [(0.0, "carries"), (0.5, "drifts"), (-0.5, "drifts"), (0.25, "cannot tell")])
def test_the_verdict_is_by_the_whole_interval(p: float, verdict: str) -> None:
    assert made(p).verdict == verdict
    assert json.dumps(made(p).to_json(), allow_nan=False)


def of(*laws: float, broken: dict[int, int] | None = None) -> Coordinates:
    return Coordinates([made(p) for p in laws], broken or {})


def test_of_all_one_that_drifts_decides_and_all_must_carry() -> None:
    assert of(0.0, 0.5, 0.25).verdict == "drifts" and of(0.0).verdict == "carries"
    assert of(0.0, 0.25).verdict == "cannot tell" and of().verdict == "cannot tell"
    assert "carries" not in wording.coordinates(of(0.25)) and "no exponent beyond" in wording.coordinates(of(0.0))


def test_a_width_at_which_a_number_is_lost_is_said_and_carries_nothing() -> None:
    lost = of(0.0, broken={64: 3})
    assert lost.verdict == "cannot tell" and "at width 64 a number is not finite by update 3" in wording.coordinates(
        lost
    )


def test_one_seed_has_no_interval_and_cannot_tell() -> None:
    alone = Coordinate(key="x", name="x", label="x", sizes={}, law=Interval(0.0, math.nan, math.nan))
    assert alone.verdict == "cannot tell" and wording.exponent(alone.law) == "0.00" and wording.exponent(None) == "–"


def test_a_factory_that_ignores_its_width_is_refused() -> None:
    with pytest.raises(UsageError, match="wide at every width asked for"):
        coordinates([cell("pre_ln", 4, steps=2)], 2)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--depths", "2", "--widths", "16"), "--widths needs several widths"),
        (("--depths", "2,4", "--widths", "16,32"), "--widths takes one depth"),
        (("--widths", "16,32"), "--widths takes one depth"),
        (("--depths", "2", "--widths", "16,32", "--lr", "1e-3,1e-2"), "give one --lr"),
        (("--depths", "2", "--predict", "64"), "--predict needs --widths"),
        (("--depths", "2", "--widths", "16,32", "--predict", "64", "--steps", "4"), "--predict needs forecasts"),
    ],
)
def test_bad_input_is_one_line(words: tuple[str, ...], said: str, tmp_path: Path) -> None:
    ended = command("probe", f"{MODULE}:tiny", *words, "--out", str(tmp_path))
    assert ended.returncode == 2 and said in ended.stderr and len(ended.stderr.strip().splitlines()) == 1
