"""What a worker does for one cell of a probe: call the user's factory, update, store what was recorded.

{"kind": "probe", "id": NAME, "factory": "package.module:function", "here": DIR, "depth": 12 | null, "width": 64 | null,
 "seed": 0, "lr": 0.001, "warmup": null, "steps": 16, "blocks": "", "change": "", "ramped": true,
 "train": "undecided", "until": 1796000000.0, "seconds": 120.0, "times": 1.0, "out": DIR, "fresh": false}

`train`: which models are trained on after their probe: `no` model, one that its forecast leaves `undecided`, a changed
one that is `passing` its forecast, `always`; at most until the clock says `until`, `seconds` after the command began.

The user's code runs here and nowhere else. Its answer is JSON: {"folder": PROBE_ID, "reused": …}, or {"failed": in one
line, with the place in the user's file, "log": the whole traceback and all that was printed}.

What every job does alike in which a user's code runs: their folder is the current one, what they print goes aside, what
they raise is one line with its place; and which of their files a result follows from.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from dataclasses import asdict, replace
from functools import wraps
from pathlib import Path
from typing import Any

import torch

from stabkit.errors import Interrupted, StabkitError, UsageError
from stabkit.own import factory
from stabkit.own.probe import followed, loop, onward
from stabkit.own.probe.built_model import FACTORY, BuiltModel, fits, make, seeded
from stabkit.own.probe.changes import changed
from stabkit.results.own import looks
from stabkit.results.own.cell import PROBE_VERSION, ModelCell
from stabkit.results.own.cure import ALWAYS, SIDE_BY_SIDE
from stabkit.results.own.decided import decided, known
from stabkit.results.own.measured import UPDATES
from stabkit.results.records import jsonable
from stabkit.storage import probed
from stabkit.storage.folder import write_file
from stabkit.storage.jobs import Event, Job, asked
from stabkit.storage.locks import Locked
from stabkit.storage.probed import PROBE
from stabkit.storage.shelf import Shelf
from stabkit.version import __version__

READ = 7
"""Of what is read of a model: the same model read by another version is another result."""
FIRST_CALL = "each depth here is its first call in a process of its own"
OTHER_WEIGHTS = f"the factory gives other weights when it is called again with the same seed: {FIRST_CALL}"
NOTHING_TO_CHANGE, AS_USUAL = "does not apply to this model", "left out: the model has it already"


def probe(job: Job, tell: Callable[[Event], None]) -> tuple[str, str]:
    """Do one job. Raises UsageError for what would be as wrong at any depth."""
    shelf = Shelf(PROBE, Path(job["out"]))
    begin = time.monotonic()
    return answered(job, shelf.log(job["id"]), lambda function: _probed(job, function, shelf, tell, begin))


def _probed(
    job: Job,
    function: Callable[..., Any],
    shelf: Shelf[ModelCell],
    tell: Callable[[Event], None],
    begin: float,
) -> dict[str, Any]:
    at = job["depth"], job["seed"], job["lr"], job["warmup"], job["width"]
    with unforked():  # the loss was asked for, too
        as_is = make(function, job["factory"], *at, times=job["times"])
    start = followed.weights(as_is.model)
    made = changed(as_is, job["change"]) if job["change"] else as_is
    if made is None:
        raise UsageError(AS_USUAL if job["change"] in ALWAYS else NOTHING_TO_CHANGE)
    made, last = followed.counted(made)
    names = ("factory", "depth", "width", "seed", "lr", "times", "warmup", "steps", "blocks", "change", "ramped")
    probe_id = key(job, made, [asked(job, *names, "train"), PROBE_VERSION, READ])
    with shelf.hold(probe_id, job.get("over", "")):
        stored = None if job["fresh"] else shelf.load_if_sound(probe_id)
        enough = stored is not None and (not stored.facts.within or stored.facts.within >= job["seconds"])
        if enough and followed.same(shelf.environment(probe_id), made):
            return {"folder": probe_id, "reused": True}
        if probe_id in shelf:
            shelf.quarantine(probe_id)  # kept: what is recorded now takes its place
        recorded = loop.record(made, job["steps"], job["blocks"], reporter(job, tell), ramped=job["ramped"])
        result = loop.cell(made, recorded, **asked(job, "factory", "depth", "lr", "seed", "steps", "change", "times"))
        if goes_on(job["train"], result):
            if job["train"] == "undecided" and time.time() < job["until"]:
                tell({"id": job["id"], "decision": asdict(decided(result))})
            updates = SIDE_BY_SIDE * (job["train"] in ("passing", "always"))
            told = reporter({**job, "steps": updates or looks.LAST}, tell)
            result = onward.trained(made, result, told, updates=updates, until=job["until"], within=job["seconds"])
        beside = followed.beside(made, last(), shelf.out)
        if not job["change"] and (note := once(function, job, made, start)):
            result = replace(result, facts=replace(result.facts, notes=(*result.facts.notes, note)))
        shelf.commit(probe_id, probed.to_files(result, beside | where(begin)))
    return {"folder": probe_id, "reused": False}


def where(begin: float) -> dict[str, Any]:
    """Where a job was done, and how long it took."""
    return {"stabkit": __version__, "torch": torch.__version__, "wall_seconds": round(time.monotonic() - begin, 3)}


def once(function: Callable[..., Any], job: Job, made: BuiltModel, before: str) -> str:
    """A sentence about a factory that gives other weights when it is called again in the same process; "" for others.
    `before`: the digest of those that it gave (`followed.weights`). The model's gradients and steps are let go of."""
    made.model.zero_grad(set_to_none=True)
    for optimizer in made.optimizers:
        optimizer.state.clear()
    try:
        seeded(job["seed"])
        again = function(*(size for size in (job["depth"], job.get("width")) if size is not None))
        model, *_ = again if isinstance(again, tuple) else (again,)
        return "" if followed.weights(model) == before else OTHER_WEIGHTS
    except Exception as error:  # the user's own
        return f"the factory raises {factory.one_line(error)} when it is called again: {FIRST_CALL}"


def goes_on(train: str, cell: ModelCell) -> bool:
    """Whether a cell is trained on: one that is `undecided`, a change with which it is `passing`, or `always`."""
    if train == "no" or cell.facts.steps != UPDATES or known(cell) is None or cell.facts.broke is not None:
        return False
    said = decided(cell)
    if train == "undecided":
        return not looks.stops(said)
    return train == "always" or said.probability is None or said.probability >= 0.5


def load(job: Job) -> None:
    """Import the factory's module, as the job will find it."""
    followed.begin()
    with aside(job["here"]):
        seeded(0)  # what is drawn on import is drawn alike in every worker
        factory.imports(factory.function(FACTORY, job["factory"]))
    followed.imported()
    followed.warm()


def answered(job: Job, log: Path, work: Callable[[Callable[..., Any]], dict[str, Any]]) -> tuple[str, str]:
    """(id, JSON) of a job: what `work` says of the factory's function, or {"failed": in one line, with the place in the
    user's file, "log": the whole traceback and all that was printed}. Raises UsageError for what would be as wrong at
    any size, Locked where another command is at it."""
    followed.begin()
    with aside(job["here"]) as printed:
        with unforked():
            seeded(0)
            function = factory.function(FACTORY, job["factory"])
        fits(function, job["factory"], job["depth"], job.get("width"))
        try:
            return job["id"], json.dumps(work(_unforked(function)))
        except UsageError as error:
            return job["id"], json.dumps({"failed": str(error)})
        except (StabkitError, Locked, Interrupted):
            raise
        except BaseException as error:  # a SystemExit or a KeyboardInterrupt of theirs is their model's too
            write_file(log, printed() + traceback.format_exc().encode(errors="backslashreplace"))
            return job["id"], json.dumps({"failed": placed(error, job["factory"]), "log": str(log)})
        finally:
            followed.forget()


def reporter(job: Job, tell: Callable[[Event], None]) -> Callable[[int, float], None]:
    """Tells of a step and its loss, at most twice a second."""
    last = -math.inf

    def report(step: int, loss: float) -> None:
        nonlocal last
        if time.monotonic() - last > 0.5:
            last = time.monotonic()
            tell({"id": job["id"], "step": step, "steps": job["steps"], "loss": jsonable(loss)})

    return report


def key(job: Job, made: BuiltModel, words: list[Any]) -> str:
    """The name of what is stored: an edited file, another start, another torch or another package of the model's is
    another model. `words`: what else it follows from."""
    hashed = hashlib.sha256()
    steppers = "\n".join(map(repr, made.optimizers))
    hashed.update(json.dumps([*words, repr(made.start), repr(made.begun), steppers, _packages(made)]).encode())
    for path in followed.sources():
        hashed.update(path.read_bytes())
    hashed.update(followed.weights(made.model).encode())
    short = re.sub("[^A-Za-z0-9_]", "-", job["factory"].rpartition(":")[2])[:40]
    depth = "" if job["depth"] is None else f"-{job['depth']}L"
    width = f"-d{job['width']}" if job.get("width") else ""
    return f"{short}{depth}{width}-s{job['seed']}-{hashed.hexdigest()[:12]}"


def _packages(made: BuiltModel) -> list[tuple[str, str]]:
    """(package, version) of torch, and of what the model's parts and its optimisers are classes of."""
    names = {type(part).__module__.partition(".")[0] for part in (*made.model.modules(), *made.optimizers)} | {"torch"}
    return [(name, str(getattr(sys.modules.get(name), "__version__", ""))) for name in sorted(names)]


def placed(error: BaseException, name: str) -> str:
    """An exception in one line, with the place in the user's file, or the last one outside of stabkit."""
    frames = traceback.extract_tb(error.__traceback__)
    module = sys.modules.get(factory.module_of(name))
    file = getattr(module, "__file__", None)
    theirs = [f for f in frames if file and os.path.realpath(f.filename) == os.path.realpath(file)]
    last = (theirs or [f for f in frames if followed.OURS not in Path(f.filename).parents] or frames)[-1]
    return f"{factory.one_line(error)} ({os.path.basename(last.filename)}:{last.lineno})"


@contextmanager
def unforked() -> Iterator[None]:
    """Within, a user's code may fork; whatever comes out of it in another process ends there: one of us answers, locks
    and writes."""
    process = os.getpid()
    try:
        yield
    finally:
        if os.getpid() != process:
            os._exit(0)


def _unforked(function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def called(*given: Any, **named: Any) -> Any:
        with unforked():
            return function(*given, **named)

    return called


def forked(work: Callable[[], float]) -> float:
    """A number that a user's code comes to, worked out in a fork of this process, which is left as it is."""
    ours, theirs = os.pipe()
    pid = os.fork()
    if not pid:
        with suppress(BaseException):
            os.write(theirs, repr(work()).encode())
        os._exit(0)
    os.close(theirs)
    with open(ours, "rb") as file:
        answer = file.read()
    os.waitpid(pid, 0)
    return float(answer) if answer else work()  # which raises what it raised there


@contextmanager
def aside(here: str) -> Iterator[Callable[[], bytes]]:
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
