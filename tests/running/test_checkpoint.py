"""A run that was stopped goes on as if it had not been: records, weights and outcome to the bit."""

from __future__ import annotations

import os
import random
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from stabkit import methods
from stabkit.errors import StoreError
from stabkit.results.records import to_bytes
from stabkit.running import work
from stabkit.storage.folder import CorruptFolder
from stabkit.storage.store import Store
from stabkit.tasks.synthetic import Synthetic
from stabkit.training import train
from tests.commands import TINY, killed, stabkit
from tests.conftest import FULL, job, some, tiny

TASK = Synthetic(vocab=200, max_tokens=128)


def same(one: train.Result, other: train.Result) -> None:
    assert one.outcome == other.outcome and list(one.records) == list(other.records)
    assert to_bytes(one.records) == to_bytes(other.records)
    for name, table in one.records.items():
        assert table.sites == other.records[name].sites
        np.testing.assert_array_equal(table.steps, other.records[name].steps)
        np.testing.assert_array_equal(table.values, other.records[name].values)
    assert set(one.weights) == set(other.weights)
    for name, array in one.weights.items():
        np.testing.assert_array_equal(array, other.weights[name])


@pytest.mark.slow
@pytest.mark.parametrize("method", some(methods.KEYS, 4))
def test_from_any_checkpoint_a_run_ends_as_if_it_had_never_stopped(method: str) -> None:
    spec = tiny(method, steps=7, dropout=0.1, warmup=3, snapshots=4)
    if method == "admin":
        spec = replace(spec, options={"trainable": "yes"})
    states: list[train.State] = []
    whole = train.run(spec, TASK, save=states.append, every=1)
    assert [state.step for state in states] == [1, 2, 3, 4, 5, 6]
    same(train.run(spec, TASK), whole)  # saving changes nothing
    for state in states if FULL else states[::2]:
        same(train.run(spec, TASK, start=state), whole)


def test_a_checkpoint_survives_the_disk_and_belongs_to_one_run(tmp_path: Path) -> None:
    store, spec = Store(tmp_path), tiny(steps=5)
    states: list[train.State] = []
    whole = train.run(spec, TASK, save=states.append, every=3)
    store.save_checkpoint(spec, {**states[0].arrays, "step": np.array(3)})
    arrays = store.checkpoint(spec)
    assert arrays is not None
    step = int(arrays.pop("step"))
    same(train.run(spec, TASK, start=train.State(step, arrays)), whole)
    other = tiny(steps=5, seed=1)
    assert store.checkpoint(other) is None
    path = tmp_path / "runs" / ".partial"
    os.rename(path / spec.run_id, path / other.run_id)
    with pytest.raises(CorruptFolder, match="another run"):
        store.checkpoint(other)


def test_nothing_is_written_through_a_planted_link(tmp_path: Path) -> None:
    store, spec = Store(tmp_path / "out"), tiny()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "out" / "runs" / ".partial").mkdir(parents=True)
    (tmp_path / "out" / "runs" / ".partial" / spec.run_id).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StoreError, match="is a link"):
        store.save_checkpoint(spec, {"step": np.array(1)})
    with pytest.raises(StoreError, match="is a link"):
        store.note_attempt(spec.run_id, "killed")
    store.forget(spec.run_id)
    assert list((tmp_path / "elsewhere").iterdir()) == []


@cache
def whole_and_half(out: Path) -> tuple[str, dict[str, np.ndarray]]:
    """The digest of a run of four steps, and its state after two."""
    spec = tiny(steps=4)
    states: list[train.State] = []
    train.run(spec, TASK, save=states.append, every=2)
    work.do(job(spec, out, checkpoint_every=1), lambda event: None)
    return Store(out).load(spec.run_id).digest, dict(states[0].arrays)


@pytest.mark.parametrize(
    "damage",
    "truncated flipped foreign empty directory shape dtype record pickle done without-step step-of-no-kind".split()
    + "resealed other-step extra-snapshot lost-probe lost-record".split(),
)
def test_a_damaged_checkpoint_is_said_and_the_run_starts_afresh(
    damage: str, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    spec = tiny(steps=4)
    digest, first = whole_and_half(tmp_path_factory.getbasetemp() / "whole")
    store = Store(tmp_path / "out")
    arrays = {**first, "step": np.array(2)}
    if damage == "shape":
        arrays["theta"] = arrays["theta"][:-1]
    if damage == "dtype":
        arrays["theta"] = arrays["theta"].astype(np.float64)
    if damage == "record":
        arrays["values.update"] = arrays["values.update"][:, :0]
    if damage == "other-step":
        arrays["step"] = np.array(3)
    if damage == "extra-snapshot":
        arrays["snapshot.theta@1"] = arrays["theta"]
    if damage == "lost-probe":
        arrays = {name: array for name, array in arrays.items() if not name.startswith("probe.")}
    if damage == "lost-record":
        arrays = {name: array for name, array in arrays.items() if not name.endswith(".branch_ratio")}
    if damage == "done":
        arrays["step"] = np.array(4)
    if damage == "without-step":
        del arrays["step"]
    if damage == "step-of-no-kind":
        arrays["step"] = np.array(["2", "3"])
    store.save_checkpoint(spec, arrays)
    path = tmp_path / "out" / "runs" / ".partial" / spec.run_id / "checkpoint.npz"
    data = path.read_bytes()
    if damage == "truncated":
        path.write_bytes(data[: len(data) // 2])
    elif damage == "flipped":
        path.write_bytes(data[: len(data) // 2] + bytes([data[len(data) // 2] ^ 1]) + data[len(data) // 2 + 1 :])
    elif damage == "foreign":
        path.write_bytes(b"PK not ours")
    elif damage == "empty":
        path.write_bytes(b"")
    elif damage == "directory":
        path.unlink()
        path.mkdir()
        (path / "x").mkdir()
    elif damage == "pickle":
        with path.open("wb") as file:
            np.savez(file, spec=np.array([object()], dtype=object))
    elif damage == "resealed":  # other weights, and the checksum of the old ones
        with np.load(path) as held:
            other = {**{name: held[name] for name in held.files}, "theta": arrays["theta"] + 1}
        with path.open("wb") as file:
            np.savez(file, **other)
    events: list[work.Event] = []
    work.do(job(spec, tmp_path / "out", checkpoint_every=1), events.append)
    assert any("corrupt checkpoint" in event.get("warning", "") for event in events)
    assert Store(tmp_path / "out").load(spec.run_id).digest == digest
    assert not path.exists()


def test_an_error_of_training_is_not_called_a_corrupt_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = tiny(steps=4)
    states: list[train.State] = []
    train.run(spec, TASK, save=states.append, every=2)
    Store(tmp_path).save_checkpoint(spec, {**states[0].arrays, "step": np.array(2)})

    def broken(*_: object) -> None:
        raise ValueError("the loss has no gradient")

    monkeypatch.setattr(train, "evaluate", broken)
    events: list[work.Event] = []
    with pytest.raises(ValueError, match="no gradient"):
        work.do(job(spec, tmp_path, checkpoint_every=1), events.append)
    assert not any("warning" in event for event in events)
    assert Store(tmp_path).checkpoint(spec) is not None


def test_a_checkpoint_from_which_not_one_step_can_be_made_is_dropped_for_the_next_attempt(tmp_path: Path) -> None:
    spec = tiny(steps=4)
    states: list[train.State] = []
    train.run(spec, TASK, save=states.append, every=2)
    arrays = {**states[0].arrays, "step": np.array(2)}
    arrays["probe.update.last.0"] = arrays["probe.update.last.0"][:, :0]
    Store(tmp_path).save_checkpoint(spec, arrays)
    with pytest.raises(RuntimeError):
        work.do(job(spec, tmp_path, checkpoint_every=1), lambda event: None)
    assert work.do(job(spec, tmp_path, checkpoint_every=1), lambda event: None)[0] == spec.run_id


@pytest.mark.slow
def test_killed_at_any_moment_and_continued_the_bits_are_those_of_the_whole(
    tmp_path: Path,
) -> None:
    command = ["sweep", *TINY[:2], "--steps", "60", *TINY[4:], "--models", "post-ln,admin", "--dropout", "0.1"]
    command += ["--checkpoint-every", "3", "--workers", "1", "--quiet"]
    whole = tmp_path / "whole"
    assert stabkit(*command, "--out", whole).returncode == 0
    chance = random.Random(0)
    assert sum(killed(command, tmp_path / "out", after=chance.randrange(12)) for _ in range(2)) >= 1
    assert stabkit(*command, "--out", tmp_path / "out").returncode == 0
    digests = [{i: Store(out).load(i).digest for i in Store(out).ids()} for out in (whole, tmp_path / "out")]
    assert digests[0] == digests[1] and len(digests[0]) == 2
    left = tmp_path / "out" / "runs" / ".partial"
    assert not left.exists() or not any(left.iterdir())
