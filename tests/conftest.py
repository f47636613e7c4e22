"""Shared by all tests: one torch thread, tiny specs, and what a test may need from the machine."""

from __future__ import annotations

import atexit
import fcntl
import gc
import hashlib
import json
import os
import pickle
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import pandas as pd
import pytest
import torch
from hypothesis import settings

from stabkit.figures.picture import Picture
from stabkit.report import cards
from stabkit.running import executors, pace, trials, work
from stabkit.spec import ModelConfig, RunSpec, TaskConfig, TrainConfig, from_json
from stabkit.tasks.synthetic import Synthetic
from stabkit.training import train
from tests.commands import TINY, process

torch.set_num_threads(1)
for number, usual in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(number) is signal.SIG_IGN:  # of a run under nohup: what is ignored stays so in a command
        signal.signal(number, usual)
for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):  # of processes that tests start: every core has a test already
    os.environ.setdefault(variable, "1")
if "PYTEST_XDIST_WORKER" not in os.environ:  # whose processes have it from the first
    os.environ.setdefault("MPLCONFIGDIR", str(Path.home() / ".cache" / "matplotlib"))
    os.environ["XDG_CACHE_HOME"] = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, os.environ["XDG_CACHE_HOME"], ignore_errors=True)
    pace.keep(1.0)  # every estimate is the reference machine's, and no dry run times this one
gc.set_threshold(100_000, 10, 10)  # as in a worker (`work.prepare`)
Case = TypeVar("Case")
FULL = os.environ.get("STABKIT_EXAMPLES") == "full"
"""Whether properties are tried on all their examples (CI), or on a fifth of them."""
# the same examples each time; STABKIT_EXPLORE=1 looks for others
settings.register_profile("suite", derandomize=True, deadline=None, max_examples=40 if FULL else 20)
if not os.environ.get("STABKIT_EXPLORE"):
    settings.load_profile("suite")


def examples(count: int, **more: object) -> settings:
    """Settings of a property whose examples cost much: in CI half of `count` are tried, the same each time, elsewhere a
    tenth; all with STABKIT_EXPLORE, which looks for others."""
    tried = count if os.environ.get("STABKIT_EXPLORE") else count // 2 if FULL else max(3, count // 10)
    return settings(max_examples=tried, deadline=None, **more)  # type: ignore[arg-type]


def some(cases: Iterable[Case], of: int = 3) -> list[Case]:
    """Cases of one kind, each of which costs a second or draws a page: all of them in CI, locally one of so many."""
    return list(cases) if FULL else list(cases)[::of]


BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
MULTI30K = Path(os.environ.get("STABKIT_MULTI30K", Path(__file__).parents[2] / "shared" / "data" / "multi30k"))


def need(what: str, there: bool, where: str) -> None:
    """Skip a test whose means are missing; fail it where STABKIT_REQUIRE names them (CI)."""
    if there:
        return
    if what in os.environ.get("STABKIT_REQUIRE", "").split(","):
        pytest.fail(f"{what} is required here and missing: {where}")
    pytest.skip(f"needs {what}: {where}")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--method", default="", help="./my.py:function: hold this method to methods/test_contract.py")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Slow tests first: begun last, one of them keeps a single core busy when all else is done."""
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)


@pytest.fixture(scope="session")
def once(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, Callable[[Path], None]], Path]:
    """`once(name, make)`: a folder that `make` filled, once for all test processes of this session. It is read only:
    copy what a test changes."""
    base = tmp_path_factory.getbasetemp()
    root = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "shared"
    root.mkdir(exist_ok=True)

    def made(name: str, make: Callable[[Path], None]) -> Path:
        with open(root / f"{name}.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not (root / f"{name}.made").exists():
                shutil.rmtree(root / name, ignore_errors=True)
                (root / name).mkdir()
                make(root / name)
                (root / f"{name}.made").touch()
        return root / name

    return made


@pytest.fixture(scope="session", autouse=True)
def drawings(once: Callable[[str, Callable[[Path], None]], Path]) -> Iterator[Callable[..., object]]:
    """A frame that was drawn for a page is not drawn again in this session: a drawing is a function of its frame.
    Yields the function that draws (`test_equal_runs_make_equal_pages` draws anew)."""
    folder = once("drawings", lambda folder: None)
    real = cards.drawing

    def kept(figure: Picture[Any], frame: pd.DataFrame, name: str) -> object:
        content = [
            figure.name,
            name,
            list(frame.columns),
            [frame[c].tolist() for c in frame.columns],
            frame.attrs,
        ]
        file = folder / hashlib.sha256(pickle.dumps(content)).hexdigest()
        if not file.exists():
            aside = folder / f"{file.name}.{os.getpid()}"
            aside.write_bytes(pickle.dumps(real(figure, frame, name)))
            aside.rename(file)
        return pickle.loads(file.read_bytes())

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cards, "drawing", kept)
        yield real


@pytest.fixture(scope="session", autouse=True)
def _here() -> Iterator[Callable[..., object]]:
    """Models of one's own are probed and trained in the test's process, as runs are (`commands.INLINE`)."""
    real = executors.several
    with pytest.MonkeyPatch.context() as patch:
        for module in (executors, trials):
            patch.setattr(module, "several", lambda name, where: real("inline", where))
        yield real


@pytest.fixture
def workers(monkeypatch: pytest.MonkeyPatch, _here: Callable[..., object]) -> None:
    """Models of one's own in worker processes, as a user's are."""
    for module in (executors, trials):
        monkeypatch.setattr(module, "several", _here)


@pytest.fixture(scope="module")  # while it is open an event loop runs in this thread
def browser() -> Iterator[Any]:
    need("browser", BROWSER is not None, "no Chromium on this machine: the page was not opened in one")
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with sync_api.sync_playwright() as playwright:
        flags = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
        chromium = playwright.chromium.launch(executable_path=BROWSER, args=flags)
        yield chromium
        chromium.close()


def _sweep(folder: Path) -> None:
    done = process("sweep", *TINY, "--out", folder / "store", "--json", "--quiet", drawn=True)
    assert done.returncode == 0, done.stderr
    (folder / "first.json").write_text(done.stdout)


@pytest.fixture(scope="session")
def swept(once: Callable[[str, Callable[[Path], None]], Path]) -> Path:
    """What a true `stabkit sweep` of the four methods at 2L-2L left: `store`, and its --json document, `first.json`."""
    return once("swept", _sweep)


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> Callable[..., object]:
    """Pages without their pictures, for tests that look at something else: drawing is most of what a page costs. Gives
    what would have drawn them."""
    drawing = cards.drawing
    monkeypatch.setattr(cards, "drawing", lambda figure, frame, name: ('<svg viewBox="0 0 1 1"></svg>', [], ""))
    return drawing


@pytest.fixture
def drawn(undrawn: Callable[..., object], monkeypatch: pytest.MonkeyPatch) -> None:
    """In a file of tests whose pages are undrawn, one that has its pictures."""
    monkeypatch.setattr(cards, "drawing", undrawn)


@pytest.fixture(scope="session")
def multi30k() -> Path:
    need("multi30k", (MULTI30K / "train.de.gz").is_file(), f"{MULTI30K} (set STABKIT_MULTI30K)")
    return MULTI30K


def tiny(method: str = "deepnorm", layers: int = 2, steps: int = 3, **changes: object) -> RunSpec:
    """A run of a second: 2 layers of width 16 on a vocabulary of 200."""
    model = ModelConfig(encoder_layers=layers, decoder_layers=layers, hidden=16, ffn=24, heads=2)
    train = {k: changes.pop(k) for k in list(changes) if k in TrainConfig.__slots__}
    return RunSpec(
        method=method,
        model=model,
        train=TrainConfig(steps=steps, max_tokens=128, **train),  # type: ignore[arg-type]
        task=TaskConfig(vocab=200),
        **changes,  # type: ignore[arg-type]
    )


def job(spec: RunSpec, out: Path | str = "o", **more: Any) -> Any:
    """Its run as work."""
    base = {"kind": "run", "id": spec.run_id, "out": str(out), "spec": spec.to_json(), "corpus": None, "device": "cpu"}
    return base | more


@cache
def _trained(run_id: str, spec_json: str) -> dict[str, bytes]:
    spec = from_json(json.loads(spec_json))
    result = train.run(spec, Synthetic(vocab=spec.task.vocab, max_tokens=spec.train.max_tokens))
    return work.files(spec, result, {})


def files_of(spec: RunSpec, **outcome: object) -> dict[str, bytes]:
    """What the folder of this run holds, really trained; parts of its outcome replaced."""
    files = dict(_trained(spec.run_id, json.dumps(spec.to_json())))
    files["outcome.json"] = json.dumps({**json.loads(files["outcome.json"]), **outcome}).encode()
    return files
