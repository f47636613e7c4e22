"""`stabkit export --to parquet`: what Python and the other formats give, with the type of every column."""

from __future__ import annotations

import math
import sys
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import stabkit
from stabkit.cli.commands.export import put
from stabkit.errors import UsageError
from stabkit.spec import ALGO_VERSION
from stabkit.storage import export, folder
from stabkit.storage.store import Store
from tests.commands import stabkit as command
from tests.conftest import files_of, need, tiny

PARQUET = find_spec("pyarrow") is not None


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store of two runs, really trained."""
    held = Store(tmp_path / "store")
    held.runs.mkdir(parents=True)
    for spec in (tiny("post-ln"), tiny("deepnorm", seed=1)):
        folder.commit(held.runs / spec.run_id, held.runs / ".partial", files_of(spec), ALGO_VERSION, lambda: False)
    return tmp_path / "store"


def exported(store: Path, what: str, to: str) -> pd.DataFrame:
    file = store.parent / f"{what}.{to}"
    done = command("export", "--store", store, "--what", what, "--to", to, "--out", file)
    assert done.returncode == 0, done.stderr
    if to == "csv":
        return pd.read_csv(file, keep_default_na=False, na_values=["nan"])  # an empty text is one
    return pd.read_parquet(file) if to == "parquet" else pd.read_json(file, lines=True)


@pytest.mark.libraries
@pytest.mark.parametrize("what", ["records", "runs"])
def test_parquet_reads_back_as_what_python_and_csv_give(what: str, store: Path) -> None:
    need("libraries", PARQUET, "pyarrow")
    read = exported(store, what, "parquet")
    loaded = {"records": stabkit.load_records, "runs": stabkit.load_runs}[what](store)
    pd.testing.assert_frame_equal(read, loaded, check_dtype=True)
    pd.testing.assert_frame_equal(read, exported(store, what, "csv"), check_dtype=False, rtol=1e-15)
    whole, real = {"records": ("step", "value"), "runs": ("seed", "lr")}[what]
    assert read[whole].dtype == np.int64 and read[real].dtype == np.float64 and isinstance(read["run"][0], str)


def test_runs_are_exported_a_row_each(store: Path) -> None:
    csv, lines = exported(store, "runs", "csv"), exported(store, "runs", "jsonl")
    assert csv["method"].tolist() == lines["method"].tolist() == ["post-ln", "deepnorm"]
    assert csv["seed"].tolist() == lines["seed"].tolist() == [0, 1]


@pytest.mark.libraries
def test_every_type_is_kept_over_several_groups_of_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    need("libraries", PARQUET, "pyarrow")
    monkeypatch.setattr(export, "GROUP", 2)
    columns = ("text", "whole", "real", "yes", "several")
    rows = [("a\rb", 1, math.nan, True, [1.0]), ("", 2, math.inf, False, []), ('"', 3, 0.1, True, [2.0, 3.0])]
    (tmp_path / "all.parquet").write_bytes(export.parquet(export.ExportedTable(columns, iter(rows))))
    read = pd.read_parquet(tmp_path / "all.parquet")
    assert [read[name].dtype.kind for name in columns[1:4]] == ["i", "f", "b"]
    assert read["text"].tolist() == ["a\rb", "", '"'] and read["several"].map(list).tolist() == [[1.0], [], [2.0, 3.0]]
    assert math.isnan(read["real"][0]) and read["real"].tolist()[1:] == [math.inf, 0.1]
    (tmp_path / "none.parquet").write_bytes(export.parquet(export.ExportedTable(columns, iter(()))))
    assert pd.read_parquet(tmp_path / "none.parquet").columns.tolist() == list(columns)


def test_parquet_names_what_it_needs(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if PARQUET:
        done = command("export", "--store", store, "--to", "parquet")
        assert done.returncode == 2 and "--to parquet writes no text; --out FILE names its file" in done.stderr
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    done = command("export", "--store", store, "--to", "parquet", "--out", store / "x.parquet")
    assert done.returncode == 2 and not (store / "x.parquet").exists()
    assert "--to parquet needs pyarrow: pip install '.[parquet]' in a clone of stabkit" in " ".join(done.stderr.split())


def test_a_terminal_is_not_flooded_with_a_line_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", SimpleNamespace(isatty=lambda: True))
    with pytest.raises(UsageError, match="--out FILE writes them; --what runs: a row a run"):
        put([], "csv", None)
