"""What a user can trust: attempts, timeouts, verification, export, full disks; through the command line alone."""

from __future__ import annotations

import csv
import io
import json
import math
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from stabkit.cli import config
from stabkit.cli.commands import export
from stabkit.errors import StoreError, UsageError
from stabkit.running.executors import processes
from stabkit.running.request import space
from stabkit.storage.store import Store
from tests.commands import TINY, UNDRAWN, stabkit, strict
from tests.figures.fake_runs import run, spec, table

LONG = [*TINY[:2], "--steps", "100000", *TINY[4:], "--models", "deepnorm"]


HANGS = """
import socket
channel = socket.socket(fileno=int(sys.argv[1]))
channel.sendall(b'{"kind": "ready", "body": null}\\n')
for job in channel.makefile("rb"): pass
"""
"""A worker that takes a job and never answers."""


@pytest.mark.slow
def test_a_run_that_hangs_is_tried_three_times_over_all_commands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "PROGRAM", f"exec({HANGS!r})")
    monkeypatch.setattr(processes, "TOGETHER", False)
    command = [
        "sweep",
        *LONG,
        "--executor",
        "processes",
        "--run-timeout",
        "0.5",
        "--out",
        tmp_path,
        "--json",
        "--quiet",
    ]
    first = stabkit(*command)
    assert first.returncode == 3 and "Traceback" not in first.stderr
    failed = strict(first.stdout)["runs"]
    assert len(failed) == 1 and failed[0]["outcome"] == "failed"
    assert failed[0]["reason"] == "timeout: no result within 0.5 s (attempt 3 of 3)"
    again = stabkit(*command)
    assert again.returncode == 3 and "--retry-failed tries again" in strict(again.stdout)["runs"][0]["reason"]
    afresh = stabkit(*command, "--retry-failed")
    assert afresh.returncode == 3 and "attempt 3 of 3" in strict(afresh.stdout)["runs"][0]["reason"]
    assert not Store(tmp_path).ids()


@pytest.fixture(scope="module")
def out(swept: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of two runs, these tests' own."""
    made = tmp_path_factory.mktemp("store")
    for pattern in ("post-ln-2L-*", "deepnorm-2L-*"):
        (run,) = (swept / "store" / "runs").glob(pattern)
        shutil.copytree(run, made / "runs" / run.name)
    return Path(made)


@pytest.mark.usefixtures("undrawn")
def test_verify_names_what_is_corrupt_and_repairs_nothing(out: Path, tmp_path: Path) -> None:
    assert stabkit("runs", "verify", "--out", out).stdout.count("sound") == 2
    store = tmp_path / "s"
    shutil.copytree(out / "runs", store / "runs", ignore=shutil.ignore_patterns(".*"))
    victim = next((store / "runs").glob("post-ln-*")) / "records.npz"
    victim.write_bytes(victim.read_bytes()[:-1])
    (store / "runs" / "made-by-hand").mkdir()
    before = sorted(path.name for path in (store / "runs").iterdir())
    done = stabkit("runs", "verify", "--out", store, "--json")
    assert (
        done.returncode == 5
        and "corrupt: 2 of 3 runs; the next command" in done.stderr
        and "Traceback" not in done.stderr
    )
    states = {row["run_id"]: row["state"] for row in strict(done.stdout)["runs"]}
    assert sorted(states.values()) == ["corrupt", "corrupt", "sound"] and states["made-by-hand"] == "corrupt"
    assert sorted(path.name for path in (store / "runs").iterdir()) == before
    repaired = stabkit("sweep", *TINY, "--models", "post-ln,deepnorm", "--out", store)
    assert repaired.stderr.count("corrupt") == 1 and "reused 1, new 1" in repaired.stderr


def test_the_records_come_out_as_one_long_table(out: Path, tmp_path: Path) -> None:
    lines = stabkit("export", "--store", out, "--to", "jsonl").stdout.splitlines()
    rows = [strict(line) for line in lines]
    table_ = list(csv.DictReader(io.StringIO(stabkit("export", "--store", out).stdout)))
    assert len(rows) == len(table_) > 400 and set(rows[0]) == {"run", "step", "probe", "site", "value"}
    for row, line in zip(rows, table_, strict=True):
        assert row["run"] == line["run"] and str(row["step"]) == line["step"] and float(line["value"]) == row["value"]
    done = stabkit("export", "--store", out, "--out", tmp_path / "all.csv", "deepnorm-2L")
    assert done.returncode == 0 and (tmp_path / "all.csv").read_text().count("deepnorm-2L-2L") == len(rows) // 2
    bad = stabkit("export", "--store", out, "--to", "xlsx")
    assert bad.returncode == 2 and "--to: 'xlsx'" in bad.stderr


def test_values_that_are_not_finite_are_exported_as_words(tmp_path: Path) -> None:
    made = run(spec("post-ln", 2), {"update": table([0, 1, 2], {"state": [0.0, math.nan, -math.inf]})})
    export.put([made], "jsonl", tmp_path / "x.jsonl")
    values = [json.loads(line)["value"] for line in (tmp_path / "x.jsonl").read_text().splitlines()]
    assert values == [0.0, "nan", "-inf"]
    export.put([made], "csv", tmp_path / "x.csv")
    assert (tmp_path / "x.csv").read_text().splitlines()[2].endswith(",nan")


@pytest.mark.slow
def test_a_reader_that_leaves_early_is_no_error(out: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "stabkit", "export", "--store", str(out)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as door:
        assert door.stdout is not None and door.stderr is not None
        door.stdout.readline()
        door.stdout.close()
        assert "Traceback" not in door.stderr.read()


def test_a_disk_without_room_is_refused_before_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(100, 99, 1_000_000))
    with pytest.raises(StoreError, match="1 MB free, these runs need about 5 MB"):
        space(5_000_000, tmp_path / "not" / "there")
    space(900_000, tmp_path)


@pytest.mark.slow
def test_standard_error_that_is_full_or_closed_stops_no_training(tmp_path: Path) -> None:
    command = [sys.executable, "-c", UNDRAWN, "sweep", *TINY, "--models", "deepnorm", "--executor", "inline", "--out"]
    with open("/dev/full", "w") as full:
        done = subprocess.run([*command, tmp_path / "a"], stderr=full, stdout=subprocess.DEVNULL, check=False)
    assert done.returncode == 0 and len(Store(tmp_path / "a").ids()) == 1
    closed = shlex.join(map(str, [*command, tmp_path / "b"])) + " 2>&- >/dev/null"
    assert subprocess.run(["sh", "-c", closed], check=False).returncode == 0 and len(Store(tmp_path / "b").ids()) == 1


@pytest.mark.slow
def test_a_directory_that_is_gone_is_no_reason_not_to_train(tmp_path: Path) -> None:
    command = shlex.join([sys.executable, "-c", UNDRAWN, "sweep", *TINY, "--models", "deepnorm", "--quiet"])
    (tmp_path / "gone").mkdir()
    script = f"cd {tmp_path}/gone && rmdir {tmp_path}/gone && {command} --out {tmp_path}/out"
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "Traceback" not in done.stderr and len(Store(tmp_path / "out").ids()) == 1


def test_an_export_to_a_closed_output_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    with pytest.raises(UsageError, match="standard output is closed"):
        export.put([], "csv", None)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("steps = 0x" + "f" * 8000, "must be a string, a number"),
        ("a." * 50_000 + "b = 1", "at most 20000"),
        ("x = 1", "has an option"),
    ],
)
def test_a_configuration_of_absurd_numbers_or_keys_is_refused_at_once(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text(text)
    with pytest.raises(UsageError, match=said):
        config.read(tmp_path / "c.toml", {"steps": "steps"})
    with pytest.raises(UsageError, match="File name too long"):
        config.read(Path("x" * 5000), {"steps": "steps"})
