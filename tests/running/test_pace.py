"""What a machine takes of what `cost` says: timed once, by a dry run, and kept in the user's cache."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stabkit.running import cost, pace, surfaces
from stabkit.spec import ModelConfig, RunSpec
from tests.commands import TINY, process, strict

SPEC = RunSpec(method="deepnorm", model=ModelConfig(encoder_layers=6, decoder_layers=6))


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of a user whose machine was never timed."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(pace, "_known", {})
    return tmp_path / "cache" / "stabkit" / "pace.json"


def test_a_machine_that_takes_half_is_told_half(cache: Path) -> None:
    def said() -> list[float]:
        drawn = surfaces.SurfaceRequest(direction_seeds=(), points=1000)
        return [cost.seconds(SPEC), cost.forward(SPEC), surfaces.seconds(SPEC, drawn, 2)]

    assert pace.known() is None
    before = said()
    pace.keep(0.5)
    pace._known.clear()
    assert pace.known() == 0.5 and said() == pytest.approx([each / 2 for each in before], rel=1e-3)


@pytest.mark.parametrize(
    "held", ["", "[0.5]", '{"%s": true}', '{"%s": "0.5"}', '{"%s": 1e9}', '{"%s": NaN}', '{"another machine": 0.5}']
)
def test_what_is_no_time_of_this_machine_is_not_believed(cache: Path, held: str) -> None:
    pace.keep(0.5)
    (machine,) = json.loads(cache.read_text())
    cache.write_text(held.replace("%s", machine))
    pace._known.clear()
    assert pace.known() is None


def test_where_the_cache_cannot_be_written_a_command_knows_it_all_the_same(cache: Path) -> None:
    cache.parent.parent.write_text("a file where a folder should be")
    pace.keep(0.5)
    assert pace.known() == 0.5


@pytest.mark.slow
def test_a_dry_run_times_a_machine_once_and_leaves_nothing_else(cache: Path, tmp_path: Path) -> None:
    asked = ("sweep", *TINY, "--dry-run", "--json", "--out", tmp_path / "out")
    first, second = process(*asked), process(*asked)
    assert "timing this machine, once" in first.stderr and not second.stderr
    assert strict(first.stdout) == strict(second.stdout) and not (tmp_path / "out").exists()
    assert pace.known() not in (None, 1.0)
