"""`stabkit ablate`: a sweep with two more axes."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stabkit import methods
from stabkit.errors import UsageError
from stabkit.methods.base import sites
from stabkit.options import ranges
from tests.commands import TINY, stabkit, strict

pytestmark = pytest.mark.usefixtures("undrawn")


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("0.25..4", (0.25, 0.5, 1.0, 2.0, 4.0)),
        ("0.5,1,1.5", (0.5, 1.0, 1.5)),
        ("1..1", (1.0,)),
        ("2", (2.0,)),
        ("0.25..4:3", (0.25, 1.0, 4.0)),
        ("0.25..4:9", (0.25, 0.353553, 0.5, 0.707107, 1.0, 1.41421, 2.0, 2.82843, 4.0)),
        ("0.5..1,4", (0.5, 1.0, 4.0)),
    ],
)
def test_scales(text: str, values: tuple[float, ...]) -> None:
    assert ranges.scales("--alpha-scale", text) == values


@pytest.mark.parametrize(
    "text",
    ["4..0.25", "nan..1", "0..4", "-1..1", "0.25..inf", "1e-400..1", "0.25..4..2", "..4", "0.25...4", "0.3..4", "1:3"]
    + ["0.25..4:1", "1..1:2", "0.25..4:0", "", "x", "0", "0.25..4:x"],
)
def test_scales_that_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--alpha-scale"):
        ranges.scales("--alpha-scale", text)


@given(st.integers(-8, 8), st.integers(0, 10))
def test_doublings_are_exact_and_symmetric_in_log(start: int, count: int) -> None:
    low, high = 2.0**start, 2.0 ** (start + count)
    values = ranges.scales("--alpha-scale", f"{low:.17g}..{high:.17g}")
    exact = [2.0 ** (start + i) for i in range(count + 1)]
    assert values == (exact[0], *(float(f"{value:.6g}") for value in exact[1:-1]), *exact[1:][-1:])


def planned(*options: str) -> list[dict[str, object]]:
    done = stabkit("ablate", *options, "--dry-run", "--json")
    assert done.returncode == 0, done.stderr
    return [run["spec"] for run in strict(done.stdout)["runs"]]


def test_without_options_alpha_and_beta_are_scaled_in_turn() -> None:
    found = [(spec["alpha_scale"], spec["beta_scale"]) for spec in planned()]
    five = (0.25, 0.5, 1.0, 2.0, 4.0)
    assert found == [*((a, 1.0) for a in five), *((1.0, b) for b in five if b != 1.0)]
    one = planned()[0]
    assert one["train"]["lr"] == 2e-3 and one["train"]["warmup"] == 0 and one["train"]["steps"] == 250  # type: ignore[index]


def test_one_axis_the_whole_grid_and_table_11() -> None:
    assert len(planned("--alpha-scale", "0.25..4")) == 5 and len(planned("--beta-scale", "0.5,2")) == 2
    assert len(planned("--grid")) == 25 and len(planned("--grid", "--seeds", "0..1", "--depths", "6,18")) == 100
    rows = [
        (str(spec["options"]), spec["train"]["warmup"])  # type: ignore[index]
        for spec in planned("--drop", "deepnorm,init")[9:]
    ]
    no_alpha, no_beta = "{'alpha': 'one'}", "{'beta': 'one'}"
    assert set(rows) == {("{}", 150), (no_alpha, 0), (no_alpha, 150), (no_beta, 0), (no_beta, 150)}


def test_table_11_takes_alpha_or_the_initialisation_away() -> None:
    whole, no_alpha, no_beta = (
        methods.build("deepnorm", options) for options in ({}, {"alpha": "one"}, {"beta": "one"})
    )
    for site in sites(18, 18, 64):
        assert no_alpha.omega(site).init == 1.0 and no_alpha.gain(site, "value") == whole.gain(site, "value") != 1.0
        assert no_beta.gain(site, "up") == 1.0 and no_beta.omega(site) == whole.omega(site)


@pytest.mark.slow
def test_the_ablation_shares_its_runs_with_the_sweep_and_with_itself(tmp_path: Path) -> None:
    where = ["--out", tmp_path, "--quiet", "--json"]
    training = [*TINY, "--lr", "2e-3", "--warmup", "0"]
    swept = stabkit("sweep", *training, "--models", "deepnorm", *where)
    assert swept.returncode == 0, swept.stderr
    first = stabkit("ablate", *training, "--alpha-scale", "0.5..2", "--out", tmp_path)
    assert "reused 1, new 2" in first.stderr
    grid = stabkit(
        "ablate", *training, "--alpha-scale", "0.5..2", "--beta-scale", "0.5..2", "--grid", "--out", tmp_path
    )
    assert "reused 3, new 6" in grid.stderr and "α × 0.5" in grid.stdout
    again = stabkit("ablate", *training, "--alpha-scale", "0.5..2", *where)
    scales = [run["alpha_scale"] for run in strict(again.stdout)["runs"]]
    assert scales == [0.5, 1.0, 2.0]
    assert strict(swept.stdout)["runs"][0]["run_id"] in [run["run_id"] for run in strict(again.stdout)["runs"]]


def test_a_method_without_alpha_and_beta_names_those_that_have_them(tmp_path: Path) -> None:
    for options, said in (
        (["--model", "admin"], "--model admin has no α and β to scale; deepnorm has"),
        (["--alpha-scale", "0.3..4"], "use 0.3..4:5 or a list"),
        (["--drop", "deepnrom"], "did you mean 'deepnorm'"),
        (["--drop", "deepnorm,"], "--drop: ''"),
        (["--model", "deepnorm:alpha=one", "--drop", "deepnorm"], "does not have it"),
        (["--alpha-scale=-1"], "is not above 0"),
        (["--alpha-scale=0.25-4"], "a span like 0.25..4"),
    ):
        done = stabkit("ablate", *options, "--out", tmp_path / "none")
        assert done.returncode == 2 and said in done.stderr and not (tmp_path / "none").exists()
