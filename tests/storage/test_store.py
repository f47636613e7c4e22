"""The store: a folder a run, whole or absent."""

import json
import os
import shutil

import pytest

from stabkit.errors import StoreError, UsageError
from stabkit.spec import ALGO_VERSION
from stabkit.storage import folder
from stabkit.storage.folder import CorruptFolder, OldFolder, write_file
from stabkit.storage.store import FILES, Store, disk
from tests.conftest import files_of, tiny


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path)


def commit(store, spec=None):
    spec = spec or tiny()
    store.commit(spec, files_of(spec))
    return spec.run_id


def test_a_committed_run_is_read_back_with_its_spec(store):
    run_id = commit(store)
    run = store.load(run_id)
    assert run.spec == tiny() and run.outcome.word == "early" and run_id in store and store.ids() == [run_id]


@pytest.mark.parametrize("leave", ["nothing", "a file", "no manifest"])
def test_a_folder_that_is_not_whole_is_seen_and_gives_way_to_a_whole_one(store, leave):
    run_id = commit(store)
    folder = store.runs / run_id
    (folder / "manifest.json").unlink()
    if leave != "no manifest":
        shutil.rmtree(folder)
        folder.write_text("x") if leave == "a file" else folder.mkdir()
    assert run_id in store
    with pytest.raises(CorruptFolder):
        store.load(run_id)
    commit(store)
    assert store.load(run_id).spec == tiny() and not list((store.runs / ".partial").iterdir())


def test_a_failed_commit_leaves_no_debris(store, monkeypatch):
    def full(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "rename", full)
    with pytest.raises(StoreError, match="No space left"):
        commit(store)
    assert store.ids() == [] and not list((store.runs / ".partial").iterdir())


def test_a_report_is_not_written_over_what_is_not_a_file(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UsageError, match="not a regular file"):
        write_file(tmp_path / "pipe", b"page")


def test_a_second_commit_of_the_same_run_changes_nothing(store):
    run_id = commit(store)
    before = store.load(run_id).digest
    commit(store)
    assert store.load(run_id).digest == before


def test_the_digest_leaves_the_environment_out(store, tmp_path):
    run_id = commit(store)
    other = Store(tmp_path / "other")
    other.commit(tiny(), {**files_of(tiny()), "environment.json": b'{"threads": 7}'})
    assert other.load(run_id).digest == store.load(run_id).digest


@pytest.mark.parametrize("name", [*FILES, "manifest.json"])
@pytest.mark.parametrize("damage", ["truncate", "flip", "delete", "empty"])
def test_any_damage_to_any_file_is_seen(store, name, damage):
    run_id = commit(store)
    path = store.runs / run_id / name
    data = path.read_bytes()
    if damage == "delete":
        path.unlink()
    else:
        middle = len(data) // 2
        flipped = data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]
        path.write_bytes({"truncate": data[:-1], "flip": flipped, "empty": b""}[damage])
    with pytest.raises(CorruptFolder):
        store.load(run_id)


def test_a_folder_renamed_to_another_run_is_seen(store):
    run_id = commit(store)
    other = tiny(seed=5).run_id
    os.rename(store.runs / run_id, store.runs / other)
    with pytest.raises(CorruptFolder, match="belongs to"):
        store.load(other)


def test_a_run_of_another_version_is_old_and_not_corrupt(store, monkeypatch):
    run_id = commit(store)
    monkeypatch.setattr("stabkit.storage.store.ALGO_VERSION", 99)  # what its version is checked against first
    with pytest.raises(OldFolder, match=f"version {ALGO_VERSION}"):
        store.load(run_id)


def test_a_run_of_another_version_is_told_as_old_before_anything_else_in_it_is_read(store):
    run_id = commit(store)
    manifest = json.loads((store.runs / run_id / "manifest.json").read_text())
    (store.runs / run_id / "manifest.json").write_text(json.dumps({**manifest, "algo_version": 4}))
    for name in ("spec.json", "outcome.json", "records.npz"):
        (store.runs / run_id / name).write_text("of other days")
    with pytest.raises(OldFolder, match=f"has version 4 of the algorithm; the current one is {ALGO_VERSION}"):
        store.load(run_id)


def test_quarantine_keeps_the_folder_and_frees_its_place(store):
    run_id = commit(store)
    where = store.quarantine(run_id)
    assert (where / "spec.json").is_file() and run_id not in store and store.ids() == []


def test_removing_a_run_leaves_nothing(store):
    run_id = commit(store)
    store.remove(run_id)
    assert run_id not in store and store.ids() == []


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "report.html"
    write_file(path, b"old")

    def full(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(StoreError, match="No space left"):
        write_file(path, b"new")
    assert path.read_bytes() == b"old" and os.listdir(tmp_path) == ["report.html"]


def test_a_writer_that_comes_between_the_look_and_the_move_leaves_the_first(tmp_path):
    looked = iter([False, True])
    files = {"a.json": b"{}"}
    folder.commit(tmp_path / "x", tmp_path / ".partial", files, 1, lambda: False)
    folder.commit(tmp_path / "x", tmp_path / ".partial", files, 1, lambda: next(looked))
    assert (tmp_path / "x" / "a.json").read_bytes() == b"{}" and not list((tmp_path / ".partial").iterdir())
    with pytest.raises(StoreError, match="cannot write"):
        folder.commit(tmp_path / "x", tmp_path / ".partial", files, 1, lambda: False)


def test_what_is_swept_away_while_it_is_assembled_is_assembled_again(store, monkeypatch):
    """By who took us for gone: we were stopped for long, and wake."""
    sync, swept = folder._sync, []

    def sweeping(path):
        if not swept and path.parent.name == ".partial":
            swept.append(path)
            folder.sweep(store.runs / ".partial", path.name.split(".")[0])
        sync(path)

    monkeypatch.setattr(folder, "_sync", sweeping)
    run_id = commit(store)
    assert swept and store.load(run_id) and not list((store.runs / ".partial").iterdir())


@pytest.mark.parametrize("spec", [tiny(), tiny(steps=40), tiny(layers=6)], ids=lambda spec: spec.run_id)
def test_the_bytes_that_a_run_is_said_to_take_are_about_those_that_it_takes(spec):
    taken = sum(map(len, files_of(spec).values()))
    assert 0.6 < disk(spec) / taken < 1.2
