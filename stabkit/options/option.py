"""What an option is beside its name, type and default, which its field has: written once, in `Annotated`, in
`commands.py`; the API and the command line read it there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from os import PathLike
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

HOME = "STABKIT_HOME"
"""The environment variable of the store where --out names none."""
TRAIN = "What to train"
ON = "On what"
LONG = "How it is trained, and how long"
OUT = "What is measured, and what comes out"
WHERE = "Where it runs"
PANELS = (TRAIN, ON, LONG, OUT, WHERE)
"""The panels of `--help`, in their order."""


@dataclass(frozen=True, slots=True)
class Option:
    """One option: what it says, in which panel it stands and what a value looks like there."""

    help: str
    panel: str
    metavar: str = "WORD"
    flags: tuple[str, ...] = ()
    """Other names, which are understood too."""
    envvar: str = ""
    """An environment variable of its own, in place of STABKIT_COMMAND_OPTION."""
    completion: str = ""
    """What a shell offers: one of COMPLETIONS in `cli/command.py`."""


@dataclass(frozen=True, slots=True)
class Argument:
    """What stands on a command line without an option's name."""

    help: str
    metavar: str
    completion: str = ""


UNIONS = (Union, UnionType)
PLAIN = {Sequence: "list", Callable: "function", PathLike: "Path", Literal: "str", NoneType: ""}


@dataclass(frozen=True, slots=True)
class PlainType:
    """An annotation as a reader of a signature needs it: `int | list`. What takes a list takes its text too; that None
    is taken, its default says."""

    annotation: Any

    def __repr__(self) -> str:
        if isinstance(self.annotation, str):
            return self.annotation
        kind = get_args(self.annotation)[0]  # Annotated
        kinds = [get_origin(one) or one for one in (get_args(kind) if get_origin(kind) in UNIONS else (kind,))]
        names = dict.fromkeys(PLAIN.get(one, getattr(one, "__name__", str(one))) for one in kinds)
        return " | ".join(name for name in names if name and (name != "str" or "list" not in names))
