"""What a worker does for one cell of a probe: call the user's factory, update, store what was recorded.

{"kind": "probe", "id": NAME, "factory": "package.module:function", "here": DIR, "depth": 12 | null, "width": 64 | null,
 "seed": 0, "lr": 0.001, "warmup": null, "steps": 16, "blocks": "", "change": "",
 "ramped": true, "out": DIR, "fresh": false}

The user's code runs here and nowhere else. Its answer is JSON: {"folder": PROBE_ID, "reused": …}, or {"failed": in one
line, with the place in the user's file, "log": the whole traceback and all that was printed}.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from stabkit.errors import UsageError
from stabkit.own.probe import loop
from stabkit.own.probe.built_model import BuiltModel, make
from stabkit.own.probe.changes import changed
from stabkit.own.probe.learnable import ONE_TOPIC, TOPICS
from stabkit.own.probe.worker import answered, key
from stabkit.results.own.cell import PROBE_VERSION, ModelCell
from stabkit.results.own.outcome import LEAST
from stabkit.results.records import jsonable
from stabkit.storage import probed
from stabkit.storage.jobs import Event, Job, asked
from stabkit.storage.probed import PROBE
from stabkit.storage.shelf import Shelf
from stabkit.version import __version__

READ = 3
"""Of what is read of a model: the same model read by another version is another result."""
ENDS = ["where it has learnt"]
"""How a training that is to show an outcome ends."""
NOTHING_TO_CHANGE = "does not apply to this model"


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
    shown = job["steps"] >= LEAST
    topics = ONE_TOPIC if shown else TOPICS
    at = job["depth"], job["seed"], job["lr"], job["warmup"], job["width"]
    as_is = make(function, job["factory"], *at, topics=topics)
    made = changed(as_is, job["change"]) if job["change"] else as_is
    if made is None:
        raise UsageError(NOTHING_TO_CHANGE)
    names = ("factory", "depth", "width", "seed", "lr", "warmup", "steps", "blocks", "change", "ramped")
    probe_id = key(job, made, [asked(job, *names), PROBE_VERSION, READ, *ENDS * shown])
    with shelf.hold(probe_id, job.get("over", "")):
        if job["fresh"]:
            if probe_id in shelf:
                shelf.quarantine(probe_id)  # kept: what is recorded now takes its place
        elif shelf.load_if_sound(probe_id) is not None:
            return {"folder": probe_id, "reused": True}
        result = _recorded(job, made, tell)
        where = {"stabkit": __version__, "torch": torch.__version__, "wall_seconds": round(time.monotonic() - begin, 3)}
        shelf.commit(probe_id, probed.to_files(result, where))
    return {"folder": probe_id, "reused": False}


def _recorded(job: Job, made: BuiltModel, tell: Callable[[Event], None]) -> ModelCell:
    last = -math.inf

    def event(step: int, loss: float) -> None:
        nonlocal last
        if time.monotonic() - last > 0.5:
            last = time.monotonic()
            tell({"id": job["id"], "step": step, "steps": job["steps"], "loss": jsonable(loss)})

    recorded = loop.record(made, job["steps"], job["blocks"], event, ramped=job["ramped"])
    return loop.cell(made, recorded, **asked(job, "factory", "depth", "lr", "seed", "steps", "change"))
