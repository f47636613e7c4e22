"""Runs as work: a job each, the longest first; attempts are counted over all commands. Never imports torch."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from stabkit.errors import StabkitError
from stabkit.results.run import Run
from stabkit.running import cost, pace, plan
from stabkit.running.executors import EXECUTORS, ExecutorOptions
from stabkit.running.executors.base import Lost
from stabkit.running.plan import Plan, Work
from stabkit.spec import ModelConfig, RunSpec, TrainConfig
from stabkit.storage.jobs import Context, Job
from stabkit.storage.store import Store


@dataclass(frozen=True, slots=True)
class StoredAttempts:
    """Those of all commands, as the store keeps them. `afresh`: what earlier commands counted is forgotten."""

    store: Store
    afresh: bool

    def reasons(self, name: str) -> list[str]:
        return [] if self.afresh else self.store.attempts(name)

    def note(self, name: str, lost: Lost) -> int:
        return self.store.note_attempt(name, lost.reason)


def planned(
    specs: Sequence[RunSpec],
    store: Store,
    context: Context = {},  # noqa: B006  # a mapping that nothing writes to
    *,
    repair: bool = True,
    retry_failed: bool = False,
) -> Plan[RunSpec, Run]:
    """Which runs are whole in the store. A folder that fails its check goes to quarantine when `repair` is on;
    `retry_failed` counts the attempts at every missing run afresh.

    `context`: what every job holds besides its run; `checkpoint_every` in it is a number of updates, or None for one
    that suits the run (`cost.checkpoint_every`).
    """
    every = context.get("checkpoint_every")

    def jobs(spec: RunSpec) -> list[Job]:
        fitting = cost.checkpoint_every(spec) if every is None else every
        job: Job = {"kind": "run", "out": str(store.out), "id": spec.run_id, "spec": spec.to_json()}
        return [{**job, **context, "checkpoint_every": fitting}]

    work = Work(
        kind="run",
        again="trained again",
        shelf=store.shelf,
        name=lambda spec: spec.run_id,
        jobs=jobs,
        result=lambda spec, outcome: store.load(spec.run_id),
        attempts=StoredAttempts(store, afresh=retry_failed),
        seconds=cost.seconds,
    )
    run_plan = plan.plan(specs, work, repair=repair)
    if retry_failed and repair:
        for spec in run_plan.missing:
            store.forget_attempts(spec.run_id)
    return replace(run_plan, other=len(set(store.ids()) - {spec.run_id for spec in specs}))


MOST_AT_ONCE = 8
"""Processes that time a machine."""


def clock() -> None:
    """Time this machine for what `cost` says, and keep it (`pace.py`): two runs of 12L-12L for each core, all cores at
    work as they are in a command, in a folder that goes again. Where it cannot be done nothing is kept."""
    workers = min(pace.cores(), MOST_AT_ONCE)
    model, train = ModelConfig(encoder_layers=12, decoder_layers=12), TrainConfig(steps=20)
    specs = [RunSpec(method="deepnorm", model=model, train=train, seed=seed) for seed in range(2 * workers)]
    with suppress(OSError, StabkitError), tempfile.TemporaryDirectory() as aside:
        clocked = planned(specs, Store(Path(aside)), {"corpus": None, "device": "cpu", "kernels": "fused", "texts": {}})
        execute = partial(EXECUTORS["processes"], where=ExecutorOptions(workers=workers))
        if results := plan.complete(clocked, execute, lambda event: None).results:
            pace.keep(cost.pace(results))
