"""Runs → translations that are not on the shelf → executor → shelf. Never imports torch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from stabkit.results.translation import Search, TranslationSpec
from stabkit.running.executors.base import Tell
from stabkit.running.retry import Map, attempted
from stabkit.running.work import Job
from stabkit.storage.folder import CorruptFolder, OldFolder
from stabkit.storage.store import Run
from stabkit.storage.translations import TranslationShelf


@dataclass(frozen=True, kw_only=True, slots=True)
class Wanted:
    """Which translations a command asks for."""

    search: Search
    sentences: str
    """Digest of the sentences to translate."""
    device: str = "cpu"


@dataclass(frozen=True, slots=True)
class Plan:
    """What is on the shelf already, and the jobs of what is not."""

    ready: int
    jobs: list[Job]
    corrupt: list[str]


def specs(runs: Sequence[Run], wanted: Wanted) -> list[TranslationSpec]:
    """The translation of every run's last weights."""
    return [
        TranslationSpec(
            run=run.run_id, digest=run.digest, search=wanted.search, sentences=wanted.sentences, device=wanted.device
        )
        for run in runs
    ]


def plan(wanted: Sequence[TranslationSpec], shelf: TranslationShelf, context: dict[str, Any]) -> Plan:
    """Which are whole, and the jobs of the others; a folder that fails its check goes to quarantine."""
    ready, jobs, corrupt = 0, list[Job](), list[str]()
    for spec in wanted:
        name = spec.translation_id
        if name in shelf:
            try:
                shelf.load(name)
                ready += 1
                continue
            except (CorruptFolder, OldFolder) as error:
                corrupt.append(f"corrupt translation: {error}; moved to {shelf.quarantine(name)}, translated again")
        jobs.append({"kind": "translate", "id": name, "spec": spec.to_json(), **context})
    return Plan(ready, jobs, corrupt)


def run(planned: Plan, execute: Map, tell: Tell, finished: Callable[[str], None]) -> dict[str, str]:
    """Translate what is missing; returns {run id: reason} of the runs of which none could be made."""
    lost = attempted(planned.jobs, execute, tell, finished)
    return {job["spec"]["run"]: lost[job["id"]] for job in planned.jobs if job["id"] in lost}
