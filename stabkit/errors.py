"""Every error a user can cause, as one tree; each class carries the exit code of the command.

    StabkitError           1   never raised itself: 1 is our own bug
    ├── UsageError         2   an option, a range, a name, a configuration file
    │   └── CorpusError    2   parallel text that cannot be read or does not match; names file and line
    ├── FailedRuns         3   the grid is finished, but some runs have no result
    ├── StoreError         5   the disk: full, read-only, not a directory
    ├── RecipeViolated     6   an audited model is not what its recipe says
    ├── Unstable           7   a probed model fails, or is worse than its baseline; a best rate drifts; a log is dead
    │   └── Stuck          7   a training that its watch was asked to stop is below the band of those that train
    └── Undecided          8   a probed model does not train for sure (--strict)
    Interrupted        128+n   ended by signal n: a BaseException, as KeyboardInterrupt is, so that no code that looks
                               for faults takes it for one

A message says what was needed, what came and what to do, in one line.
"""

from __future__ import annotations

import difflib
import importlib.util
import inspect
import warnings
from collections.abc import Collection, Iterable


class StabkitError(Exception):
    """The root; `exit_code` is what the command exits with."""

    exit_code = 1


class UsageError(StabkitError):
    """The command was asked for something that does not exist or cannot be."""

    exit_code = 2


def require(package: str, what: str, extra: str) -> None:
    """Raise UsageError that names the extra where `what` needs a package that is not installed."""
    if importlib.util.find_spec(package) is None:
        raise UsageError(f"{what} needs {package}: pip install '.[{extra}]' in a clone of stabkit")


class CorpusError(UsageError):
    """Parallel text that cannot be read, does not match line by line, or holds nothing to train on."""


class FailedRuns(StabkitError):
    """Some runs of the grid have no result after every attempt."""

    exit_code = 3


class StoreError(StabkitError):
    """The output directory cannot be read or written."""

    exit_code = 5


class RecipeViolated(StabkitError):
    """A user's model violates the recipe that it was audited against; the findings are printed before."""

    exit_code = 6


class Unstable(StabkitError):
    """A user's model fails or is worse than its baseline, or a best rate drifts; what was found is printed
    before."""

    exit_code = 7


class Stuck(Unstable):
    """Raised by `watch.loss` where the watch has `stop`: this training is below the band of those that train."""


class Undecided(StabkitError):
    """A user's model is not said to train, nor to fail; raised only where asked."""

    exit_code = 8


class Interrupted(BaseException):
    """A signal ended the command; what was finished is kept. No Exception, so that nothing takes it for a fault."""

    def __init__(self, signum: int, message: str) -> None:
        super().__init__(message)
        self.exit_code = 128 + signum


def nearest(word: str, valid: Iterable[str]) -> str:
    """`; did you mean 'x'?` for the valid word nearest to `word`, or nothing when none is near."""
    close = difflib.get_close_matches(word.lower(), list(valid), n=1, cutoff=0.5)
    return f"; did you mean {close[0]!r}?" if close else ""


def warn(sentence: str, category: type[Warning] = UserWarning, between: Collection[str] = ("stabkit",)) -> None:
    """A Python warning at the user's own line: the nearest that is in none of the packages `between`."""
    frame = inspect.currentframe()
    while frame is not None and str(frame.f_globals.get("__name__", "")).partition(".")[0] in between:
        if frame.f_back is None:
            break
        frame = frame.f_back
    where = ("stabkit", 1) if frame is None else (frame.f_code.co_filename, frame.f_lineno)
    registry = None if frame is None else frame.f_globals.setdefault("__warningregistry__", {})
    warnings.warn_explicit(sentence, category, *where, registry=registry)
