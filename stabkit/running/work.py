"""The only function a worker runs: read a job, compute, commit through the store. Jobs are JSON.

Whoever begins one locks what it makes, and finds it made, or locked by another command (`Locked`); `over` in a job
names a holder that was found to be gone.

{"kind": "run", "id": RUN_ID, "out": DIR, "spec": {...}, "corpus": null | {"directory": DIR}, "device": "cpu",
 "kernels": "fused", "checkpoint_every": 0, "texts": {sha256: text of a file of one's own}}
{"kind": "runs", "id": …, "jobs": [runs of one shape], …}: trained at once (`grouping.py`, `training/vmapped.py`)
{"kind": "tile", …}: rows of a loss surface (`surface/tiles.py`)
{"kind": "probe", …}: a user's own model at one depth (`own/probe/job.py`)
{"kind": "trial", …}: a rate tried on a user's own model (`own/trial.py`)
"""

from __future__ import annotations

import gc
import json
import os
import platform
import resource
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import numpy as np

from stabkit import spec
from stabkit.errors import UsageError
from stabkit.results import records
from stabkit.running import texts
from stabkit.spec import RunSpec
from stabkit.storage.folder import CorruptFolder
from stabkit.storage.jobs import Event, Job
from stabkit.storage.locks import Locked
from stabkit.storage.store import Store, to_files
from stabkit.version import __version__

ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "CUBLAS_WORKSPACE_CONFIG": ":4096:8",  # without it cuBLAS is not deterministic
    # glibc gives a step's memory back and asks for it again, page by page: a twentieth of the time
    "MALLOC_MMAP_THRESHOLD_": "33554432",
    "MALLOC_TRIM_THRESHOLD_": "8589934592",
    "MALLOC_TOP_PAD_": "67108864",
    "PYTHONHASHSEED": "0",  # a user's code may draw in the order of a set
    "PYTORCH_NVML_BASED_CUDA_CHECK": "1",  # to ask for a GPU is not to use it: then nothing could be forked
}
"""What a worker process must find in its environment when it starts."""


def prepare() -> None:
    """What every worker does before its first job: one thread. More threads give other bits, and here no speed.

    A step makes and frees ten thousand objects, none of them in a cycle: looking for cycles after every 700, Python's
    default, costs a twentieth of the time.

    One thread on a CPU is deterministic as it is; `torch.use_deterministic_algorithms` is for GPUs: it imports
    torch's compiler, a second in every worker.
    """
    import torch

    gc.freeze()
    gc.set_threshold(100_000, 10, 10)
    torch.set_num_threads(1)
    with suppress(RuntimeError):  # this process has worked in parallel before (inline, in a test): no bit depends on it
        torch.set_num_interop_threads(1)


def theirs(job: Job) -> bool:
    """Whether a user's code runs in a job: their factory, or files of methods and probes of their own."""
    return of_factory(job) or bool(job.get("texts"))


def of_factory(job: Job) -> bool:
    """Whether it is of a user's own model."""
    return job.get("kind") in OF_FACTORIES


def load() -> None:
    """Import what jobs of a user's factory need; torch imports a second's worth at an optimiser's first step."""
    import torch._dynamo  # noqa: F401

    from stabkit.own import trial  # noqa: F401
    from stabkit.own.probe import followed

    followed.warm()
    gc.freeze()


def load_theirs(job: Job) -> None:
    """Import a user's module, whatever that does."""
    if of_factory(job):
        from stabkit.own.probe import job as own

        own.load(job)
        gc.freeze()  # what is never collected is never written to, and shared by all that is forked


OF_FACTORIES = ("probe", "trial")


def do(job: Job, tell: Callable[[Event], None]) -> tuple[str, str]:
    """Do one job and commit its result; returns (id, outcome). Raises Locked where another command is at it, else
    whatever went wrong."""
    return KINDS[job["kind"]](job, tell)


def _run(job: Job, tell: Callable[[Event], None]) -> tuple[str, str]:
    _deterministic(job["device"])
    run_spec = _spec(job)
    run_id = run_spec.run_id
    store = Store(Path(job["out"]))
    with store.shelf.hold(run_id, job.get("over", "")):
        if (done := store.shelf.load_if_sound(run_id)) is not None:  # by another command meanwhile
            return run_id, done.outcome.word
        return run_id, _trained(job, run_spec, store, tell)


def _deterministic(device: str) -> None:
    """On a GPU the operations that give equal bits."""
    import torch

    if device != "cpu":
        torch.use_deterministic_algorithms(True)
        setattr(torch.utils.deterministic, "fill_uninitialized_memory", False)  # noqa: B010  # untyped; doubles small costs


def _spec(job: Job) -> RunSpec:
    """The run of a job; raises UsageError where another version planned it."""
    run_spec = spec.from_json(job["spec"])
    if job.get("id", run_spec.run_id) != run_spec.run_id:
        raise UsageError(
            f"this worker has stabkit {__version__}, but another one planned {job['id']}: install the same"
        )
    return run_spec


def _progress(specs: Sequence[RunSpec], tell: Callable[[Event], None]) -> Callable[[int, int, float], None]:
    """Told of (number, step, loss), tells of each run twice a second at most."""
    last = dict.fromkeys(range(len(specs)), time.monotonic())

    def progress(number: int, step: int, loss: float) -> None:
        now = time.monotonic()
        if now - last[number] > 0.5:
            last[number] = now
            steps = specs[number].train.steps
            tell({"id": specs[number].run_id, "step": step, "steps": steps, "loss": records.jsonable(loss)})

    return progress


def _trained(job: Job, run_spec: RunSpec, store: Store, tell: Callable[[Event], None]) -> str:
    """Train a run from its checkpoint or its start, and commit it; returns its outcome."""
    from stabkit.training import state as states
    from stabkit.training import train

    run_id = run_spec.run_id
    begin, shown = time.monotonic(), _progress([run_spec], tell)
    moved = False

    def progress(step: int, loss: float) -> None:
        nonlocal moved
        moved = True
        shown(0, step, loss)

    task = texts.task(run_spec, job["corpus"], store.out)

    def save(state: states.State) -> None:
        store.save_checkpoint(run_spec, {**state.arrays, "step": np.array(state.step)})

    def attempt(start: states.State | None) -> train.Result:
        every = job.get("checkpoint_every") or 0
        texts, kernels = job.get("texts", {}), job.get("kernels", "fused")
        return train.run(run_spec, task, job["device"], progress, start, save, every, texts, kernels)

    start = None
    try:
        start = _state(store, run_spec)
        if start is not None:
            tell({"id": run_id, "note": f"{run_id} continues from step {start.step}"})
        result = attempt(start)
    except (CorruptFolder, states.ForeignState) as error:
        start = None
        store.forget_checkpoint(run_id)
        tell({"id": run_id, "warning": f"corrupt checkpoint, {run_id} starts from step 0: {error}"})
        result = attempt(None)
    except Exception:
        if start is not None and not moved:  # not one step: the next attempt had better not begin there
            store.forget_checkpoint(run_id)
        raise
    where = environment(run_spec, job["device"], time.monotonic() - begin)
    where["kernels"] = result.kernels
    where["first_step"] = start.step if start is not None else 0
    store.commit(run_spec, files(run_spec, result, where, job.get("texts", {})))
    return str(result.outcome.word)


def _runs(job: Job, tell: Callable[[Event], None]) -> tuple[str, str]:
    """Runs at once, each committed; the answer is {run id: outcome}. None of them is checkpointed."""
    _deterministic(job["device"])
    specs = [_spec(each) for each in job["jobs"]]
    store = Store(Path(job["out"]))
    answers = dict[str, Any]()
    with ExitStack() as held:
        mine: list[RunSpec] = []
        for each, one in zip(job["jobs"], specs, strict=True):
            try:
                held.enter_context(store.shelf.hold(one.run_id, each.get("over", "")))
            except Locked as error:
                answers[one.run_id] = error.busy.to_json()
                continue
            if (done := store.shelf.load_if_sound(one.run_id)) is not None:
                answers[one.run_id] = done.outcome.word
            else:
                mine.append(one)
        if mine:
            answers |= _together(job, mine, store, tell)
    return job["id"], json.dumps(answers)


def _together(job: Job, specs: Sequence[RunSpec], store: Store, tell: Callable[[Event], None]) -> dict[str, str]:
    """Train runs at once and commit each; {run id: outcome}."""
    from stabkit.training import vmapped

    begin, progress = time.monotonic(), _progress(specs, tell)
    tasks = [texts.task(one, job["corpus"], store.out) for one in specs]
    results = vmapped.together(specs, tasks, job["device"], progress, job.get("texts", {}))
    seconds = (time.monotonic() - begin) / len(specs)
    for one, result in zip(specs, results, strict=True):
        where = environment(one, job["device"], seconds) | {"kernels": result.kernels, "first_step": 0}
        store.commit(one, files(one, result, where, job.get("texts", {})))
    return {one.run_id: str(result.outcome.word) for one, result in zip(specs, results, strict=True)}


def files(run_spec: RunSpec, result: Any, where: dict[str, Any], texts: Mapping[str, str] = {}) -> dict[str, bytes]:  # noqa: B006
    """The bytes of a finished run's folder, by name; `where` is its environment, `texts` holds the files of methods and
    probes of the user's own, which are stored with what they made."""
    kept = {"unigram_loss": result.outcome.unigram_loss, "parameters": result.parameters}
    return to_files(run_spec, kept, result.records, result.weights, where, texts)


def _state(store: Store, run_spec: RunSpec) -> Any:
    """Where an earlier attempt at this run stopped, or None. Raises CorruptFolder or ForeignState."""
    from stabkit.training import state as states

    arrays = store.checkpoint(run_spec)
    if arrays is None:
        return None
    step = arrays.pop("step", np.array(None))
    if step.shape or step.dtype.kind != "i" or not 0 < step < run_spec.train.steps:
        raise states.ForeignState(f"it stopped after {step} of {run_spec.train.steps} updates")
    return states.State(int(step), arrays)


def _tile(job: Job, tell: Callable[[Event], None]) -> tuple[str, str]:
    from stabkit.surface import tiles

    return tiles.tile(job, tell, texts.task)


def _probe(job: Job, tell: Callable[[Event], None]) -> tuple[str, str]:
    from stabkit.own.probe import job as own

    return own.probe(job, tell)


def _trial(job: Job, tell: Callable[[Event], None]) -> tuple[str, str]:
    from stabkit.own import trial as own

    return own.trial(job, tell)


KINDS: dict[str, Callable[[Job, Callable[[Event], None]], tuple[str, str]]] = {
    "run": _run,
    "runs": _runs,
    "tile": _tile,
    "probe": _probe,
    "trial": _trial,
}


def environment(run_spec: RunSpec, device: str, seconds: float) -> dict[str, Any]:
    """Where and how long a run ran. No digest covers it."""
    import torch

    from stabkit.kernels import products

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {
        "stabkit": __version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
        "platform": platform.platform(),
        "processor": products.processor() or platform.processor() or platform.machine(),
        "products": products.library(),
        "cpu_capability": torch.backends.cpu.get_cpu_capability(),
        "device": torch.cuda.get_device_name(device) if run_spec.device == "cuda" else run_spec.device,
        "threads": torch.get_num_threads(),
        "cores": os.cpu_count(),
        "wall_seconds": round(seconds, 3),
        "peak_memory_bytes": peak * (1 if sys.platform == "darwin" else 1024),
    }
