"""Several commands on one store: each run is trained once, whoever dies, whatever the clocks say."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stabkit.errors import UsageError
from stabkit.options import machine
from stabkit.running.shard import Shard
from stabkit.storage.store import Store
from tests.commands import UNDRAWN, stabkit

GRID = ("--depths", "1,2", "--steps", "30", "--vocab", "200", "--hidden", "16", "--ffn", "24", "--max-tokens", "128")
COMMAND = ("sweep", *GRID, "--models", "post-ln,deepnorm", "--seeds", "0,1", "--executor", "inline", "--warmup", "0")
RUNS = 8
LOGGED = """
import json, os, sys
from stabkit.running import work
trained = work._trained
def logged(job, *rest):
    word = trained(job, *rest)
    with open({log!r}, "a") as file:
        file.write(job["id"] + chr(10))
    return word
work._trained = logged
"""
"""Before a command begins: it writes down what it has trained."""
DIES = """
import signal
def killed(number, step, loss): step < 5 or os.kill(os.getpid(), signal.SIGKILL)
work._progress = lambda *rest: killed
"""


def digests(out: Path) -> dict[str, str]:
    return {run_id: Store(out).load(run_id).digest for run_id in Store(out).ids()}


def begin(out: Path, *options: str, site: Path | None = None) -> subprocess.Popen[str]:
    where = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [str(site or ""), *sys.path]))}
    return subprocess.Popen(
        [sys.executable, "-c", UNDRAWN, *COMMAND, "--out", str(out), *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=where,
    )


def site(folder: Path, text: str) -> Path:
    """A directory whose `sitecustomize` every process reads first."""
    folder.mkdir(parents=True)
    (folder / "sitecustomize.py").write_text(text)
    return folder


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What one process makes of the grid."""
    out = tmp_path_factory.mktemp("alone")
    done = stabkit(*COMMAND, "--out", out)
    assert done.returncode == 0, done.stderr
    return digests(out)


@given(st.lists(st.integers(), unique=True), st.integers(1, 9))
def test_a_shards_order_holds_every_job_once_and_its_own_part_first(names: list[int], of: int) -> None:
    jobs: list[dict[str, Any]] = [{"id": name} for name in names]
    orders = [Shard(number, of).order(jobs) for number in range(1, of + 1)]
    assert all(sorted(map(str, order)) == sorted(map(str, jobs)) for order in orders)
    parts = [order[: len(jobs[i::of])] for i, order in enumerate(orders)]
    assert sorted(str(job) for part in parts for job in part) == sorted(map(str, jobs))


@pytest.mark.parametrize("text", ["0/4", "5/4", "1", "1/0", "1/4/2", "٢/4", "-1/4", " 1/4", "1/4 ", "slurm"])
def test_what_is_no_shard_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--shard"):
        machine.shard(text, {})


def test_a_task_of_a_slurm_array_is_a_shard() -> None:
    array = {"SLURM_ARRAY_TASK_MIN": "10", "SLURM_ARRAY_TASK_COUNT": "3", "SLURM_ARRAY_TASK_STEP": "5"}
    tasks = [machine.shard("slurm", {**array, "SLURM_ARRAY_TASK_ID": str(task)}) for task in (10, 15, 20)]
    assert tasks == [Shard(1, 3), Shard(2, 3), Shard(3, 3)] and machine.shard("", array) == Shard(1, 1)


@pytest.mark.slow
def test_four_shards_of_which_one_is_killed_train_each_run_once(alone: dict[str, str], tmp_path: Path) -> None:
    """One machine's clock is an hour ahead, no `flock` works, and the second is killed while it trains."""
    log, out = tmp_path / "trained", tmp_path / "out"
    text = LOGGED.format(log=str(log))
    text += "import fcntl\ndef refused(*rest): raise OSError(37, 'No locks available')\nfcntl.flock = refused\n"
    plain = site(tmp_path / "plain", text)
    ahead = site(tmp_path / "ahead", text + "import time\nnow = time.time\ntime.time = lambda: now() + 3600.0\n")
    sites = {2: site(tmp_path / "dies", text + DIES), 3: ahead}
    shards = [begin(out, "--shard", f"{i}/4", site=sites.get(i, plain)) for i in (1, 2, 3, 4)]
    said = [shard.communicate() for shard in shards]
    assert [shard.returncode for shard in shards] == [0, -signal.SIGKILL, 0, 0], said
    assert digests(out) == alone and len(alone) == RUNS
    trained = Counter(log.read_text().split())
    assert set(trained) == set(alone) and set(trained.values()) == {1}, trained
    assert not any((out / "runs" / ".locks").iterdir()) and len(list((out / "reports").iterdir())) == 1


TUTORIAL = Path(__file__).parents[2] / "docs" / "tutorials" / "cluster.md"
SHOWN = "--depths 18,50 --seeds 0..4 --steps 250 --warmup 0"
"""The grid of the tutorial, in whose place a smaller one is run."""


def array(folder: Path) -> Path:
    """The tutorial's sbatch file, with our grid and two tasks."""
    (text,) = (block for block in re.findall(r"```bash\n(.*?)```", TUTORIAL.read_text(), re.S) if "#SBATCH" in block)
    assert SHOWN in text and "--array=0-15" in text and "stabkit sweep" in text
    text = text.replace("stabkit sweep", f"{shlex.join([sys.executable, '-c', UNDRAWN])} sweep").replace("0-15", "0-1")
    text = text.replace("4G", "500M")
    path = folder / "array.sbatch"
    path.write_text(text.replace(SHOWN, shlex.join(COMMAND[1:])))
    return path


@pytest.mark.slow
def test_a_scheduler_of_two_processes_runs_the_job_array_of_the_tutorial(alone: dict[str, str], tmp_path: Path) -> None:
    """One that only starts the file and sets its variables."""
    where = {"SLURM_ARRAY_TASK_MIN": "0", "SLURM_ARRAY_TASK_COUNT": "2", "SCRATCH": str(tmp_path)}
    tasks = [
        subprocess.Popen(
            ["bash", array(tmp_path)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **where, "SLURM_ARRAY_TASK_ID": str(task)},
        )
        for task in (0, 1)
    ]
    said = [task.communicate() for task in tasks]
    assert [task.returncode for task in tasks] == [0, 0], said
    assert digests(tmp_path / "stabkit") == alone


SLURM_HERE = Path(__file__).parent / "slurm_here.sh"
needs_slurm = pytest.mark.skipif(
    shutil.which("slurmctld") is None or os.geteuid() != 0, reason="needs root and Debian's slurmctld, slurmd and munge"
)


@needs_slurm
@pytest.mark.long
def test_a_real_slurm_runs_the_job_array_of_the_tutorial(alone: dict[str, str], tmp_path: Path) -> None:
    """One node, this machine; digests equal to one process's."""
    line = f"cd {tmp_path} && SCRATCH={tmp_path} sbatch --wait {array(tmp_path)}"
    done = subprocess.run(["bash", SLURM_HERE, tmp_path / "slurm", "bash", "-c", line], capture_output=True, text=True)
    logs = [path.read_text() for path in tmp_path.glob("*.log")]
    assert done.returncode == 0, (done.stdout, done.stderr, logs)
    assert digests(tmp_path / "stabkit") == alone
