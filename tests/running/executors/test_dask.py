"""A real Dask scheduler and two real workers on loopback."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from stabkit.running.executors import EXECUTORS, ExecutorOptions, Lost, dask, relayed
from stabkit.storage.store import Store
from tests.commands import TINY, stabkit, wait_for
from tests.conftest import tiny
from tests.running.conftest import Cluster
from tests.running.executors.test_executors import jobs, nothing

pytest.importorskip("distributed")


@pytest.mark.slow
def test_the_cluster_returns_what_inline_returns_and_a_killed_worker_loses_nothing(
    cluster: Cluster, tmp_path: Path
) -> None:
    specs = [tiny("post-ln", seed=seed, steps=300) for seed in range(4)]
    list(EXECUTORS["inline"](jobs(tmp_path / "inline", specs), nothing, ExecutorOptions()))
    events: list[object] = []

    def tell(event: dict[str, object]) -> None:
        if not events:  # mid-run: one of the two goes, with the child it looks after
            cluster.workers[0].kill()
        events.append(event)

    answers = EXECUTORS["dask"](jobs(tmp_path / "dask", specs), tell, ExecutorOptions(scheduler=cluster.address))
    ends = {job["spec"]["seed"]: answer for job, answer in answers}
    assert set(ends) == {0, 1, 2, 3} and not any(isinstance(end, Lost) for end in ends.values()), ends
    digests = [
        {run_id: Store(tmp_path / each).load(run_id).digest for run_id in Store(tmp_path / each).ids()}
        for each in ("inline", "dask")
    ]
    assert digests[0] == digests[1] and len(digests[0]) == 4 and events


class Ended:
    """A task that has ended on a worker of that vendor."""

    status = "finished"

    def __init__(self, vendor: str) -> None:
        self.vendor = vendor

    def result(self, timeout: float) -> dict[str, str]:
        return {"done": "early", "vendor": self.vendor}


class Answered:
    """A client whose tasks have all ended, each on a worker of another vendor."""

    status = "running"

    def __init__(self, vendors: list[str]) -> None:
        self.vendors = vendors

    def submit(self, *args: object, **kwargs: object) -> Ended:
        return Ended(self.vendors.pop())

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *args, **kwargs: None


@pytest.mark.parametrize(
    ("vendors", "warned"),
    [
        (["AuthenticAMD"] * 3, []),
        (["AuthenticAMD", "", "AuthenticAMD"], []),
        (
            ["AuthenticAMD", "GenuineIntel", "AuthenticAMD", "GenuineIntel"],
            [f"workers of AuthenticAMD and GenuineIntel: {relayed.MIXED}"],
        ),
    ],
)
def test_workers_of_several_vendors_are_warned_of_once(vendors, warned, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(dask, "_client", lambda address: Answered(list(vendors)))
    specs = [tiny("post-ln", seed=seed) for seed in range(len(vendors))]
    events: list[dict[str, str]] = []
    assert len(list(dask.map(jobs(tmp_path, specs), events.append, ExecutorOptions(scheduler="tcp://a:1")))) == len(
        vendors
    )
    assert [event["warning"] for event in events] == warned


@pytest.mark.slow
def test_the_scheduler_killed_and_the_command_run_again(cluster: Cluster, tmp_path: Path) -> None:
    out = tmp_path / "out"
    command = ["sweep", *TINY[:2], "--steps", "80", *TINY[4:], "--models", "post-ln,deepnorm", "--checkpoint-every"]
    command += ["10", "--out", out, "--quiet"]
    dead = subprocess.Popen(
        [sys.executable, "-m", "stabkit", *map(str, command), "--executor", "dask", "--scheduler", cluster.address],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_for(lambda: len(list((out / "runs" / ".partial").glob("*/checkpoint.npz"))) > 0)
    cluster.scheduler.kill()
    _, said = dead.communicate(timeout=60)
    assert dead.returncode == 3 and "has disappeared" in said and "Traceback" not in said
    again = stabkit(*command)
    assert again.returncode == 0, again.stderr
    whole = stabkit(*command[:-3], "--out", tmp_path / "whole", "--quiet")
    assert whole.returncode == 0
    ids = Store(out).ids()
    assert len(ids) == 2 and [Store(out).load(i).digest for i in ids] == [
        Store(tmp_path / "whole").load(i).digest for i in ids
    ]


def test_an_unset_or_malformed_address_is_refused_at_once(tmp_path: Path) -> None:
    for options in ([], ["--scheduler", "localhost"], ["--scheduler", "tcp://x:y"]):
        done = stabkit("sweep", *TINY, "--executor", "dask", *options, "--out", tmp_path / "none")
        assert done.returncode == 2 and "tcp://host:8786" in done.stderr and not (tmp_path / "none").exists()
    done = stabkit("sweep", *TINY, "--scheduler", "tcp://x:1", "--out", tmp_path / "none")
    assert done.returncode == 2 and "--executor dask" in done.stderr


def test_a_dead_address_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dask, "ANSWER_SECONDS", 1)
    done = stabkit("sweep", *TINY, "--executor", "dask", "--scheduler", "tcp://127.0.0.1:9", "--out", tmp_path)
    assert done.returncode == 2 and "no Dask scheduler answers" in done.stderr and "Traceback" not in done.stderr


def test_a_listener_that_is_not_dask_is_an_error(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]

        def answer() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = server.accept()
                    with connection:
                        connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n" + b"x" * 64)

        listener = threading.Thread(target=answer, daemon=True)
        listener.start()
        address = f"tcp://127.0.0.1:{port}"
        done = stabkit("sweep", *TINY, "--executor", "dask", "--scheduler", address, "--out", tmp_path)
        assert done.returncode == 2 and "no Dask scheduler answers" in done.stderr and "Traceback" not in done.stderr
        server.shutdown(socket.SHUT_RDWR)
        listener.join(5)


def test_a_task_that_does_not_see_the_store_says_so(tmp_path: Path) -> None:
    (job,) = jobs(tmp_path, [tiny()])
    (tmp_path / "runs").mkdir()
    said = relayed.supervise(job, nothing, None, "a-lock-of-nobody", "node7", lambda: True)
    lost = relayed.answer(said)
    assert isinstance(lost, Lost) and "node7 does not see" in lost.reason and lost.error is not None


@pytest.mark.slow
def test_workers_that_do_not_share_the_storage_are_named(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relayed, "runs", lambda job: tmp_path / "as seen from here")
    answers = list(
        dask.map(jobs(tmp_path / "elsewhere", [tiny()]), nothing, ExecutorOptions(scheduler=cluster.address))
    )
    lost = answers[0][1]
    assert isinstance(lost, Lost) and "storage that every worker shares" in lost.reason and lost.error is not None


@pytest.mark.slow
def test_an_interrupted_command_leaves_no_run_behind_on_the_cluster(cluster: Cluster, tmp_path: Path) -> None:
    answers = dask.map(
        jobs(tmp_path / "out", [tiny(steps=1_000_000), tiny()]), nothing, ExecutorOptions(scheduler=cluster.address)
    )
    assert next(answers)[1] == "early"
    answers.close()

    def watched() -> list[str]:
        found = []
        for worker in cluster.workers:
            here = Path(f"/proc/{worker.pid}/task")
            found += [pid for task in here.glob("*/children") for pid in task.read_text().split()]
        return found

    wait_for(lambda: not watched())
