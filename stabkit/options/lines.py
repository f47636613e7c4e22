"""Commands as lines of text: what a paper's item consists of, and how a call of the API is typed."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from stabkit.options.commands import COMMANDS
from stabkit.options.ranges import flag, text


def words(line: str) -> tuple[str, dict[str, Any]]:
    """`sweep --depths 6 --yes` → the command and the options that it names.

    Raises ValueError for what is none: such lines are ours, not a user's.
    """
    command, *rest = shlex.split(line)
    options: dict[str, Any] = {}
    while rest:
        name = rest.pop(0).removeprefix("--").replace("-", "_")
        if name not in COMMANDS[command]:
            raise ValueError(f"{command} has no --{name}")
        options[name] = True if isinstance(COMMANDS[command][name], bool) else rest.pop(0)
    return command, options


def line(command: str, options: Mapping[str, Any]) -> str:
    """The command as people type it: every option that is not at its default. The inverse of `words`."""
    typed = shlex.split(command)  # `probe package.module:function`
    for name, default in COMMANDS[typed[0]].items():
        if name in options and text(options[name]) != text(default):
            value = [] if isinstance(default, bool) else [text(options[name])]
            typed += [flag(name), *value]
    return shlex.join(typed)
