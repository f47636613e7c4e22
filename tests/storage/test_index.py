"""The cache of `runs ls`: a run is read once, again when its folder changed; what else stands there is no line."""

import json
import shutil

import pytest

from stabkit.storage import index
from stabkit.storage.store import Store
from tests.commands import stabkit

SMALL = ["--models", "deepnorm", "--depths", "2", "--steps", "2", "--hidden", "16", "--ffn", "16", "--vocab", "200"]
SMALL += ["--seeds", "0,1", "--warmup", "0"]


@pytest.fixture
def out(once, tmp_path):
    made = once("index", lambda folder: stabkit("sweep", *SMALL, "--out", folder, "-q"))
    shutil.copytree(made, tmp_path / "out")
    return tmp_path / "out"


def read(monkeypatch):
    """The ids whose line is read from the run from now on."""
    ids = []
    line = index.line
    monkeypatch.setattr(index, "line", lambda store, run_id: ids.append(run_id) or line(store, run_id))
    return ids


def listed(out):
    done = stabkit("runs", "ls", "--out", out)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_a_run_is_read_once_and_again_when_its_folder_changed(out, monkeypatch):
    ids = read(monkeypatch)
    first = listed(out)
    assert sorted(ids) == Store(out).ids() and len(ids) == 2
    assert listed(out) == first and len(ids) == 2
    changed = Store(out).runs / ids[0] / "environment.json"
    changed.write_bytes(changed.read_bytes() + b" ")
    assert listed(out) == first and len(ids) == 3, "it says what it said; that it was changed, `verify` says"
    assert stabkit("runs", "verify", "--out", out).returncode
    changed.write_bytes(b"{")
    done = stabkit("runs", "ls", "--out", out)
    assert len(ids) == 4 and "left out a corrupt run" in done.stderr and ids[1] in done.stdout
    assert ids[0] not in done.stdout


def test_a_line_read_from_a_part_of_a_run_is_that_of_the_whole_run(out):
    store = Store(out)
    for run_id in store.ids():
        assert index.line(store, run_id) == index.ListedRun.of(store.load(run_id))


def test_a_run_that_went_is_not_listed(out):
    gone, stays = Store(out).ids()
    listed(out)
    shutil.rmtree(Store(out).runs / gone)
    assert stays in listed(out) and gone not in listed(out)


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"rule": 1}', '{"rule": "RULE", "runs": {"ID": [1]}}', '{"rule": "RULE", "runs": []}']
)
def test_a_cache_that_is_not_ours_is_read_past(out, text):
    first = listed(out)
    file = Store(out).runs / index.NAME
    file.write_text(text.replace("RULE", index.rule()).replace("ID", Store(out).ids()[0]))
    assert listed(out) == first
    assert set(json.loads(file.read_text())["runs"]) == set(Store(out).ids())


def test_another_rule_of_outcomes_is_another_listing(out, monkeypatch):
    listed(out)
    assert len(index.known(Store(out))) == 2
    monkeypatch.setattr(index, "rule", lambda: "another")
    assert index.known(Store(out)) == {}


def test_a_store_that_cannot_be_written_to_is_listed(out, monkeypatch):
    monkeypatch.setattr(index.folder, "write_file", lambda *args: (_ for _ in ()).throw(OSError("read only")))
    assert "2 runs" in listed(out)


def test_runs_are_listed_in_plain_columns_that_no_width_cuts(out):
    lines = listed(out).splitlines()
    heads = ["run", "optimizer", "outcome", "steps", "loss", "seconds"]
    assert lines[0] == "2 runs" and lines[1].split() == heads
    assert [line.split()[0] for line in lines[2:]] == Store(out).ids()
    assert {line.split()[1] for line in lines[2:]} == {"adam"}
