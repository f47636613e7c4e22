"""The next command worth typing, by what has just been found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from stabkit.cli import lines
from stabkit.cli.options import COMMANDS
from stabkit.storage.store import Run

ASIDE = ("json", "quiet", "yes", "retry_failed", "config", "print_config", "dry_run")
"""Options of one call alone."""
ALIKE = ("depths", "arch", "block", "hidden", "ffn", "heads", "data", "source", "target", "vocab", "out")
"""Options that another command takes over."""


def after(command: str, params: Mapping[str, Any], runs: Sequence[Run]) -> str:
    """`stabkit sweep --depths 6,18 --steps 250 --warmup 0`: of runs too short to judge, their verdicts; of judged ones
    the rates that they bear; of an ablation the loss around its weights, of a surface the factors; of single steps the
    sweep of the same methods. Nothing where there is nothing to go on from."""
    if not runs:
        return ""
    judged = any(run.outcome.get("outcome") != "early" for run in runs)
    one = {"model": runs[0].spec.method}
    if command == "sweep":
        if not judged:
            return _line("sweep", {**params, "steps": "250", "warmup": "0"})
        return _line("tolerance", {"models": params["models"], **_alike(params)})
    if command == "slope":
        return _line("sweep", {"models": params["models"], **_alike(params)})
    if command == "ablate":
        return _line("landscape", {**one, **_alike(params)})
    return _line("ablate", {"model": params["model"], **_alike(params)}) if command == "landscape" else ""


def _alike(params: Mapping[str, Any]) -> dict[str, Any]:
    return {name: params[name] for name in ALIKE}


def _line(command: str, options: Mapping[str, Any]) -> str:
    """The command with these options, all others at its defaults."""
    taken = COMMANDS[command]
    known = {name: value for name, value in options.items() if name in taken and name not in ASIDE}
    return f"stabkit {lines.line(command, {**{name: default for name, (_, default) in taken.items()}, **known})}"
