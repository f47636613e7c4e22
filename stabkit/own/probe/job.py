"""What a worker does for one cell of a probe: call the user's factory, update, put what was recorded on the shelf.

{"kind": "probe", "id": NAME, "factory": "package.module:function", "here": DIR, "depth": 12 | null, "seed": 0,
 "lr": 0.001, "steps": 8, "blocks": "", "out": DIR, "fresh": false}

The user's code runs here and nowhere else. Its answer is JSON: {"folder": PROBE_ID, "reused": …}, or {"failed": in one
line, with the place in the user's file, "log": the whole traceback and all that was printed}.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import os
import re
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import torch

from stabkit.errors import StabkitError
from stabkit.own import factory
from stabkit.own.probe import loop
from stabkit.own.probe.made import FACTORY, Made, make
from stabkit.results.own.cell import PROBE_VERSION, Cell, Facts, Sublayer
from stabkit.storage.folder import write_file
from stabkit.storage.probed import ProbeShelf
from stabkit.version import __version__


def probe(job: dict[str, Any], tell: Callable[[dict[str, Any]], None]) -> tuple[str, str]:
    """Do one job. Raises UsageError for what would be as wrong at any depth."""
    shelf = ProbeShelf(Path(job["out"]))
    begin = time.monotonic()
    with _aside(job["here"]) as printed:
        try:
            return job["id"], json.dumps(_probed(job, shelf, tell, begin))
        except StabkitError:
            raise
        except (Exception, SystemExit) as error:
            log = shelf.log(job["id"])
            write_file(log, printed() + traceback.format_exc().encode())
            return job["id"], json.dumps({"failed": _placed(error, job), "log": str(log)})


def _probed(
    job: dict[str, Any], shelf: ProbeShelf, tell: Callable[[dict[str, Any]], None], begin: float
) -> dict[str, Any]:
    function = factory.function(FACTORY, job["factory"])
    made = make(function, job["factory"], job["depth"], job["seed"], job["lr"])
    probe_id = _key(job, function, made)
    if job["fresh"]:
        shelf.remove(probe_id)
    elif shelf.sound(probe_id):
        return {"folder": probe_id, "reused": True}

    def event(step: int, loss: float) -> None:
        tell({"id": job["id"], "step": step, "steps": job["steps"], "loss": loss if loss == loss else "nan"})

    start = made.start
    found = loop.probe(made, job["steps"], job["blocks"], event)
    facts = Facts(
        factory=job["factory"],
        depth=job["depth"],
        lr=job["lr"],
        seed=job["seed"],
        steps=job["steps"],
        sublayers=tuple(
            Sublayer(stack=own.stack, layer=own.layer, kind=own.kind, parameters=len(own.parameters))
            for own in found.stream.sublayers
        ),
        how=found.stream.how,
        notes=(*made.notes, *found.stream.notes),
        model=type(made.model).__name__,
        parameters=sum(p.numel() for p in made.model.parameters()),
        width=found.width,
        tokens=found.tokens,
        batch=found.batch,
        start=start,
        broke=found.broke,
        optimizer=type(made.optimizer).__name__,
        rate=float(made.optimizer.param_groups[0]["lr"]),
    )
    where = {"stabkit": __version__, "torch": torch.__version__, "wall_seconds": round(time.monotonic() - begin, 3)}
    shelf.commit(probe_id, Cell(facts, found.records), where)
    return {"folder": probe_id, "reused": False}


def _key(job: dict[str, Any], function: Callable[..., Any], made: Made) -> str:
    """The name of the folder: an edited file, another start or another torch is another model."""
    hashed = hashlib.sha256()
    asked = {name: job[name] for name in ("factory", "depth", "seed", "lr", "steps", "blocks")}
    words = [asked, _source(function), repr(made.start), torch.__version__, PROBE_VERSION, repr(made.optimizer)]
    hashed.update(json.dumps(words).encode())
    for name, tensor in made.model.state_dict().items():
        if isinstance(tensor, torch.Tensor):
            hashed.update(name.encode())
            hashed.update(_bytes(tensor))
    short = re.sub("[^A-Za-z0-9_]", "-", job["factory"].rpartition(":")[2])[:40]
    depth = "" if job["depth"] is None else f"-{job['depth']}L"
    return f"{short}{depth}-s{job['seed']}-{hashed.hexdigest()[:12]}"


def _source(function: Callable[..., Any]) -> str:
    """The text of the file that the factory stands in."""
    try:
        file = inspect.getsourcefile(inspect.unwrap(function))
        return Path(file).read_text(encoding="utf-8", errors="replace") if file else ""
    except (TypeError, OSError):
        return ""


def _bytes(tensor: torch.Tensor) -> bytes:
    flat = tensor.detach().cpu().contiguous().reshape(-1)
    held: bytes = flat.view(torch.uint8).numpy().tobytes() if flat.numel() else b""
    return held


def _placed(error: BaseException, job: dict[str, Any]) -> str:
    """An exception in one line, with the place in the user's file, or the last one outside of stabkit."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = str(Path(__file__).resolve().parents[2])
    module = sys.modules.get(job["factory"].partition(":")[0])
    own = getattr(module, "__file__", None)
    theirs = [f for f in frames if own and os.path.realpath(f.filename) == os.path.realpath(own)]
    last = (theirs or [f for f in frames if not f.filename.startswith(ours)] or frames)[-1]
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
                return aside.read()[-1_000_000:].encode()

            with redirect_stdout(aside), redirect_stderr(aside):
                yield printed
        finally:
            for number, old in zip((1, 2), kept, strict=True):
                os.dup2(old, number)
                os.close(old)
            os.chdir(before)
