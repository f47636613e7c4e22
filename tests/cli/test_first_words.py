"""Before something takes long, a line says what: a large text, many stored runs, a vocabulary."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.commands import TINY, process, stabkit
from tests.tasks.conftest import write


@pytest.mark.slow
def test_a_large_text_and_many_stored_runs_are_told_of_before_they_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, undrawn: None
) -> None:
    monkeypatch.setattr("stabkit.options.grids.LARGE_TEXT", 1)
    monkeypatch.setattr("stabkit.running.execute.MANY", 2)
    monkeypatch.setattr("stabkit.cli.commands.lookup.MANY", 2)
    data, out = tmp_path / "data", tmp_path / "out"
    data.mkdir()
    sweep = ["sweep", *TINY[:6], "--ffn", "24", "--max-tokens", "64", "--models", "deepnorm,post-ln", "--vocab", "100"]
    sweep += ["--data", write(data), "--source", "de", "--target", "en", "--out", out]
    first = stabkit(*sweep).stderr.splitlines()
    assert first[:3] == [
        f"reading the text in {data}",
        "reused 0, new 2",
        "making the vocabulary of de-en, 100 subwords, once for all runs",
    ]
    again = stabkit(*sweep).stderr.splitlines()
    assert again[:3] == [first[0], "reading 2 stored runs", "reused 2, new 0; nothing to train"]
    assert stabkit("report", cwd=out).stderr.splitlines() == ["reading 2 stored runs"]
    assert stabkit(*sweep, "--quiet").stderr == ""


@pytest.mark.slow
def test_a_plan_is_shown_before_pandas_matplotlib_or_torch_are_loaded(tmp_path: Path) -> None:
    done = process("sweep", *TINY, "--dry-run", "--out", tmp_path, env={"PYTHONPROFILEIMPORTTIME": "1"}, drawn=True)
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines() if line.startswith("import time:")}
    assert done.returncode == 0 and "stabkit.running.cost" in loaded
    assert not loaded & {"torch", "pandas", "matplotlib", "sentencepiece"}
