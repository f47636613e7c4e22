"""Python's values as the command line's texts: what both read is read once, by the same parser."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

from stabkit.cli.options import COMMANDS
from stabkit.errors import UsageError, nearest

ASIDE = ("json", "quiet", "dry_run", "config", "print_config", "bleu", "beam", "length_penalty")
"""Options of the command's own screen and files, and translations, of which a table of runs says nothing."""


def read(command: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Every option of a command, those not given at their defaults; raises UsageError with the nearest name."""
    known = {name: default for name, (_, default) in COMMANDS[command].items() if name not in ASIDE}
    for name in given:
        if name not in known:
            raise UsageError(f"{command}() has no option {name!r}{nearest(name, known)}")
    told = {name: _text(name, known[name], value) for name, value in given.items() if value is not None}
    told.setdefault("out", os.environ.get("STABKIT_HOME", ""))
    return {name: default for name, (_, default) in COMMANDS[command].items()} | told


def _text(name: str, default: Any, value: Any) -> Any:
    """`6,18` of (6, 18), `60x12` of [(60, 12)], `0.001` of 1e-3; a flag is True or False."""
    if hasattr(value, "tolist"):
        value = value.tolist()  # numpy's and torch's own
    if isinstance(default, bool):
        if not isinstance(value, bool):
            raise UsageError(f"{name} is True or False, not {value!r}")
        return value
    if isinstance(value, bytes | bool):
        raise UsageError(f"{name} takes a text or numbers, not {value!r}")
    if isinstance(value, Iterable) and not isinstance(value, str):
        return ",".join("x".join(map(str, each)) if isinstance(each, tuple) else str(each) for each in value)
    return str(value)
