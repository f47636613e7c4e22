"""Python's values as the command line's texts: what both read is read once, by the same parser."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from stabkit.cli.options import COMMANDS
from stabkit.errors import UsageError, nearest

ASIDE = ("json", "quiet", "dry_run", "yes", "config", "print_config")
"""Options of the command's own screen and files."""


def read(command: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Every option of a command, those not given at their defaults; raises UsageError with the nearest name."""
    known = {name: default for name, (_, default) in COMMANDS[command].items() if name not in ASIDE}
    for name in given:
        if name not in known:
            raise UsageError(f"{command}() has no option {name!r}{nearest(name, known)}")
    return {**known, **{name: _text(known[name], value) for name, value in given.items()}}


def _text(default: Any, value: Any) -> Any:
    """`6,18` of (6, 18), `0.001` of 1e-3; a flag stays a flag."""
    if isinstance(default, bool):
        return bool(value)
    if isinstance(value, Iterable) and not isinstance(value, str):
        return ",".join(str(each) for each in value)
    return str(value)
