"""Which jobs a command begins with, of several that share a store and a plan: its own part, then the others'."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stabkit.storage.jobs import Job


@dataclass(frozen=True, slots=True)
class Shard:
    """Part `number` of `of`; 1 of 1 is the whole."""

    number: int = 1
    of: int = 1

    def order(self, jobs: Sequence[Job]) -> list[Job]:
        """Every `of`-th job, which are as long as the others' together; then the next part's, and so on round."""
        parts = [list(jobs[(self.number - 1 + i) % self.of :: self.of]) for i in range(self.of)]
        return [job for part in parts for job in part]
