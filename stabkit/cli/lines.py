"""Commands as lines of text: what a paper's item consists of."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from stabkit.cli.options import COMMANDS


def words(line: str) -> tuple[str, dict[str, Any]]:
    """`sweep --depths 6 --bleu` → the command and all its options, those not named at their defaults.

    Raises ValueError for what is none: such lines are ours, not a user's.
    """
    command, *rest = shlex.split(line)
    options = {name: default for name, (_, default) in COMMANDS[command].items()}
    while rest:
        name = rest.pop(0).removeprefix("--").replace("-", "_")
        if name not in options:
            raise ValueError(f"{command} has no --{name}")
        options[name] = True if isinstance(options[name], bool) else rest.pop(0)
    return command, options


def line(command: str, options: Mapping[str, Any]) -> str:
    """The command as people type it: every option that is not at its default. The inverse of `words`."""
    told = [command]
    for name, (_, default) in COMMANDS[command].items():
        if options[name] != default:
            told += [f"--{name.replace('_', '-')}", *([] if isinstance(default, bool) else [str(options[name])])]
    return shlex.join(told)
