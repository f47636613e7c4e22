"""How the runs were made, as values: what differs from the defaults, and on what they ran."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stabkit import methods
from stabkit.methods import blocks
from stabkit.methods.base import Recipe
from stabkit.results.conditions import OWN_AXES, flat, method_label
from stabkit.results.run import Run
from stabkit.spec import ModelConfig, Optimizer, RunSpec, TrainConfig
from stabkit.words import listed, number, plain, scientific

FINGERPRINT = (
    *("stabkit", "python", "torch", "numpy", "platform"),
    *("processor", "cpu_capability", "products", "kernels", "threads", "device"),
)
"""What tells environments apart, in the order shown; the rest that a run notes (its time, its memory) is its own."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SettingRow:
    """One setting over all runs of the page."""

    name: str
    values: tuple[str, ...]
    default: str

    @property
    def differs(self) -> bool:
        return self.values != (self.default,)


@dataclass(frozen=True, kw_only=True, slots=True)
class Environment:
    """One environment and how many runs it made."""

    values: tuple[tuple[str, str], ...]
    runs: int
    seconds: float


def settings(specs: Sequence[RunSpec]) -> list[SettingRow]:
    """Every setting besides method, depth, seed and data: those away from the default or that vary first."""
    bare, train = ModelConfig(encoder_layers=0, decoder_layers=0), TrainConfig(warmup=0, max_tokens=256)
    default = flat(RunSpec(method="", model=bare, train=train))  # of `stabkit sweep`
    rows = [flat(spec) for spec in specs]
    found = [
        SettingRow(
            name=key,
            values=tuple(_text(value) for value in sorted({spec[key] for spec in rows})),
            default=_text(default[key]),
        )
        for key in default
        if key not in OWN_AXES and not key.startswith("task.")
    ]
    return sorted(found, key=lambda setting: not setting.differs)


OPTIMIZER_NAMES: Mapping[Optimizer, str] = {
    "adam": "Adam",
    "adamw": "AdamW",
    "lion": "Lion",
    "muon": "Muon",
    "muon-original": "Muon (original)",
    "sgd": "SGD",
    "radam": "RAdam",
    "radam-torch": "RAdam (torch)",
}
"""As people write them."""


def condition(specs: Sequence[RunSpec]) -> str:
    """`Adam at 5e-4, no warm-up, 250 updates of 512 tokens, seeds 0 to 2, de-en, llama block`: what a sentence about
    these runs holds under, beside methods and depths; "" of none."""
    if not specs:
        return ""
    trains = [spec.train for spec in specs]
    rates = sorted({train.lr for train in trains})
    own = any(spec.recipe == "paper" for spec in specs)
    seeds = sorted({spec.seed for spec in specs})
    whole = seeds == list(range(seeds[0], seeds[-1] + 1)) and len(seeds) > 2
    warmups = sorted({train.warmup for train in trains})
    return listed(
        f"{' and '.join(sorted({OPTIMIZER_NAMES[train.optimizer] for train in trains}))} at "
        + ("each its own recipe's rate" if own else f"{_ends(rates, scientific)}"),
        f"warm-up of {_ends(warmups, str)} updates" if any(warmups) else "no warm-up",
        f"{_ends(sorted({train.steps for train in trains}), str)} "
        f"update{'s' * ({train.steps for train in trains} != {1})} of "
        f"{_ends(sorted({train.max_tokens for train in trains}), str)} tokens",
        f"seeds {seeds[0]} to {seeds[-1]}"
        if whole
        else f"seed{'s' * (len(seeds) > 1)} {' and '.join(map(str, seeds))}",
        ", ".join(sorted({spec.task.name for spec in specs})),
        ", ".join(sorted({f"{blocks.name_of(spec.model)} block" for spec in specs} - {"classic block"})),
    )


def _ends(values: Sequence[Any], say: Callable[[Any], str]) -> str:
    """`5e-4`, `5e-4 and 1e-3`, `5e-4 to 3e-2` of more."""
    if len(values) < 3:
        return " and ".join(map(say, values))
    return f"{say(values[0])} to {say(values[-1])}"


def recipes(specs: Sequence[RunSpec]) -> list[tuple[str, str, str]]:
    """(method, what it was trained with, the source) of the runs whose methods have each their own recipe."""
    by_label = {}
    for spec in specs:
        if spec.recipe == "paper" and (method := methods.of(spec)) and method.recipe:
            by_label[methods.label_of(spec)] = (methods.recipe_words(method.recipe), method.recipe.source)
        elif spec.recipe == "paper" and spec.own:
            kept = {name: getattr(spec.train, name) for name in ("optimizer", "lr", "warmup", "hold")}
            given = methods.recipe_words(Recipe(source="", base_init=spec.model.base_init, **kept))
            by_label[methods.label_of(spec)] = (given, f"its file, {spec.own.file}")
    return [(label, *rest) for label, rest in by_label.items()]


def departures(specs: Sequence[RunSpec]) -> list[str]:
    """What is said of methods whose constants were derived for another block than they were run in."""
    by_text: dict[str, dict[str, None]] = {}
    for spec in specs:
        method = methods.of(spec)
        assumes = spec.own.assumes if spec.own else method.assumes if method else ()
        if reason := blocks.departs(assumes, spec.model):
            by_text.setdefault(f"{reason} ({blocks.name_of(spec.model)} block)", {})[method_label(spec)] = None
    return [f"{', '.join(labels)}: {reason}" for reason, labels in by_text.items()]


def files(runs: Sequence[Run]) -> list[tuple[str, str, str]]:
    """(what a file of one's own was taken for, its sha256, its text) of the runs: to be read, never run."""
    by_file: dict[tuple[str, str], dict[str, None]] = {}
    texts: dict[str, str] = {}
    for run in runs:
        texts |= run.texts
        for source in run.spec.files():
            by_file.setdefault((source.file, source.digest), {})[source.name] = None
    return [
        (plain(f"{file}: {', '.join(names)}"), digest, spelled(texts.get(digest, "")))
        for (file, digest), names in by_file.items()
    ]


def spelled(text: str) -> str:
    """A file's text with its lines, whatever else does not print spelled out."""
    return "\n".join(plain(line.replace("\t", "    ")) for line in text.split("\n"))


def environments(runs: Sequence[Run]) -> list[Environment]:
    """The different environments among the runs, that of most runs first."""
    groups: dict[tuple[tuple[str, str], ...], list[Run]] = {}
    for run in runs:
        values = tuple((name, _text(run.environment[name])) for name in FINGERPRINT if name in run.environment)
        groups.setdefault(values, []).append(run)
    seen = [
        Environment(values=values, runs=len(group), seconds=sum(wall_seconds(run) for run in group))
        for values, group in groups.items()
    ]
    return sorted(seen, key=lambda one: (-one.runs, one.values))


def mixed(environments: Sequence[Environment]) -> list[str]:
    """The names in which the environments differ."""
    names = list(dict.fromkeys(name for one in environments for name, _ in one.values))
    return [name for name in names if len({dict(one.values).get(name, "") for one in environments}) > 1]


def wall_seconds(run: Run) -> float:
    """What the run took; 0 where it does not say."""
    seconds = number(run.environment.get("wall_seconds"))
    return seconds if 0 <= seconds < float("inf") else 0.0


def duration(seconds: float) -> str:
    """`0.8 s`, `42 s`, `7 min 20 s`, `2 h 5 min`."""
    if seconds < 60:
        return f"{seconds:.1f} s" if seconds < 9.95 else f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


def _text(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:g}"
    return plain(str(value))
