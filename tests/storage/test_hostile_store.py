"""Runs from a stranger, their checksums right and their contents not: named corrupt, or harmless to every reader."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stabkit.cli.commands import lookup
from stabkit.report.json_document import series, text
from stabkit.results import records
from stabkit.running import runs
from stabkit.spec import ALGO_VERSION, RunSpec
from stabkit.storage import folder, locks
from stabkit.storage.export import rows
from stabkit.storage.folder import CorruptFolder
from stabkit.storage.store import FILES, Store
from tests.conftest import files_of, some, tiny
from tests.report.pages import render

Arrays = dict[str, Any]
SPEC = tiny("post-ln")


def put(tmp_path: Path, files: dict[str, bytes], spec: RunSpec = SPEC) -> Store:
    """A store with this one run, its manifest as it should be."""
    store = Store(tmp_path)
    store.runs.mkdir(parents=True, exist_ok=True)
    folder.commit(store.runs / spec.run_id, store.runs / ".partial", files, ALGO_VERSION, lambda: False)
    return store


def with_records(change: Callable[[Arrays], Arrays]) -> dict[str, bytes]:
    files = files_of(SPEC)
    with np.load(io.BytesIO(files["records.npz"])) as held:
        arrays = change({name: held[name] for name in held.files})
    out = io.BytesIO()
    np.savez(out, **arrays)
    return {**files, "records.npz": out.getvalue()}


def every(value: Callable[[Any], Any], part: str = "values") -> Callable[[Arrays], Arrays]:
    return lambda arrays: {n: value(a) if n.endswith(f".{part}") else a for n, a in arrays.items()}


def one(name: str, value: Callable[[Any], Any]) -> Callable[[Arrays], Arrays]:
    return lambda arrays: {**arrays, name: value(arrays[name])}


def without(probe: str) -> Callable[[Arrays], Arrays]:
    return lambda arrays: {n: a for n, a in arrays.items() if not n.startswith(f"{probe}.")}


def extra(name: str, sites: list[str]) -> Callable[[Arrays], Arrays]:
    table = {"steps": np.array([0]), "sites": np.array(sites), "values": np.full((1, len(sites)), np.nan)}
    return lambda arrays: {**arrays, **{f"{name}.{part}": array for part, array in table.items()}}


CORRUPT: dict[str, Callable[[Arrays], Arrays]] = {
    **{f"without {probe}": without(probe) for probe in ("loss", "validation")},
    "a name that is no probe's": extra("../x\x1b[2J</script>", ["a"]),
    "other sites": one("loss.sites", lambda s: np.array([f"x{name}" for name in s])),
    "sites in bytes": one("loss.sites", lambda s: s.astype("S")),
    "sites twice": one("ln_input.sites", lambda s: np.array(["encoder.1.self"] * len(s))),
    "no sites": lambda a: {
        n: v[:0] if n.endswith("sites") else v[:, :0] if n.endswith("values") else v for n, v in a.items()
    },
    "no steps": lambda a: {n: v if n.endswith("sites") else v[:0] for n, v in a.items()},
    "steps as dates": one("update.steps", lambda s: s.astype("M8[s]")),
    "complex steps": one("update.steps", lambda s: s.astype(complex)),
    "half steps": one("loss.steps", lambda s: s + 0.5),
    "falling steps": one("update.steps", lambda s: -s),
    "steps of another run": one("update.steps", lambda s: s + 1000),
    "values in float32": one("loss.values", lambda v: v.astype("f4")),
    "an empty archive": lambda a: {},
}
SINCE = ("update", "parameter_update", "grad_norm", "ln_input", "branch_ratio", "perturbation")
HARMLESS: dict[str, Callable[[Arrays], Arrays]] = {
    **{f"without {probe}": without(probe) for probe in SINCE},
    "without all of them": lambda arrays: {n: a for n, a in arrays.items() if n.partition(".")[0] not in SINCE},
    "of another version of a probe": lambda arrays: {**arrays, "ln_input.version": np.array(7)},
    "zero": every(lambda v: v * 0),
    "denormal": every(lambda v: v * 0 + 5e-324),
    "NaN": every(lambda v: v * np.nan),
    "infinite": every(lambda v: v * 0 + np.inf),
    "minus infinity": every(lambda v: v * 0 - np.inf),
    "negative": every(lambda v: -v - 1),
    "as large as float32": every(lambda v: (v * 0 + 3e38) * (-1.0) ** np.arange(v.size).reshape(v.shape)),
    "as large as float64": every(lambda v: v * 0 + 1.79e308),
    "beyond, with both signs": every(lambda v: (v * 0 + 1.79e308) * (-1.0) ** np.arange(v.size).reshape(v.shape)),
    "a foreign probe": extra("tomorrow", ["=cmd|x", "\n", "</script>"]),
}


@pytest.mark.parametrize("case", CORRUPT)
def test_records_that_no_run_writes_are_corrupt_and_trained_again(case: str, tmp_path: Path) -> None:
    store = put(tmp_path, with_records(CORRUPT[case]))
    with pytest.raises(CorruptFolder):
        store.load(SPEC.run_id)
    planned = runs.planned([SPEC], store)
    assert planned.missing == [SPEC] and "corrupt" in planned.corrupt[0]
    assert list((store.runs / ".quarantine").iterdir())


@pytest.mark.slow
@pytest.mark.parametrize("case", some(HARMLESS, 5))
def test_records_of_any_value_are_read_by_every_reader(case: str, tmp_path: Path) -> None:
    store = put(tmp_path, with_records(HARMLESS[case]))
    run, whole = store.load(SPEC.run_id), put(tmp_path / "w", files_of(tiny()), tiny()).load(tiny().run_id)
    assert "<html" in render([run, whole], command="stabkit report")
    json.loads(text(series(run)), parse_constant=pytest.fail)
    assert len(list(rows([run]))) > 0


OUTCOMES: dict[str, dict[str, Any]] = {
    "a word of its own": {"outcome": "\x1b[31mtrains"},
    "a count that is none": {"parameters": "many"},
    "a count below none": {"parameters": -1},
    "a key of ours": {"run_id": "other"},
    "a number that is none": {"unigram_loss": "four"},
    "true for a number": {"unigram_loss": True},
}


@pytest.mark.parametrize("case", OUTCOMES)
def test_an_outcome_that_no_run_writes_is_corrupt(case: str, tmp_path: Path) -> None:
    with pytest.raises(CorruptFolder, match="outcome.json"):
        put(tmp_path, files_of(SPEC, **OUTCOMES[case])).load(SPEC.run_id)


@pytest.mark.parametrize("name", ["records.npz", "weights.safetensors", "spec.json", "manifest.json"])
def test_a_sparse_file_of_terabytes_is_corrupt_and_costs_nothing(name: str, tmp_path: Path) -> None:
    store = put(tmp_path, files_of(SPEC))
    with (store.runs / SPEC.run_id / name).open("r+b") as file:
        file.truncate(4 << 40)
    with pytest.raises(CorruptFolder, match="bytes"):
        store.load(SPEC.run_id)


def test_a_deep_environment_or_attempts_are_no_recursion(tmp_path: Path) -> None:
    deep = b'{"a":' * 50_000 + b"1" + b"}" * 50_000
    store = put(tmp_path, {**files_of(SPEC), "environment.json": deep})
    with pytest.raises(CorruptFolder):
        store.load(SPEC.run_id)
    (store.runs / ".partial" / SPEC.run_id).mkdir(parents=True)
    (store.runs / ".partial" / SPEC.run_id / "attempts.jsonl").write_bytes(deep)
    assert store.attempts(SPEC.run_id) == []


@pytest.mark.parametrize("name", [".partial", ".quarantine", ".locks"])
def test_nothing_is_written_or_deleted_through_a_link_beside_the_runs(name: str, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "a.b").mkdir(parents=True)
    store = put(tmp_path / "out", files_of(SPEC))
    (store.runs / name).rmdir() if (store.runs / name).exists() else None
    (store.runs / name).symlink_to(elsewhere)
    with pytest.raises(folder.StoreError, match="is a link"):
        store.writable()
    with pytest.raises(folder.StoreError, match="is a link"):
        if name == ".quarantine":
            store.quarantine(SPEC.run_id)
        elif name == ".partial":
            store.remove(SPEC.run_id)
        else:
            with store.shelf.hold(SPEC.run_id):
                pass
    assert [entry.name for entry in elsewhere.iterdir()] == ["a.b"] and SPEC.run_id in store


def test_a_lock_that_is_another_name_of_a_file_is_not_written_to(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("data")
    store = Store(tmp_path)
    (store.runs / ".locks").mkdir(parents=True)
    for name in ("symbolic_0.0", "hard_0.0"):
        path = store.runs / ".locks" / name
        path.symlink_to(precious) if name[0] == "s" else path.hardlink_to(precious)
        with pytest.raises(locks.Locked), store.shelf.hold(name.removesuffix(".0")):
            pass
        holder = locks._Holder("here", 1, "2", "3")
        with suppress(OSError):
            locks._beat(path, holder, 7)
    assert precious.read_text() == "data"


def test_whatever_stands_in_a_runs_place_is_listed_and_a_looped_link_disables_nothing(tmp_path: Path) -> None:
    store = put(tmp_path, files_of(SPEC))
    (store.runs / "loop").symlink_to("loop")
    (store.runs / "notes.txt").write_text("mine")
    other = tiny(seed=7).run_id
    (store.runs / other).write_text("x")
    assert store.ids() == sorted([SPEC.run_id, other])
    assert set(FILES) <= {entry.name for entry in (store.runs / SPEC.run_id).iterdir()}


@pytest.mark.slow
@pytest.mark.parametrize("change", [{"method": "tomorrow"}, {"options": {"tomorrow": "yes"}}])
def test_a_run_of_a_method_or_option_of_another_version_is_listed_and_drawn(tmp_path, change):
    """Its size is bounded as Post-LN's is; nothing here can build it."""
    foreign = replace(tiny("deepnorm", steps=2), **change)
    store = Store(tmp_path)
    store.runs.mkdir(parents=True)
    files = {**files_of(tiny("deepnorm", steps=2)), "spec.json": json.dumps(foreign.to_json()).encode()}
    store.commit(foreign, files)
    (found,) = lookup.find(store, [])
    page = render([found], command="x")
    assert found.run_id == foreign.run_id and "tomorrow" in page


@pytest.mark.parametrize("name", ["x/../../escaped", "<b>evil", "own-", "own-../x", "Loss", "a" * 60])
def test_a_table_whose_name_is_no_probes_is_not_read(name: str) -> None:
    """Names of tables become names of figures, and those names of files."""
    table = records.Table(np.arange(1), ("a",), np.zeros((1, 1)))
    with pytest.raises(records.UnreadableRecords, match="is not the name of a probe"):
        records.current({name: table}, tiny())


@pytest.mark.slow
def test_records_that_unpack_to_more_than_a_run_records_are_not_unpacked(tmp_path: Path) -> None:
    out = io.BytesIO()
    np.savez_compressed(out, **{"loss.values": np.zeros(30_000_000)})
    assert len(out.getvalue()) < 1_000_000
    store = put(tmp_path, {**files_of(SPEC), "records.npz": out.getvalue()})
    with pytest.raises(CorruptFolder, match=r"it unpacks to 240,\d+,\d+ bytes"):
        store.load(SPEC.run_id)
