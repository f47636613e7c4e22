"""What a plain install lacks is named where it is needed, and nothing else asks for it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.commands import stabkit
from tests.report.pages import render
from tests.surface.test_landscape import drawn

ROOT = Path(__file__).parents[1]


@pytest.fixture
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    """An environment without the extra `papers`."""
    for package in ("sentencepiece", "loss_landscapes"):
        for name in [name for name in sys.modules if name.partition(".")[0] == package]:
            monkeypatch.delitem(sys.modules, name)
        monkeypatch.setitem(sys.modules, package, None)


@pytest.mark.usefixtures("plain")
def test_a_command_names_the_extra_that_it_needs(tmp_path: Path) -> None:
    said = "--data needs sentencepiece: pip install '.[papers]' in a clone of stabkit"
    done = stabkit("sweep", "--data", ROOT, "--source", "de", "--target", "en", "--out", tmp_path, "--dry-run")
    assert done.returncode == 2 and said in " ".join(done.stderr.split())


@pytest.mark.slow
@pytest.mark.usefixtures("plain", "undrawn")
def test_a_sweep_of_the_synthetic_task_and_its_surfaces_need_none_of_them(tmp_path: Path) -> None:
    line = "sweep --models post-ln,deepnorm --depths 2 --steps 2 --warmup 0 --max-tokens 64"
    done = stabkit(*line.split(), "--out", tmp_path)
    assert done.returncode == 0 and "report:" in done.stdout, done.stderr
    runs, surfaces = drawn(tmp_path / "store")
    page = render(runs, command="stabkit landscape", surfaces=surfaces)
    assert 'id="figure-surface3d"' in page and page.count("sha256-") == 1
