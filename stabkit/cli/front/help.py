"""How the commands stand in `--help`: options in panels, what a value looks like, examples; and what is said to a word
that is no command."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any

from typer.core import TyperGroup

from stabkit.errors import UsageError

TRAIN, ON, LONG, WHERE, OUT = (
    "What to train",
    "On what",
    "How it is trained, and how long",
    "Where it runs",
    "What is measured, and what comes out",
)
PANELS: Mapping[str, tuple[str, ...]] = {
    TRAIN: (
        *("models", "model", "against", "factory", "weights", "depths", "arch", "recipe", "alpha_scale", "beta_scale"),
        *("grid", "drop", "drop_warmup", "hidden", "ffn", "heads", "base_init", "untied", "block", "norm", "ffn_kind"),
        *("positions", "qk_norm", "no_biases", "blocks", "method"),
    ),
    ON: ("data", "source", "target", "vocab", "max_tokens", "seeds"),
    LONG: (
        *("steps", "warmup", "lr", "rate", "optimizer", "dropout", "clip", "label_smoothing", "stop_when_decided"),
        *("verdict_at", "budget"),
    ),
    OUT: (
        *("bleu", "beam", "length_penalty", "probes", "record_every", "snapshots", "at", "range", "points"),
        *("cut_points", "direction_seeds", "normalise", "one_dimensional", "path", "engine", "between"),
        *("figures", "open", "what", "to", "whole", "out", "store", "json", "quiet", "dry_run", "config"),
        *("print_config", "strict", "no_fail", "markdown"),
    ),
    WHERE: (
        *("workers", "device", "dtype", "executor", "scheduler", "checkpoint_every", "run_timeout", "retry_failed"),
        *("yes", "fresh"),
    ),
}
"""{panel: its options in their order}; of a command with few options all stand in one."""
FEW = 8
METAVARS: Mapping[str, tuple[str, ...]] = {
    "METHODS": ("models",),
    "METHOD": ("model", "against", "method"),
    "DEPTHS": ("depths",),
    "SEEDS": ("seeds", "direction_seeds"),
    "RATES": ("lr", "rate"),
    "FACTORS": ("alpha_scale", "beta_scale"),
    "UPDATES": ("steps", "warmup", "drop_warmup", "verdict_at", "record_every", "checkpoint_every", "at"),
    "N": ("heads", "vocab", "workers", "beam", "snapshots", "points", "cut_points"),
    "WIDTHS": ("hidden", "ffn"),
    "TOKENS": ("max_tokens",),
    "X": ("dropout", "clip", "label_smoothing", "length_penalty", "range"),
    "DIR": ("data", "out", "figures", "store", "to"),
    "FILE": ("config", "weights"),
    "LANG": ("source", "target"),
    "FILE:NAME": ("probes",),
    "MODULE:NAME": ("factory",),
    "TIME": ("budget",),
    "SECONDS": ("run_timeout",),
    "URL": ("scheduler",),
    "RUNS": ("between",),
    "PATTERN": ("blocks",),
}
"""{what a value looks like: the options that take one}; others take a WORD."""
ARGUMENTS = {"runs": "RUNS", "run": "RUN", "factory": "MODULE:NAME", "items": "ITEMS", "model": "[METHOD]"}
"""{argument: how it is written}."""
EXAMPLES: Mapping[str, tuple[str, str]] = {
    "sweep": (
        "stabkit sweep --depths 6,18,50,100",
        "stabkit sweep --models today --depths 18 --steps 250 --warmup 0 --seeds 0..2",
    ),
    "ablate": ("stabkit ablate --alpha-scale 0.25..4", "stabkit ablate --drop deepnorm,init --seeds 0..2"),
    "slope": ("stabkit slope --depths 6,18,50", "stabkit slope --models post-ln,deepnorm --depths 6,18 --seeds 0"),
    "tolerance": (
        "stabkit tolerance --depths 6,18,50",
        "stabkit tolerance --depths 12 --hidden 64,128,256 --ffn 2x",
    ),
    "landscape": ("stabkit landscape --model deepnorm", "stabkit landscape --depths 6,18 --points 11"),
    "paper": ("stabkit paper fig4", "stabkit paper all --budget 2h --dry-run"),
    "report": ("stabkit report --open", "stabkit report --figures pictures"),
    "export": ("stabkit export --to csv --out records.csv", "stabkit export --what translations --to jsonl"),
    "fold": ("stabkit fold admin-18L", "stabkit fold deepnorm-6L --to folded"),
    "methods": ("stabkit methods deepnorm --depths 18,100", "stabkit methods check ./my.py:function"),
    "probe": (
        "stabkit probe package.module:function --depths 6,12,24",
        "stabkit probe model:gpt --strict",
    ),
    "audit": ("stabkit audit package.module:function", "stabkit audit model:deep --method deepnorm --depths 18x18"),
    "ls": ("stabkit runs ls", "stabkit runs ls --json"),
    "show": ("stabkit runs show deepnorm-18L", "stabkit runs show deepnorm-18L --json"),
    "verify": ("stabkit runs verify", "stabkit runs verify --json"),
    "rm": ("stabkit runs rm deepnorm-18L-18L-s0", "stabkit runs rm post-ln-6L admin-6L"),
}
"""Two of each command, its shortest use first."""
MEANT: Mapping[str, str] = {
    "compare": "sweep --models post-ln,deepnorm",
    "train": "sweep --depths 6,18 --steps 250 --warmup 0",
    "run": "sweep --depths 6,18",
    "start": "sweep",
    "check": "probe package.module:function",
    "test": "probe package.module:function",
    "predict": "sweep --depths 6,18,50,100",
    "forecast": "sweep --depths 6,18,50,100",
    "rate": "tolerance --depths 6,18",
    "lr": "tolerance --depths 6,18",
    "plot": "report --figures pictures",
    "figures": "report --figures pictures",
    "open": "report --open",
    "surface": "landscape --model deepnorm",
    "loss": "landscape --model deepnorm",
    "list": "runs ls",
    "ls": "runs ls",
    "show": "runs show",
    "verify": "runs verify",
    "rm": "runs rm",
    "reproduce": "paper all",
    "models": "methods",
    "watch": "report",
    "help": "--help",
    "version": "--version",
    "completion": "--install-completion",
}
"""Words that people try, and the command that does it."""
OTHERWISE = {"models": "--model", "model": "--models"}
"""An option's other number, which is understood too."""


class Commands(TyperGroup):
    """The commands, laid out when they are asked for; a word that is none is answered with what was meant."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        found = super().get_command(ctx, cmd_name)
        if found is not None and not isinstance(found, TyperGroup) and not found.epilog:
            lay_out(found, cmd_name)
        return found

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        word = args[0]
        if ctx.resilient_parsing:  # while a shell completes nothing is said
            return super().resolve_command(ctx, args)
        if self.get_command(ctx, word) is None and not word.startswith("-"):
            if ctx.parent is None and word in MEANT:
                raise UsageError(f"there is no command {word!r}: that is `stabkit {MEANT[word]}`")
            names = self.list_commands(ctx)
            near = difflib.get_close_matches(word, [*names, *(MEANT if ctx.parent is None else ())], n=1, cutoff=0.6)
            if near and near[0] in MEANT and near[0] not in names:
                raise UsageError(f"there is no command {word!r}: did you mean `stabkit {MEANT[near[0]]}`?")
            hint = f"; did you mean {near[0]!r}?" if near else f"; there are {', '.join(names)}"
            raise UsageError(f"there is no command {word!r}{hint}")
        return super().resolve_command(ctx, args)


def lay_out(command: Any, name: str) -> None:
    """Panels, metavars and examples of a command; no environment variable, which `stabkit --help` says once for all."""
    places = {option: (panel, rank) for panel, options in PANELS.items() for rank, option in enumerate(options)}
    panels = list(PANELS)
    options = [one for one in command.params if one.param_type_name == "option" and one.name != "help"]
    for one in command.params:
        one.show_envvar = False
        if one not in options:
            one.metavar = one.metavar or ARGUMENTS.get(one.name)
            one.display_type_rich = _nothing
            continue
        if len(options) > FEW and one.name in places:
            one.rich_help_panel = places[one.name][0]
        if one.is_flag:
            one.display_type_rich = _nothing
        elif not one.metavar:
            one.metavar = next((word for word, of in METAVARS.items() if one.name in of), "WORD")
        if one.name in OTHERWISE and OTHERWISE[one.name] not in one.opts:
            one.opts = [*one.opts, OTHERWISE[one.name]]
    if len(options) > FEW:
        rank = {name: (panels.index(panel), at) for name, (panel, at) in places.items()}
        command.params.sort(key=lambda one: rank.get(one.name, (-1 if one not in options else len(panels), 0)))
    if name in EXAMPLES:
        command.epilog = "\n\n".join(("Examples:", *(f"  {text}" for text in EXAMPLES[name])))


def _nothing(ctx: Any) -> None:
    """No type beside a flag, nor beside an argument, whose name says it."""


ROOT = "\n\n".join(
    (
        "Start here:  stabkit sweep  (two minutes: who trains at 6, 18, 50 and 100 layers)",
        "Your own model:  stabkit probe package.module:function --depths 6,12,24",
        "Options are read from the environment too (STABKIT_SWEEP_SEEDS=0..2); what trains has --config FILE.",
    )
)
"""What `stabkit` alone says below its commands."""
