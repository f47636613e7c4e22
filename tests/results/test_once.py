"""What is kept is kept with its runs alone."""

from __future__ import annotations

from collections.abc import Sequence

from stabkit.results.once import Runs, once
from stabkit.results.run import Run


def test_what_is_made_of_runs_is_made_once_and_of_other_sequences_anew() -> None:
    calls = []

    @once
    def count(runs: Sequence[Run], step: int = 0) -> int:
        calls.append(step)
        return len(runs) + step

    kept = Runs()
    assert [count(kept), count(kept), count(kept, 2), count(kept, 2), count([]), count([])] == [0, 0, 2, 2, 0, 0]
    assert calls == [0, 2, 0, 0]
