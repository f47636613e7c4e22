"""`stabkit export`: what Python gives, as a file."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest

import stabkit
from stabkit.cli.commands.export import put
from stabkit.errors import UsageError
from stabkit.spec import ALGO_VERSION
from stabkit.storage import folder
from stabkit.storage.store import Store
from tests.commands import stabkit as command
from tests.conftest import files_of, tiny


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store of two runs, really trained."""
    held = Store(tmp_path / "store")
    held.runs.mkdir(parents=True)
    for spec in (tiny("post-ln"), tiny("deepnorm", seed=1)):
        folder.commit(held.runs / spec.run_id, held.runs / ".partial", files_of(spec), ALGO_VERSION, lambda: False)
    return tmp_path / "store"


def exported(store: Path, to: str) -> pd.DataFrame:
    file = store.parent / f"records.{to}"
    done = command("export", "--store", store, "--to", to, "--out", file)
    assert done.returncode == 0, done.stderr
    if to == "csv":
        return pd.read_csv(file, keep_default_na=False, na_values=["nan"])  # an empty text is one
    return pd.read_json(file, lines=True)


def test_a_file_reads_back_as_what_python_gives(store: Path) -> None:
    loaded = stabkit.load_records(store)
    pd.testing.assert_frame_equal(loaded, exported(store, "csv"), check_dtype=False, rtol=1e-15)
    assert exported(store, "jsonl")["run"].tolist() == loaded["run"].tolist()


def test_a_terminal_is_not_flooded_with_a_line_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", SimpleNamespace(isatty=lambda: True))
    with pytest.raises(UsageError, match="--out FILE writes them; `stabkit runs ls`: the runs"):
        put([], "csv", None)
