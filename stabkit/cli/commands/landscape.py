"""`stabkit landscape`: as what trains; of a user's own model a few lines and the files."""

from __future__ import annotations

from stabkit import api
from stabkit.cli import console
from stabkit.cli.command import Invocation
from stabkit.cli.commands.train import followed, train
from stabkit.errors import UsageError
from stabkit.options import ranges
from stabkit.report.result import ModelSurface


def landscape(invocation: Invocation) -> None:
    """Train and draw, or draw alone."""
    params = invocation.params
    beside = [ranges.flag(name) for name in ("json", "dry_run") if params[name]]
    if params["factory"] and beside:
        raise UsageError(f"--factory does not go with {beside[0]}")
    if not params["factory"] or params["print_config"]:
        train(invocation, api.landscape)
        return
    result: ModelSurface = followed(api.landscape, invocation)
    for sentence in result.sentences:
        console.say(sentence)
    console.say(f"surface: {result.page}, .png, .npz")
