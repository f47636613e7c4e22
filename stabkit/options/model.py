"""What is trained: methods, the block and sizes of their model, the optimisation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, get_args

from stabkit import methods
from stabkit.errors import UsageError
from stabkit.methods import formula
from stabkit.methods.base import Method
from stabkit.methods.blocks import BLOCKS, departs
from stabkit.options import own, ranges
from stabkit.options.commands import ArchitectureOptions, TrainingOptions
from stabkit.spec import (
    DECAY,
    MOMENTUM,
    SHORTEST_JUDGED,
    BaseInit,
    Block,
    Chosen,
    FfnKind,
    ModelConfig,
    Norm,
    Optimizer,
    Positions,
    RecipeName,
    TrainConfig,
)


def model(options: ArchitectureOptions, depth: tuple[int, int], widths: Sequence[int]) -> ModelConfig:
    """The model of the first depth and width; every width must suit its heads."""
    block = BLOCKS[ranges.choice("--block", options.block, get_args(Block))]
    asked = {"norm": options.norm, "ffn_kind": options.ffn_kind, "positions": options.positions}
    kinds = {"norm": get_args(Norm), "ffn_kind": get_args(FfnKind), "positions": get_args(Positions)}
    settings = {
        name: ranges.choice(ranges.flag(name), value, kinds[name]) if value else block[name]
        for name, value in asked.items()
    }
    made = ModelConfig(
        encoder_layers=depth[0],
        decoder_layers=depth[1],
        hidden=widths[0],
        ffn=ffn(options.ffn, widths[0]),
        heads=ranges.whole("--heads", options.heads, 1, 128),
        base_init=ranges.choice("--base-init", options.base_init, get_args(BaseInit)),
        tied=not options.untied,
        qk_norm=options.qk_norm or block["qk_norm"],
        biases=block["biases"] and not options.no_biases,
        **settings,
    )
    for hidden in widths:
        if hidden % made.heads or hidden % 2:
            raise UsageError(f"--hidden {hidden} must be even and divide by --heads {made.heads}")
        if made.positions == "rotary" and hidden // made.heads % 2:
            raise UsageError(
                f"--positions rotary rotates pairs of a head's entries: --hidden {hidden} over --heads {made.heads} is "
                f"{hidden // made.heads}, which must be even"
            )
    return made


def train(options: TrainingOptions, max_tokens: int) -> TrainConfig:
    """How the runs are trained, but for what is an axis."""
    steps = ranges.whole("--steps", options.steps, 0, 10_000_000)
    verdict_at = ranges.whole("--verdict-at", options.verdict_at, 0, 10_000_000)
    if verdict_at and not SHORTEST_JUDGED <= verdict_at < steps:
        raise UsageError(
            f"--verdict-at {verdict_at} must lie between {SHORTEST_JUDGED} (a verdict needs that many updates) "
            f"and --steps {steps} (runs that are still undecided continue to there)"
        )
    optimizer: Optimizer = ranges.choice("--optimizer", options.optimizer, get_args(Optimizer))
    return TrainConfig(
        steps=steps,
        optimizer=optimizer,
        weight_decay=_of_some("--weight-decay", options.weight_decay, optimizer, DECAY, 1e3),
        momentum=_of_some("--momentum", options.momentum, optimizer, MOMENTUM, 0.9999),
        max_tokens=max_tokens,
        dropout=ranges.real("--dropout", options.dropout, 0.0, 0.99),
        clip=ranges.real("--clip", options.clip, 0.0, 1e9),
        label_smoothing=ranges.real("--label-smoothing", options.label_smoothing, 0.0, 0.99),
        stop_when_decided=options.stop_when_decided,
        verdict_at=verdict_at,
    )


UNSCALED: Mapping[Optimizer, str] = {
    "sgd": "the steps here are those of SGD",
    "muon": "a Muon step has the same size for every gradient (arXiv 2603.00541 has a recipe, not built here)",
    "muon-original": "a Muon step has the same size for every gradient (arXiv 2603.00541 has a recipe, not built here)",
}
"""Under which optimisers a method's factors on rate and ε, Adam's, do not hold, and why. Lion's step is a sign, as
Adam's first are, and has no ε: there they do."""


def _of_some(option: str, given: Any, optimizer: Optimizer, defaults: Mapping[Optimizer, float], most: float) -> float:
    """A setting that only some optimisers have; refused for another."""
    if given is None:
        return defaults.get(optimizer, 0.0)
    value = ranges.real(option, given, 0.0, most)
    if value and optimizer not in defaults:
        raise UsageError(f"{option} {given}: {optimizer} has none; {', '.join(defaults)} have")
    return value


def chosen(
    models: str | Sequence[str],
    depths: tuple[tuple[int, int], ...],
    config: ModelConfig,
    recipe: RecipeName,
    optimizer: Optimizer,
    files: own.Files,
) -> tuple[tuple[Chosen, ...], tuple[str, ...]]:
    """The methods named, and notes: what a set leaves out, whose constants were derived for another block. A method
    named that its papers do not define here is refused."""
    choices: dict[str, Chosen] = {}
    notes: list[str] = []
    apart: dict[str, list[str]] = {}
    for item in ranges.names("--models", models) or [""]:
        if not item:
            raise UsageError(f"--models: {ranges.text(models)!r} has an empty item; `stabkit methods` lists all")
        for choice, method in named(item, files, config, depths):
            label = choice.own.label if choice.own else methods.label(choice.key, choice.options)
            label = methods.with_options(label, choice.options) if choice.own else label
            reasons = [reason for n, m in depths if (reason := method.undefined(n, m))]
            if recipe == "paper" and method.recipe is None:
                reasons.append("it has no recipe of its own here, which --recipe paper needs")
            if method.scaled and optimizer in UNSCALED:
                reasons.append(f"its factors on rate and ε are for Adam, and {UNSCALED[optimizer]} ({method.source})")
            if reasons and item.strip() not in methods.SETS:
                raise UsageError(f"--models: {method.label} is not defined here: {reasons[0]}")
            if label in choices and choices[label] != choice:
                raise UsageError(f"--models: two methods are both called {label}; rename one")
            if reasons:
                notes.append(f"{method.label} is left out: {reasons[0]}")
                continue
            choices[label] = choice
            if reason := departs(method.assumes, config):
                apart.setdefault(reason, []).append(label)
    notes += [f"{', '.join(labels)}: {reason}" for reason, labels in apart.items()]
    return tuple(choices.values()), tuple(notes)


def named(
    item: str,
    files: own.Files,
    config: ModelConfig = formula.PLAIN,
    depths: Sequence[tuple[int, int]] = ((6, 6),),
) -> list[tuple[Chosen, Method]]:
    """What a word of --models names: one method, or a set of built-in ones. A file's is looked at in a block and at
    depths."""
    if several := methods.SETS.get(item.strip()):
        return [(Chosen(key=key), methods.build(key, {})) for key in several]
    if given := own.method(item, files, config, depths):
        return [given]
    key, options = methods.parse(item)
    return [(Chosen(key=key, options=options), methods.build(key, options))]


def one(item: str, files: own.Files) -> tuple[Chosen, Callable[..., Method]]:
    """The one method of a word, and the function that makes it; raises UsageError where there are several."""
    choices = named(item, files)
    if len(choices) > 1:
        raise UsageError(f"{item} is not one method; `stabkit methods` lists them")
    chosen = choices[0][0]
    return chosen, own.row(chosen.own, files) if chosen.own else methods.row(chosen.key)


def own_recipe(given: Mapping[str, Any]) -> None:
    """Refuse a setting that each method's own recipe decides, where it is among those given."""
    for name in ("base_init", "optimizer", "lr", "warmup"):
        if name in given:
            option = ranges.flag(name)
            raise UsageError(
                f"--recipe paper gives each method its own {option}; leave out {option} {ranges.text(given[name])}"
            )


def ffn(given: str | int, hidden: int) -> int:
    """--ffn: a number, or `2x` for twice the width."""
    if isinstance(given, str) and "," in given:
        raise UsageError(f"--ffn takes one number, or a factor of the width like 2x; got {given!r}")
    if isinstance(given, str) and given.endswith("x"):
        return hidden * ranges.whole("--ffn", given.removesuffix("x"), 1, 32)
    return ranges.whole("--ffn", given, 1, 32768)
