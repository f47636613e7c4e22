"""A user's model over depths: cells → executor → shelf. The user's code runs in the workers alone. Never imports torch.

What is on the shelf only a worker can tell, for its key holds the weights that the factory makes.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stabkit.errors import FailedRuns
from stabkit.results.own.cell import Cell
from stabkit.running.executors.base import Lost, Tell
from stabkit.running.retry import ATTEMPTS, Map, settled
from stabkit.running.work import Job
from stabkit.storage.probed import ProbeShelf

LOST = "no result"


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """What `stabkit probe` was asked for."""

    factory: str
    here: str
    """The directory that the command was started in: the factory's module may stand there."""
    depths: tuple[int | None, ...]
    """(None,) where the factory takes no depth."""
    seeds: tuple[int, ...]
    lrs: tuple[float, ...]
    """(0.0,) for its optimiser's own."""
    steps: int
    blocks: str
    fresh: bool
    out: Path

    def jobs(self) -> list[Job]:
        """The deepest first: they take longest."""
        depths = sorted(self.depths, key=lambda depth: -(depth or 0))
        return [
            {
                "kind": "probe",
                "id": _name(self.factory, depth, lr, seed),
                "factory": self.factory,
                "here": self.here,
                "depth": depth,
                "seed": seed,
                "lr": lr,
                "steps": self.steps,
                "blocks": self.blocks,
                "out": str(self.out),
                "fresh": self.fresh,
            }
            for depth in depths
            for lr in self.lrs
            for seed in self.seeds
        ]


@dataclass(frozen=True, kw_only=True, slots=True)
class Failure:
    """A cell without a result."""

    depth: int | None
    lr: float
    seed: int
    reason: str
    log: str = ""


@dataclass(frozen=True, slots=True)
class Done:
    """The cells by depth, rate and seed, and those without a result."""

    cells: tuple[Cell, ...]
    failed: tuple[Failure, ...]
    reused: int


def run(asked: Asked, execute: Map, tell: Tell, finished: Callable[[str, str], None]) -> Done:
    """Probe every cell; `finished(name, how)`. Raises UsageError for what would be as wrong at any depth."""
    jobs = asked.jobs()
    shelf = ProbeShelf(asked.out)
    shelf.sweep_partial()
    cells: list[Cell] = []
    failed: list[Failure] = []
    reused = 0
    attempts: dict[str, int] = {}

    def note(job_id: str, reason: str) -> int:
        # what hung once hangs again
        attempts[job_id] = ATTEMPTS if reason.startswith("timeout") else attempts.get(job_id, 0) + 1
        return attempts[job_id]

    with closing(settled(jobs, execute, tell, note)) as answers:
        for job, answer in answers:
            told: dict[str, Any] = (
                {"failed": answer.reason.partition(" (attempt")[0]} if isinstance(answer, Lost) else json.loads(answer)
            )
            if "failed" in told:
                failed.append(
                    Failure(
                        depth=job["depth"],
                        lr=job["lr"],
                        seed=job["seed"],
                        reason=told["failed"],
                        log=told.get("log", ""),
                    )
                )
                finished(job["id"], f"{LOST}: {told['failed']}")
                continue
            cells.append(shelf.load(told["folder"]))
            reused += told["reused"]
            finished(job["id"], "reused" if told["reused"] else "probed")
    order = {job["id"]: i for i, job in enumerate(sorted(jobs, key=lambda job: job["depth"] or 0))}
    cells.sort(key=lambda c: order[_name(asked.factory, c.facts.depth, c.facts.lr, c.facts.seed)])
    failed.sort(key=lambda f: order[_name(asked.factory, f.depth, f.lr, f.seed)])
    if len(cells) + len(failed) != len(jobs) or len({c.digest for c in cells}) < len(cells):
        raise FailedRuns(f"{len(jobs)} runs were asked for, {len(cells)} came back; does the factory fork?")
    return Done(tuple(cells), tuple(failed), reused)


def _name(factory: str, depth: int | None, lr: float, seed: int) -> str:
    words = [factory.rpartition(":")[2], "" if depth is None else f"{depth}L", f"lr{lr:g}" if lr else "", f"s{seed}"]
    return "-".join(word for word in words if word)
