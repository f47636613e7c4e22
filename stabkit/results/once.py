"""What is computed of the runs of one page once, however many figures, titles and claims ask for it.

A page's runs are wrapped up as `Runs`; what a function marked `@once` makes of them is kept beside them, and goes with
them. Of any other sequence of runs it is computed again. What is kept is shared: change a copy.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from stabkit.results.run import Run

P = ParamSpec("P")
T = TypeVar("T")


class Runs(tuple[Run, ...]):
    """Runs that do not change while what was made of them is kept."""

    kept: dict[Hashable, Any]

    def __init__(self, runs: Any = ()) -> None:
        self.kept = {}

    @classmethod
    def of(cls, runs: Iterable[Run]) -> Runs:
        """These runs; what is kept beside them stays."""
        return runs if isinstance(runs, cls) else cls(runs)


def once(function: Callable[P, T]) -> Callable[P, T]:
    """The function, its runs its first argument and all others positional; of `Runs` it is called once."""

    @wraps(function)
    def call(*args: P.args, **options: P.kwargs) -> T:
        runs: Any = args[0] if args else None
        if not isinstance(runs, Runs) or options:
            return function(*args, **options)
        key = (function, *args[1:])
        if key not in runs.kept:
            runs.kept[key] = function(*args, **options)
        value: T = runs.kept[key]
        return value

    return call
