"""How long the jobs of a command still take, from how far each of them is."""

from __future__ import annotations

import heapq
from collections.abc import Mapping

PRIOR = 2.0
"""Seconds of work that an estimate counts for beside what was done since."""


class Eta:
    """Jobs that workers do in their order. `shares`: the seconds that each is estimated to take, by its id, in the
    order in which they begin; of jobs that are not named there, `count` in all, each is as much work as another."""

    def __init__(self, count: int, shares: Mapping[str, float] = {}, workers: int = 1) -> None:
        self.count, self.shares, self.workers = count, shares, workers
        self.parts, self._first = dict[str, float](), dict[str, tuple[float, float]]()
        self._running, self._spent = dict[str, None](), dict[str, float]()
        self._begin: tuple[float, float] | None = None
        self._now = 0.0

    def reached(self, job: str, part: float, now: float) -> None:
        """So much of a job is done, 1 is all of it; `now`: seconds of any clock."""
        began, _ = self._first.setdefault(job, (now, part))
        self.parts[job], self._spent[job], self._now = part, now - began, now
        if part < 1:
            self._running[job] = None
        else:
            self._running.pop(job, None)
        self.workers = max(self.workers, len(self._running))
        self._begin = self._begin or (now, self._done())

    def done(self) -> float:
        """Of all work, 0 to 1."""
        return self._done() / (sum(self.shares.values()) or max(self.count, 1))

    def left_of(self, job: str) -> float:
        """Seconds until a job ends, at its own pace since it was first heard of, at first as estimated, else 0."""
        part, (_, first) = self.parts[job], self._first[job]
        return self._share(job) * (1 - part) * self._pace(self._spent[job], self._share(job) * (part - first), PRIOR)

    def left(self) -> float:
        """Seconds until the last of all ends: those at work at their own pace, those that wait begun by whoever is
        free, at the pace of all since the first was heard of, likewise."""
        if self._begin is None:
            return 0.0
        begin, before = self._begin
        pace = self._pace(self.workers * (self._now - begin), self._done() - before, self.workers * PRIOR)
        ends = [self.left_of(job) for job in self._running]
        ends += [0.0] * (self.workers - len(ends))
        heapq.heapify(ends)
        waiting = [share for job, share in self.shares.items() if job not in self.parts]
        for share in waiting or [1.0] * (self.count - len(self.parts)):
            heapq.heapreplace(ends, ends[0] + share * pace)
        return max(ends)

    def _pace(self, seconds: float, work: float, prior: float) -> float:
        prior *= bool(self.shares)
        return (seconds + prior) / (work + prior) if work + prior > 0 else 0.0

    def _done(self) -> float:
        return sum(self._share(job) * part for job, part in self.parts.items())

    def _share(self, job: str) -> float:
        return self.shares.get(job, 1.0)
