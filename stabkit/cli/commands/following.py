"""The next command worth typing, by what has just been found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from stabkit.api import COMMANDS
from stabkit.options import lines
from stabkit.options.ranges import text
from stabkit.storage.store import Run

ASIDE = ("yes", "retry_failed", "bleu")
"""Options of one call alone."""
ENOUGH = 250
"""Updates after which most runs can be judged."""


def after(command: str, params: Mapping[str, Any], runs: Sequence[Run]) -> str:
    """`stabkit sweep --depths 6,18 --steps 250 --warmup 0`: of runs too short to judge, their verdicts; of judged ones
    the rates that they bear; of an ablation the loss around its weights, of a surface the factors; of single steps the
    sweep of the same methods. All that the two share is taken over. Nothing where there is nothing to go on."""
    if not runs:
        return ""
    if command == "sweep":
        if any(run.outcome.word != "early" for run in runs):
            return _line(command, "tolerance", params)
        steps = max(run.spec.train.steps for run in runs)
        longer = {"steps": str(ENOUGH if steps < ENOUGH else 4 * steps)}
        return _line(command, "sweep", {**params, **longer, **({} if params["recipe"] == "paper" else {"warmup": "0"})})
    if command == "slope":
        return _line(command, "sweep", params)
    if command == "ablate" and not str(params["model"]).startswith((".", "/")):
        return _line(command, "landscape", params, "steps", "warmup", "lr")
    if runs[0].spec.method == "deepnorm" and command == "landscape":
        return _line(command, "ablate", params)
    return ""


def _line(before: str, then: str, options: Mapping[str, Any], *kept: str) -> str:
    """The command `then` with these options as far as it takes them; a default of the one before is no wish, where the
    other has a default of its own, but for those `kept`."""
    taken, had = COMMANDS[then], COMMANDS[before]
    wished = {
        name: value
        for name, value in options.items()
        if name in taken
        and name not in ASIDE
        and (name not in had or text(value) != text(had[name]) or name in kept or had[name] == taken[name])
    }
    return f"stabkit {lines.line(then, wished, COMMANDS)}"
