"""What is stored of what was asked for, what is missing, and the missing made: the same for every kind of work.

specs → `plan` → jobs that the store lacks → executor → `complete` → results. The only place that retries.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Generic, Literal, Protocol, TypeVar

from stabkit.running.executors.base import ATTEMPTS, Answer, Lost, LostKind, Tell
from stabkit.storage.folder import CorruptFolder, OldFolder
from stabkit.storage.jobs import Job
from stabkit.storage.locks import LOOK, Busy, Locked, ReleasedLocks
from stabkit.storage.shelf import Shelf

S = TypeVar("S")
T = TypeVar("T")
Map = Callable[[Sequence[Job], Tell], Generator[Answer, None, None]]
"""An executor on its place."""


class Attempts(Protocol):
    """Counts how often jobs were lost."""

    def reasons(self, name: str) -> list[str]:
        """Why every attempt so far failed, the commands before this one included."""

    def note(self, name: str, lost: Lost) -> int:
        """Remember one more; returns how many there are now."""


class CommandAttempts:
    """Those of one command. `once`: how jobs are lost that are not worth another attempt."""

    def __init__(self, *once: LostKind) -> None:
        self.once = once
        self.counts: Counter[str] = Counter()

    def reasons(self, name: str) -> list[str]:
        return []

    def note(self, name: str, lost: Lost) -> int:
        self.counts[name] += ATTEMPTS if lost.kind in self.once else 1
        return self.counts[name]


@dataclass(frozen=True, kw_only=True, slots=True)
class Work(Generic[S, T]):
    """How the specs of one kind are named, looked up, made jobs of and read when these are done."""

    kind: Literal["run", "surface", "probe", "trial"]
    again: str
    """What happens to one whose folder failed its check: `trained again`."""
    shelf: Shelf[T] | None
    """None: what is stored a worker alone can tell."""
    name: Callable[[S], str]
    """The id of its folder; without a shelf, of its job."""
    jobs: Callable[[S], Sequence[Job]]
    """One or more; none where all it needs is there already."""
    result: Callable[[S, str], T | Lost]
    """What is stored when its jobs are done; the answer of the last is given ("" where there was none)."""
    attempts: Attempts = field(default_factory=CommandAttempts)
    seconds: Callable[[S], float] = lambda spec: 0.0
    """What takes longest is done first, so that no worker is left alone at the end."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan(Generic[S, T]):
    """What is there, and what is to be done."""

    work: Work[S, T]
    specs: list[S]
    ready: dict[str, T]
    """What is stored, by name."""
    missing: list[S]
    jobs: list[tuple[S, Job]]
    """Those of what is missing, in the order in which they are done."""
    corrupt: list[str]
    """One warning for each folder that failed its check and was put in quarantine."""
    given_up: list[tuple[S, Lost]]
    """What was lost ATTEMPTS times in earlier commands: not tried again unless asked to."""
    other: int = 0
    """Stored folders that are not part of what was asked for."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Done(Generic[S, T]):
    """What came of a plan."""

    results: list[T]
    """In the order of the specs."""
    lost: list[tuple[S, Lost]]
    """What has no result, and why."""
    reused: int
    """Of the results, those that were stored before."""

    def and_(self, other: Done[S, T]) -> Done[S, T]:
        """This, and what came of more of them."""
        results, lost = [*self.results, *other.results], [*self.lost, *other.lost]
        return Done(results=results, lost=lost, reused=self.reused + other.reused)


def plan(specs: Sequence[S], work: Work[S, T], *, repair: bool = True) -> Plan[S, T]:
    """Which specs are whole in the store, and the jobs of the others; a folder that fails its check goes to quarantine
    when `repair` is on."""
    ready: dict[str, T] = {}
    missing: list[S] = []
    corrupt: list[str] = []
    given_up: list[tuple[S, Lost]] = []
    for spec in specs:
        name = work.name(spec)
        if (shelf := work.shelf) is not None and name in shelf:
            try:
                ready[name] = shelf.load(name)
                continue
            except (CorruptFolder, OldFolder) as error:
                after = f"; {_aside(shelf, name)}, {work.again}" if repair else ""
                corrupt.append(f"corrupt {work.kind}: {error}{after}")
        reasons = work.attempts.reasons(name)
        if len(reasons) >= ATTEMPTS:
            given_up.append((spec, Lost("given up", reasons[-1], attempt=len(reasons))))
        else:
            missing.append(spec)
    jobs = [(spec, job) for spec in sorted(missing, key=work.seconds, reverse=True) for job in work.jobs(spec)]
    return Plan(
        work=work, specs=list(specs), ready=ready, missing=missing, jobs=jobs, corrupt=corrupt, given_up=given_up
    )


def _aside(shelf: Shelf[T], name: str) -> str:
    """Put a folder that failed its check aside, unless another command is at it, or has made it anew meanwhile."""
    try:
        with shelf.hold(name):
            try:
                shelf.load(name)
            except (CorruptFolder, OldFolder):
                return f"moved to {shelf.quarantine(name)}"
            return "intact again"
    except Locked:
        return "another command is using it"


def complete(
    planned: Plan[S, T],
    execute: Map,
    tell: Tell,
    *,
    job_done: Callable[[Job], None] = lambda job: None,
    ended: Callable[[S, T | Lost], None] = lambda spec, ending: None,
) -> Done[S, T]:
    """Do what is missing: `job_done` after every job, `ended` after the last of a spec."""
    work = planned.work
    results = dict(planned.ready)
    lost = {work.name(spec): (spec, reason) for spec, reason in planned.given_up}
    spec_of = {job["id"]: spec for spec, job in planned.jobs}
    left = Counter(work.name(spec) for spec, _ in planned.jobs)

    def end(spec: S, ending: T | Lost) -> None:
        if isinstance(ending, Lost):
            lost[work.name(spec)] = (spec, ending)
        else:
            results[work.name(spec)] = ending
        ended(spec, ending)

    def stored(job: Job) -> bool:
        return work.shelf is not None and work.shelf.load_if_sound(work.name(spec_of[job["id"]])) is not None

    with closing(settled([job for _, job in planned.jobs], execute, tell, work.attempts, stored)) as answers:
        for job, answer in answers:
            spec = spec_of[job["id"]]
            name = work.name(spec)
            left[name] -= 1
            job_done(job)
            if name in lost:
                continue
            if isinstance(answer, Lost):
                end(spec, answer)
            elif not left[name]:
                end(spec, work.result(spec, answer))
    for spec in planned.missing:
        if work.name(spec) not in results and work.name(spec) not in lost:
            end(spec, work.result(spec, ""))  # a command before did all its jobs, and was ended before the last act
    return Done(
        results=[results[work.name(spec)] for spec in planned.specs if work.name(spec) in results],
        lost=list(lost.values()),
        reused=len(planned.ready),
    )


def settled(
    jobs: Sequence[Job],
    execute: Map,
    tell: Tell,
    attempts: Attempts,
    stored: Callable[[Job], bool] = lambda job: False,
    patience: float = math.inf,
) -> Generator[tuple[Job, str | Lost], None, None]:
    """Every job with its last answer: one that is lost is tried again, ATTEMPTS times in all. One that another command
    is at is given again when it is held no more, unless `stored` says that there is nothing left to do; after waiting
    `patience` seconds with nothing else to do it is given up without an answer."""
    held, freed, since = dict[str, tuple[Job, Busy]](), ReleasedLocks(), math.inf
    while jobs or held:
        if jobs:
            since = math.inf
        else:
            if math.isinf(since):
                since = time.monotonic()
                tell({"id": "", "note": f"waiting: other commands are computing {len(held)} of these"})
            if time.monotonic() - since > patience:
                return
            time.sleep(LOOK)
        jobs = list(jobs)
        for job in _freed(held, freed, tell):
            tried = attempts.reasons(job["id"])
            if stored(job):
                yield job, ""
            elif len(tried) >= ATTEMPTS:  # by the others
                yield job, Lost("given up", tried[-1], attempt=len(tried))
            else:
                jobs.append(job)
        if not jobs:
            continue
        again: list[Job] = []
        with closing(execute(jobs, tell)) as answers:  # workers end before the store is read
            for job, answer in answers:
                if isinstance(answer, Busy):
                    held[job["id"]] = job, answer
                    continue
                if not isinstance(answer, Lost):
                    yield job, answer
                    continue
                if answer.error:
                    raise answer.error
                attempt = attempts.note(job["id"], answer)
                if attempt < ATTEMPTS:
                    retried = job.copy()
                    retried.pop("over", None)
                    again.append(retried)
                else:
                    yield job, replace(answer, attempt=min(attempt, ATTEMPTS))
        jobs = again


def _freed(held: dict[str, tuple[Job, Busy]], freed: ReleasedLocks, tell: Tell) -> list[Job]:
    """Take out those that nobody is at any more."""
    free = list[Job]()
    for name, (job, busy) in list(held.items()):
        over = freed.over(busy)
        if over is not None:
            del held[name]
            free.append({**job, "over": over})
            if over:
                said = f"process {busy.pid} on {busy.machine} ended before it finished: taken over here"
                tell({"id": name, "note": f"{name}: {said}"})
    return free
