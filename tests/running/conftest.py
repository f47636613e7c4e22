"""One Dask cluster a session."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.commands import wait_for

QUIET = {"DASK_DISTRIBUTED__LOGGING__DISTRIBUTED": "error", "OMP_NUM_THREADS": "1"}


class Cluster:
    """A scheduler and its workers, each a process of its own, as a user would start them."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.file = folder, folder / "scheduler.json"
        self.workers: list[subprocess.Popen[bytes]] = []
        self.scheduler: subprocess.Popen[bytes] | None = None
        self.heal()

    def heal(self) -> None:
        """Start what is not there: a test may have killed it."""
        if self.scheduler is None or self.scheduler.poll() is not None:
            self.close()
            self.file.unlink(missing_ok=True)
            self.scheduler = self._start(
                "scheduler", "--host", "127.0.0.1", "--port", "0", "--dashboard-address", "127.0.0.1:0"
            )
            wait_for(self.file.exists)
        self.workers = [worker for worker in self.workers if worker.poll() is None]
        while len(self.workers) < 2:
            options = ("--nthreads", "1", "--no-dashboard", "--host", "127.0.0.1", "--no-nanny")
            self.workers.append(self._start("worker", *options))

    def _start(self, what: str, *options: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-m", "dask", what, "--scheduler-file", str(self.file), *options],
            cwd=self.folder,
            env={**os.environ, **QUIET, "PYTHONPATH": str(Path(__file__).parents[2])},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    @property
    def address(self) -> str:
        return str(json.loads(self.file.read_text())["address"])

    def close(self) -> None:
        for process in (*self.workers, self.scheduler):
            if process is not None:
                process.kill()
                process.wait()


@pytest.fixture(autouse=True)
def _unrendered(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is tested here is what runs leave, not the page of them."""
    monkeypatch.setattr("stabkit.report.html.render", lambda *runs, **more: "<html></html>")


@pytest.fixture(scope="session")
def _cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    pytest.importorskip("distributed")
    made = Cluster(tmp_path_factory.mktemp("cluster"))
    yield made
    made.close()


@pytest.fixture
def cluster(_cluster: Cluster) -> Cluster:
    """A scheduler and two workers, all of them there when the test begins."""
    _cluster.heal()
    return _cluster
