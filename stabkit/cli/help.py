"""What `--help` says beside a command's own words: two examples each; what is said to a word that is no command."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any

from typer.core import TyperGroup

from stabkit.errors import UsageError

EXAMPLES: Mapping[str, tuple[str, str]] = {
    "sweep": (
        "stabkit sweep --depths 6,18,50,100",
        "stabkit sweep --models 2026 --depths 18 --steps 250 --warmup 0 --seeds 0..2",
    ),
    "ablate": ("stabkit ablate --alpha-scale 0.25..4", "stabkit ablate --drop deepnorm,init --seeds 0..2"),
    "transfer": (
        "stabkit transfer package.module:function --depths 4,8,16",
        "stabkit transfer --models pre-ln,deepnorm --depths 6,18,50 --highest",
    ),
    "landscape": ("stabkit landscape --model deepnorm", "stabkit landscape --depths 6,18 --points 11"),
    "paper": ("stabkit paper fig4", "stabkit paper all --budget 2h --dry-run"),
    "report": ("stabkit report --store out", "stabkit report --figures pictures"),
    "export": (
        "stabkit export --to csv --out records.csv",
        "stabkit export --to csv --out records.csv",
    ),
    "methods": ("stabkit methods deepnorm --depths 18,100", "stabkit methods ./my.py:function"),
    "schema": ("stabkit schema", "stabkit schema probe"),
    "probe": (
        "stabkit probe package.module:function --depths 6,12,24",
        "stabkit probe model:gpt --strict",
    ),
    "log": ("stabkit log trainer_state.json", "stabkit log run.csv --classes 50257 --against healthy.csv"),
    "audit": ("stabkit audit package.module:function", "stabkit audit model:deep --method deepnorm --depths 18x18"),
    "ls": ("stabkit runs ls", "stabkit runs ls --json"),
    "show": ("stabkit runs show deepnorm-18L", "stabkit runs show deepnorm-18L --json"),
    "verify": ("stabkit runs verify", "stabkit runs verify --json"),
    "rm": ("stabkit runs rm deepnorm-18L-18L-s0", "stabkit runs rm post-ln-6L admin-6L"),
}
"""Two of each command, its shortest use first."""
MEANT: Mapping[str, str] = {
    "slope": "sweep --optimizer sgd --steps 1 --warmup 0 --lr 1e-5 --dtype float64",
    "compare": "sweep --models post-ln,deepnorm",
    "train": "sweep --depths 6,18 --steps 250 --warmup 0",
    "run": "sweep --depths 6,18",
    "start": "sweep",
    "check": "probe package.module:function",
    "test": "probe package.module:function",
    "predict": "sweep --depths 6,18,50,100",
    "forecast": "sweep --depths 6,18,50,100",
    "rate": "transfer --models pre-ln --depths 6,12,24",
    "lr": "transfer --models pre-ln --depths 6,12,24",
    "plot": "report --figures pictures",
    "figures": "report --figures pictures",
    "open": "report",
    "surface": "landscape --model deepnorm",
    "loss": "landscape --model deepnorm",
    "list": "runs ls",
    "ls": "runs ls",
    "show": "runs show",
    "verify": "runs verify",
    "rm": "runs rm",
    "reproduce": "paper all",
    "models": "methods",
    "help": "--help",
    "version": "--version",
    "completion": "--install-completion",
}
"""Words that people try, and the command that does it."""


GROUPED: Mapping[str, tuple[str, ...]] = {
    "Your model": ("probe", "audit", "transfer", "log"),
    "Compare methods": ("sweep", "ablate", "landscape", "methods"),
    "The papers": ("paper",),
    "Stored runs": ("report", "runs", "export", "schema"),
}
"""{a panel of `stabkit --help`: its commands}, in their order."""
PANEL = {name: panel for panel, names in GROUPED.items() for name in names}


class Commands(TyperGroup):
    """The commands, laid out when they are asked for; a word that is none is answered with what was meant."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        command = super().get_command(ctx, cmd_name)
        if command is not None and not isinstance(command, TyperGroup) and not command.epilog:
            lay_out(command, cmd_name)
        if command is not None and ctx.parent is None:
            command.rich_help_panel = PANEL[cmd_name]  # type: ignore[attr-defined]
        return command

    def list_commands(self, ctx: Any) -> list[str]:
        order = list(PANEL)
        return sorted(super().list_commands(ctx), key=lambda name: order.index(name) if name in order else 0)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        word = args[0]
        if ctx.resilient_parsing:  # while a shell completes nothing is said
            return super().resolve_command(ctx, args)
        if self.get_command(ctx, word) is None and not word.startswith("-"):
            if ctx.parent is None and word == "watch":
                raise UsageError(
                    "watch is two lines in your training code: `watch = stabkit.watch(model, optimizer)` before the "
                    "loop, `watch.close()` after it; `stabkit report` writes its page"
                )
            if ctx.parent is None and word in MEANT:
                raise UsageError(f"no command {word!r}: use `stabkit {MEANT[word]}`")
            names = self.list_commands(ctx)
            near = difflib.get_close_matches(word, [*names, *(MEANT if ctx.parent is None else ())], n=1, cutoff=0.6)
            if near and near[0] in MEANT and near[0] not in names:
                raise UsageError(f"no command {word!r}: did you mean `stabkit {MEANT[near[0]]}`?")
            hint = f"; did you mean {near[0]!r}?" if near else f"; the commands are {', '.join(names)}"
            raise UsageError(f"no command {word!r}{hint}")
        return super().resolve_command(ctx, args)


def lay_out(command: Any, name: str) -> None:
    """Examples of a command; no type beside a flag, nor beside an argument, whose name says it."""
    for param in command.params:
        if param.name != "help" and (param.param_type_name == "argument" or param.is_flag):
            param.display_type_rich = _nothing
    if name in EXAMPLES:
        command.epilog = "\n\n".join(("Examples:", *(f"  {text}" for text in EXAMPLES[name])))


def _nothing(ctx: Any) -> None:
    """Nothing."""


ROOT = "\n\n".join(
    (
        "Start here:  stabkit sweep  (half a minute: which methods train at 6, 18, 50 and 100 layers)",
        "Your own model:  stabkit probe package.module:function --depths 6,12,24",
        "Environment variables also set options (STABKIT_SWEEP_SEEDS=0..2). Training commands have --config FILE.",
    )
)
"""What `stabkit` alone says below its commands."""
