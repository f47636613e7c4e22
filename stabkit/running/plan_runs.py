"""Grid → runs that are not in the store → executor → store."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from typing import Any

from stabkit.errors import StoreError
from stabkit.running import cost
from stabkit.running.executors.base import Lost, Tell
from stabkit.running.retry import ATTEMPTS, Map, settled
from stabkit.spec import RunSpec
from stabkit.storage.folder import CorruptFolder, OldFolder
from stabkit.storage.store import Run, Store


@dataclass(frozen=True, slots=True)
class Plan:
    """What a sweep has and what it must train."""

    reused: list[Run]
    missing: list[RunSpec]
    other: int
    """Runs in the store that are not part of this grid."""
    corrupt: list[str] = field(default_factory=list)
    """One warning for each folder that failed its check and was put in quarantine."""
    given_up: list[tuple[RunSpec, str]] = field(default_factory=list)
    """Runs that failed ATTEMPTS times, over all commands, and why: they are not tried again unless asked to."""


@dataclass(frozen=True, slots=True)
class Sweep:
    """Every run of the grid that has a result, in the order of the grid, and those that have none."""

    runs: list[Run]
    failed: list[tuple[RunSpec, str]]


def plan(specs: Sequence[RunSpec], store: Store, *, repair: bool = True, retry_failed: bool = False) -> Plan:
    """Which runs are whole in the store. A folder that fails its check goes to quarantine when `repair` is on;
    `retry_failed` counts the attempts at every missing run afresh."""
    reused, missing, corrupt, given_up = [], [], [], []
    for spec in specs:
        if spec.run_id in store:
            try:
                reused.append(store.load(spec.run_id))
                continue
            except (CorruptFolder, OldFolder) as error:
                where = store.quarantine(spec.run_id) if repair else None
                corrupt.append(f"corrupt run: {error}" + (f"; moved to {where}, trained again" if where else ""))
        if retry_failed and repair:
            store.forget_attempts(spec.run_id)
        reasons = [] if retry_failed else store.attempts(spec.run_id)
        if len(reasons) >= ATTEMPTS:
            given_up.append((spec, f"{reasons[-1]} (attempt {len(reasons)}; --retry-failed tries again)"))
        else:
            missing.append(spec)
    wanted = {spec.run_id for spec in specs}
    return Plan(reused, missing, len(set(store.ids()) - wanted), corrupt, given_up)


MOST_TIMED = 24
"""Runs of the store that an estimate is scaled by, where it holds more."""


def timed(planned: Plan, store: Store) -> list[Run]:
    """Runs of the store to scale an estimate by: those of the grid, else any."""
    found = list(planned.reused[:MOST_TIMED])
    for run_id in store.ids() if not found else ():
        with suppress(StoreError):
            found.append(store.load(run_id))
        if len(found) == MOST_TIMED:
            break
    return found


def run(
    specs: Sequence[RunSpec],
    planned: Plan,
    store: Store,
    execute: Map,
    context: dict[str, Any],
    tell: Tell,
    finished: Callable[[RunSpec, str | Lost], None],
) -> Sweep:
    """Train what is missing, the longest first, so that no worker is left alone at the end with a deep run.

    `context`: what every job holds besides its run; `checkpoint_every` in it is a number of updates, or None for one
    that suits the run (`cost.checkpoint_every`). A run that fails is tried again, ATTEMPTS times over all commands.
    """
    by_id = {spec.run_id: spec for spec in (*planned.missing, *(spec for spec, _ in planned.given_up))}
    every = context.get("checkpoint_every")
    jobs = [
        {
            "kind": "run",
            "out": str(store.out),
            "id": spec.run_id,
            "spec": spec.to_json(),
            **context,
            "checkpoint_every": cost.checkpoint_every(spec) if every is None else every,
        }
        for spec in sorted(planned.missing, key=cost.seconds, reverse=True)
    ]
    runs = {run.run_id: run for run in planned.reused}
    failed = {spec.run_id: reason for spec, reason in planned.given_up}
    with closing(settled(jobs, execute, tell, store.note_attempt)) as answers:
        for job, answer in answers:
            spec = by_id[job["id"]]
            if isinstance(answer, Lost):
                failed[spec.run_id] = answer.reason
            else:
                runs[spec.run_id] = store.load(spec.run_id)
            finished(spec, answer)
    return Sweep(
        [runs[spec.run_id] for spec in specs if spec.run_id in runs],
        [(by_id[run_id], reason) for run_id, reason in failed.items()],
    )
