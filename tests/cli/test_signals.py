"""A signal is a signal wherever it comes: its exit code, the command that continues, nothing half-written."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from stabkit.cli.signals import Signals
from stabkit.errors import Interrupted
from tests.commands import TINY, stabkit

pytestmark = pytest.mark.usefixtures("undrawn")
ROOT = Path(__file__).parents[2]
PLACES = {
    "reading": ("stabkit.results.records", "_array", 3),
    "reading a manifest": ("stabkit.storage.folder", "read", 2),
    "locking": ("stabkit.storage.locks", "_turns", 1),
    "planning": ("stabkit.running.plan", "plan", 1),
    "waiting for workers": ("stabkit.running.executors.processes", "_patience", 2),
    "writing": ("stabkit.storage.folder", "_sync", 1),
    "rendering": ("stabkit.report.html", "render", 1),
    "drawing": ("stabkit.report.cards", "_folded", 2),
}
"""{where: (module, function, at which of its calls the signal comes)}."""
SENT = """
import importlib, os, signal, sys
module, name, at, number = {place!r}[0], {place!r}[1], {place!r}[2], {number}
held = importlib.import_module(module)
function, calls = getattr(held, name), 0
def sent(*args, **kwargs):
    global calls
    calls += 1
    if calls == at:
        os.kill(os.getpid(), number)
        sum(range(1000))  # the handler runs between two instructions
    return function(*args, **kwargs)
setattr(held, name, sent)
sys.argv = ["stabkit", *{command!r}]
from stabkit.cli.entry import main
main()
"""


@pytest.fixture(scope="module")
def half(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store that holds one of two runs."""
    out = tmp_path_factory.mktemp("half")
    done = stabkit("sweep", *TINY, "--models", "post-ln", "--out", out, "--quiet")
    assert done.returncode == 0, done.stderr
    return out


@pytest.mark.slow
@pytest.mark.parametrize("where", PLACES)
def test_a_signal_ends_the_command_wherever_it_comes(where: str, half: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    subprocess.run(["cp", "-r", half, out], check=True)
    command = ["sweep", *map(str, TINY), "--models", "post-ln,deepnorm", "--out", str(out), "--workers", "1"]
    code = SENT.format(place=PLACES[where], number=int(signal.SIGTERM), command=command)
    begin = time.monotonic()
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, timeout=120)
    assert done.returncode == 128 + signal.SIGTERM, (where, done.stdout, done.stderr)
    assert "continue with: stabkit sweep" in done.stderr and "Traceback" not in done.stderr
    assert "corrupt" not in done.stderr and time.monotonic() - begin < 60
    again = stabkit(*command)
    assert again.returncode == 0 and "corrupt" not in again.stderr, again.stderr


def test_a_signal_that_somebody_swallows_comes_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stabkit.cli.signals.CLEANING", 0.3)
    began = time.monotonic()
    with pytest.raises(Interrupted) as ended, Signals("stabkit sweep"):
        try:
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(5)
        except BaseException:
            os.kill(os.getpid(), signal.SIGINT)  # while somebody cleans up: ignored
            time.sleep(0.1)
        time.sleep(5)
    assert ended.value.exit_code == 143 and 0.2 < time.monotonic() - began < 3


def test_a_signal_swallowed_by_a_finaliser_comes_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stabkit.cli.signals.CLEANING", 0.3)
    monkeypatch.setattr(sys, "unraisablehook", lambda told: None)

    class Finalised:
        def __del__(self) -> None:
            os.kill(os.getpid(), signal.SIGTERM)
            sum(range(1000))

    begin = time.monotonic()
    with pytest.raises(Interrupted) as ended, Signals("stabkit sweep"):
        Finalised()
        time.sleep(5)
    assert ended.value.exit_code == 143 and 0.2 < time.monotonic() - begin < 3


def test_no_code_that_looks_for_faults_takes_a_signal_for_one() -> None:
    assert not issubclass(Interrupted, Exception)
    with pytest.raises(Interrupted):
        try:
            raise Interrupted(15, "interrupted")
        except Exception as error:
            raise AssertionError from error


PROBED = ("probe", "tests.own.probe_models:pre_ln", "--depths", "2,4", "--seeds", "0", "--steps", "2", "--workers", "1")


@pytest.mark.slow
@pytest.mark.parametrize(
    "place", [("stabkit.running.executors.processes", "_patience", 3), ("stabkit.results.own.judged", "judged", 1)]
)
def test_a_signal_ends_a_probe(place: tuple[str, str, int], tmp_path: Path) -> None:
    code = SENT.format(place=place, number=int(signal.SIGINT), command=[*PROBED, "--out", str(tmp_path)])
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, timeout=120)
    assert done.returncode == 130 and "continue with: stabkit probe" in done.stderr, done.stderr


def test_a_watch_lets_a_signal_of_the_training_through(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    import stabkit as library
    from stabkit.own.watch.recording import Recording
    from tests.own import probe_models

    class Ended(BaseException):
        """As a trainer's handler raises."""

    model = probe_models.Stack(2)
    optimizer = torch.optim.AdamW(model.parameters())
    watch = library.watch(model, optimizer, probe=torch.zeros(probe_models.SHAPE, dtype=torch.long), out=tmp_path)

    def sent(*rest: object) -> None:
        raise Ended

    monkeypatch.setattr(Recording, "after", sent)
    model(torch.zeros(probe_models.SHAPE, dtype=torch.long)).sum().backward()
    with pytest.raises(Ended):
        optimizer.step()
    watch.close()
