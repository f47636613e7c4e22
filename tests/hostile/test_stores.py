"""Stores that no command of ours writes: each is looked at by a process of its own, which says what it took."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.hostile.looking import evaluated, look
from tests.hostile.stores import ARCHIVES, KINDS, RUN, SAFETENSORS, SURFACE, Bomb, bombs, put

pytestmark = [pytest.mark.hostile]
MOST = 200
"""Megabytes, the interpreter's among them."""
CHECKPOINT = "Store(out).checkpoint(spec.from_json(text))"
WEIGHTS = "weights.arrays(Store(out).load(spec.from_json(text).run_id))"
TILE = "Tiles(Shelf(SURFACE, out), surface.from_json(text)).read('rows-0-1', 0, 1)"
LEFT = {
    "checkpoint": ("runs", RUN.run_id, "checkpoint", CHECKPOINT),
    "tile": ("surfaces", SURFACE.surface_id, "rows-0-1", TILE),
}


def test_an_empty_store_takes_half_of_what_a_bomb_may(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    assert look(tmp_path).peak <= MOST / 2


@pytest.mark.parametrize("bomb", list(bombs()), ids=lambda bomb: f"{bomb[1]}, {bomb[0]}")
def test_a_bomb_costs_a_line_and_little_memory(bomb: Bomb, tmp_path: Path) -> None:
    _, folder, make = bomb
    put(tmp_path, folder, make()[0], manifest=make()[1])
    done = look(tmp_path)
    faults = [f"{done.peak} MB"] if done.peak > MOST else []
    rows = [line for line in done.lines if KINDS[folder].name in line]
    if len(rows) != (2 if folder in ("own", "runs") else 1):  # `runs ls` lists two kinds, `runs verify` all
        faults.append(f"{len(rows)} lines of it")
    assert not faults and set(done.codes) <= {0, 5}, (faults, [line[-150:] for line in done.lines])


@pytest.mark.parametrize("archive", ["lying zip", "honest gigabyte", "many members", "headers"])
@pytest.mark.parametrize("what", LEFT)
def test_what_an_unfinished_run_or_surface_left_is_no_bomb(what: str, archive: str, tmp_path: Path) -> None:
    folder, name, file, expression = LEFT[what]
    left = tmp_path / folder / ".partial" / name
    left.mkdir(parents=True)
    (left / f"{file}.npz").write_bytes(ARCHIVES[archive]())
    spec = put(tmp_path, folder, {}) / "spec.json"
    done = evaluated(expression, tmp_path, spec)
    assert done.peak <= MOST and (done.out[0].startswith("refused") or done.out == ["read None"]), done


@pytest.mark.parametrize("header", SAFETENSORS)
def test_weights_whose_header_lies_are_refused(header: str, tmp_path: Path) -> None:
    path = put(tmp_path, "runs", {"weights.safetensors": SAFETENSORS[header]()})
    done = evaluated(WEIGHTS, tmp_path, path / "spec.json")
    assert done.peak <= MOST and done.out[0].startswith("refused"), done


@pytest.mark.parametrize("folder", KINDS)
def test_eleven_thousand_foreign_folders_cost_a_line(folder: str, tmp_path: Path) -> None:
    put(tmp_path, folder, {})
    for i in range(11_000):
        (tmp_path / folder / f"foreign-{i}" / ("000000" if folder == "own" else "")).mkdir(parents=True)
    done = look(tmp_path)
    assert len(done.lines) <= 12 and done.peak <= MOST, (len(done.lines), done.peak, done.lines[:3])


@pytest.mark.parametrize("odd", ["directory", "pipe"])
def test_a_directory_or_a_pipe_in_a_files_place_costs_a_line(odd: str, tmp_path: Path) -> None:
    make, count = os.mkdir if odd == "directory" else os.mkfifo, 0
    for folder, kind in KINDS.items():
        for file in ("manifest.json", *kind.files()):
            count += 1
            path = put(tmp_path, folder, {}, f"odd-{count}".encode()) / file
            path.unlink(), make(path)
    done = look(tmp_path)
    rows = [line for line in done.out if line.startswith("corrupt ")]
    assert len(rows) == count and all(str(tmp_path) in row for row in rows), done.lines


@pytest.mark.parametrize("odd", ["directory", "pipe"])
def test_a_directory_or_a_pipe_in_a_locks_place_is_no_run_in_progress(odd: str, tmp_path: Path) -> None:
    put(tmp_path, "runs", {})
    (tmp_path / "runs" / ".locks").mkdir()
    (os.mkdir if odd == "directory" else os.mkfifo)(tmp_path / "runs" / ".locks" / f"{RUN.run_id}.0")
    assert "in progress" not in " ".join(look(tmp_path).lines)
