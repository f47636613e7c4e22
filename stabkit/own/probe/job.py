"""What a worker does for one cell of a probe: call the user's factory, update, store what was recorded.

{"kind": "probe", "id": NAME, "factory": "package.module:function", "here": DIR, "depth": 12 | null, "seed": 0,
 "lr": 0.001, "warmup": null, "steps": 16, "blocks": "", "change": "",
 "ramped": true, "out": DIR, "fresh": false}

The user's code runs here and nowhere else. Its answer is JSON: {"folder": PROBE_ID, "reused": …}, or {"failed": in one
line, with the place in the user's file, "log": the whole traceback and all that was printed}.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import sys
import sysconfig
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from functools import cache
from pathlib import Path
from typing import Any

import torch

from stabkit.errors import StabkitError, UsageError
from stabkit.own import factory
from stabkit.own.probe import loop
from stabkit.own.probe.built_model import FACTORY, Made, fits, make
from stabkit.own.probe.changes import changed
from stabkit.own.sublayers.memory import raw
from stabkit.results.own.cell import PROBE_VERSION, ModelCell
from stabkit.results.records import jsonable
from stabkit.storage import probed
from stabkit.storage.folder import write_file
from stabkit.storage.probed import PROBE
from stabkit.storage.shelf import Shelf
from stabkit.version import __version__

OURS = Path(__file__).resolve().parents[2]
"""Where stabkit stands."""
NOT_THEIRS = (OURS, *{Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "platstdlib")})
READ = 3
"""Of what is read of a model: the same model read by another version is another result."""
NOTHING_TO_CHANGE = "this change finds nothing to change in the model"
INSTALLED = {"site-packages", "dist-packages"}
"""Folders' names."""


def probe(job: dict[str, Any], tell: Callable[[dict[str, Any]], None]) -> tuple[str, str]:
    """Do one job. Raises UsageError for what would be as wrong at any depth."""
    shelf = Shelf(PROBE, Path(job["out"]))
    begin = time.monotonic()
    with _aside(job["here"]) as printed:
        function = factory.function(FACTORY, job["factory"])
        fits(function, job["factory"], job["depth"])
        try:
            return job["id"], json.dumps(_probed(job, function, shelf, tell, begin))
        except UsageError as error:
            return job["id"], json.dumps({"failed": str(error)})
        except StabkitError:
            raise
        except BaseException as error:  # a SystemExit or a KeyboardInterrupt of theirs is their model's too
            log = probed.log(shelf, job["id"])
            write_file(log, printed() + traceback.format_exc().encode(errors="backslashreplace"))
            return job["id"], json.dumps({"failed": _placed(error, job), "log": str(log)})


def _probed(
    job: dict[str, Any],
    function: Callable[..., Any],
    shelf: Shelf[ModelCell],
    tell: Callable[[dict[str, Any]], None],
    begin: float,
) -> dict[str, Any]:
    as_is = make(function, job["factory"], job["depth"], job["seed"], job["lr"], job["warmup"])
    made = changed(as_is, job["change"]) if job["change"] else as_is
    if made is None:
        raise UsageError(NOTHING_TO_CHANGE)
    probe_id = _key(job, made)
    if job["fresh"]:
        if probe_id in shelf:
            shelf.quarantine(probe_id)  # kept: what is recorded now takes its place
    elif shelf.load_if_sound(probe_id) is not None:
        return {"folder": probe_id, "reused": True}

    last = -math.inf

    def event(step: int, loss: float) -> None:
        nonlocal last
        if time.monotonic() - last > 0.5:
            last = time.monotonic()
            tell({"id": job["id"], "step": step, "steps": job["steps"], "loss": jsonable(loss)})

    recorded = loop.record(made, job["steps"], job["blocks"], event, ramped=job["ramped"])
    asked = {name: job[name] for name in ("factory", "depth", "lr", "seed", "steps", "change")}
    result = loop.cell(made, recorded, **asked)
    where = {"stabkit": __version__, "torch": torch.__version__, "wall_seconds": round(time.monotonic() - begin, 3)}
    shelf.commit(probe_id, probed.to_files(result, where))
    return {"folder": probe_id, "reused": False}


def _key(job: dict[str, Any], made: Made) -> str:
    """The name of the folder: an edited file, another start, another torch or another package of the model's is another
    model."""
    hashed = hashlib.sha256()
    asked = {
        name: job[name] for name in ("factory", "depth", "seed", "lr", "warmup", "steps", "blocks", "change", "ramped")
    }
    steppers = "\n".join(map(repr, made.optimizers))
    words = [asked, repr(made.start), repr(made.begun), PROBE_VERSION, READ, steppers, _packages(made)]
    hashed.update(json.dumps(words).encode())
    for path in _sources():
        hashed.update(path.read_bytes())
    for name, tensor in made.model.state_dict().items():
        if isinstance(tensor, torch.Tensor):
            hashed.update(name.encode())
            hashed.update(raw(tensor))
    short = re.sub("[^A-Za-z0-9_]", "-", job["factory"].rpartition(":")[2])[:40]
    depth = "" if job["depth"] is None else f"-{job['depth']}L"
    return f"{short}{depth}-s{job['seed']}-{hashed.hexdigest()[:12]}"


def _packages(made: Made) -> list[tuple[str, str]]:
    """(package, version) of torch, and of what the model's parts and its optimisers are classes of."""
    names = {type(part).__module__.partition(".")[0] for part in (*made.model.modules(), *made.optimizers)} | {"torch"}
    return [(name, str(getattr(sys.modules.get(name), "__version__", ""))) for name in sorted(names)]


def _sources() -> list[Path]:
    """The files of the user's own that have been loaded: neither the standard library's, nor an installed package's,
    nor stabkit's."""
    files = {getattr(module, "__file__", None) for module in list(sys.modules.values())}
    paths = {_theirs(file) for file in files if isinstance(file, str) and file.endswith(".py")}
    return sorted(path for path in paths if path is not None and path.is_file())


@cache  # of two thousand modules, for each cell of a worker
def _theirs(file: str) -> Path | None:
    """Where a module's file lies, if it is the user's own."""
    path = Path(file).resolve()
    theirs = not INSTALLED & set(path.parts) and not any(root in path.parents for root in NOT_THEIRS)
    return path if theirs else None


def _placed(error: BaseException, job: dict[str, Any]) -> str:
    """An exception in one line, with the place in the user's file, or the last one outside of stabkit."""
    frames = traceback.extract_tb(error.__traceback__)
    module = sys.modules.get(job["factory"].partition(":")[0])
    file = getattr(module, "__file__", None)
    theirs = [f for f in frames if file and os.path.realpath(f.filename) == os.path.realpath(file)]
    last = (theirs or [f for f in frames if OURS not in Path(f.filename).parents] or frames)[-1]
    return f"{factory.told(error)} ({os.path.basename(last.filename)}:{last.lineno})"


@contextmanager
def _aside(here: str) -> Iterator[Callable[[], bytes]]:
    """Within, the user's directory is the current one, and all that is printed goes to what the value reads."""
    before = os.getcwd()
    kept = [os.dup(1), os.dup(2)]
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as aside:
        try:
            os.chdir(here)
            if here not in sys.path:
                sys.path.insert(0, here)
            for number in (1, 2):  # what compiled code and loggers made before write to
                os.dup2(aside.fileno(), number)

            def printed() -> bytes:
                aside.flush()
                aside.seek(0)
                return aside.read()[-1_000_000:].encode(errors="backslashreplace")

            with redirect_stdout(aside), redirect_stderr(aside):
                yield printed
        finally:
            for number, old in zip((1, 2), kept, strict=True):
                os.dup2(old, number)
                os.close(old)
            os.chdir(before)
