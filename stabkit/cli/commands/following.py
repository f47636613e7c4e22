"""The next command worth typing, by what has just been found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from stabkit.cli import lines
from stabkit.cli.options import COMMANDS
from stabkit.storage.store import Run

ASIDE = (
    *("json", "quiet", "yes", "retry_failed", "config", "print_config", "dry_run", "seeds", "dtype", "snapshots"),
    *("given", "typed", "bleu"),
)
"""Options of one call alone, and those whose defaults differ because the commands do."""
ENOUGH = 250
"""Updates after which most runs can be judged."""


def after(command: str, params: Mapping[str, Any], runs: Sequence[Run]) -> str:
    """`stabkit sweep --depths 6,18 --steps 250 --warmup 0`: of runs too short to judge, their verdicts; of judged ones
    the rates that they bear; of an ablation the loss around its weights, of a surface the factors; of single steps the
    sweep of the same methods. All that the two share is taken over. Nothing where there is nothing to go on."""
    if not runs:
        return ""
    if command == "sweep":
        if any(run.outcome.get("outcome") != "early" for run in runs):
            return _line("tolerance", params)
        steps = max(run.spec.train.steps for run in runs)
        longer = {"steps": str(ENOUGH if steps < ENOUGH else 4 * steps)}
        return _line("sweep", {**params, **longer, **({} if params["recipe"] == "paper" else {"warmup": "0"})})
    if command == "slope":
        return _line("sweep", params)
    if command == "ablate":
        return "" if str(params["model"]).startswith((".", "/")) else _line("landscape", params)
    if runs[0].spec.method == "deepnorm" and command == "landscape":
        return _line("ablate", params)
    return ""


def _line(command: str, options: Mapping[str, Any]) -> str:
    """The command with those of these options that it takes, all others at its defaults."""
    taken = COMMANDS[command]
    known = {name: value for name, value in options.items() if name in taken and name not in ASIDE}
    return f"stabkit {lines.line(command, {**{name: default for name, (_, default) in taken.items()}, **known})}"
