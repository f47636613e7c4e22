"""What may be compared with what: a run's label, its condition, its place in the order, and the reference step.

Runs are put together (a band, a median) only when nothing but the seed differs. Whatever else differs among the
runs shown, besides method and depth, is spelled out as their *condition* ("no warm-up, lr 0.002"), so that no picture
and no sentence mixes two settings. numpy only: the terminal's verdict matrix uses it too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, get_args

from stabkit import methods
from stabkit.methods import blocks, output_norm
from stabkit.methods.base import Group
from stabkit.methods.groups import group_of
from stabkit.results.once import Runs, once
from stabkit.results.outcome import displayed
from stabkit.results.run import Run
from stabkit.spec import ModelConfig, RunSpec, TaskConfig, TrainConfig
from stabkit.words import plain

OWN_AXES = ("method", "options", "model.encoder_layers", "model.decoder_layers", "seed", "own", "probes")
"""What has a place of its own in every table and picture, or changes nothing in it; all other settings make the
condition."""

GROUPS: tuple[str, ...] = (*get_args(Group), "other")
"""Of methods, in the order of tables; `other` are those that this version does not know."""
MOST_IN_COLOUR = 6
"""Methods that a picture shows in colour side by side; of more a few are, and each is named where its line ends."""
PAIR = {"post-ln", "deepnorm"}
"""The two that DeepNet compares throughout."""
RECIPE = ("model.base_init", "train.optimizer", "train.lr", "train.warmup", "train.hold")
"""What a method's own recipe decides."""

OF_THE_BLOCK = tuple(f"model.{name}" for name in blocks.BLOCKS["classic"])
"""Settings that are told by the block's name."""
NO_SETTING = frozenset((*OWN_AXES, *OF_THE_BLOCK))
PARTS: dict[str, Any] = {"model": ModelConfig, "train": TrainConfig, "task": TaskConfig}
FIELDS = tuple(
    (whole.name, tuple((f"{whole.name}.{part.name}", part.name) for part in fields(PARTS[whole.name])))
    if whole.name in PARTS
    else (whole.name, ())
    for whole in fields(RunSpec)
)
"""(field, ((flat key, its field), …) of one that has fields of its own): asked of every run by every figure."""

WORDS = {
    "model.block": "{} block",
    "train.warmup": "warm-up {}",
    "train.lr": "lr {:g}",
    "train.optimizer": "{}",
    "train.hold": "{} updates at the full rate",
    "train.steps": "{} steps",
    "train.max_tokens": "{} tokens per batch",
    "train.dropout": "dropout {:g}",
    "train.clip": "clip {:g}",
    "train.weight_decay": "weight decay {:g}",
    "train.momentum": "momentum {:g}",
    "train.label_smoothing": "label smoothing {:g}",
    "train.adam_beta1": "β₁ {:g}",
    "train.adam_beta2": "β₂ {:g}",
    "train.adam_eps": "ε {:g}",
    "alpha_scale": "α × {:g}",
    "beta_scale": "β × {:g}",
    "task.name": "{}",
    "task.vocab": "vocabulary {}",
    "task.digest": "corpus {:.8}",
    "model.hidden": "d = {}",
    "model.ffn": "FFN {}",
    "model.heads": "{} heads",
    "model.base_init": "{}",
    "device": "{}",
    "dtype": "{}",
    "file": "{}",
}
"""How a setting reads in a condition; the others read as their own name and value."""


@dataclass(frozen=True, slots=True)
class Condition:
    """Settings that runs share: those that set them apart from the others shown, or all. Equal where these are equal;
    text is made of it where people read it."""

    settings: tuple[tuple[str, Any], ...] = ()
    """(`train.lr`, 0.0005), in the order in which they are told. A pair of values stands for a range of both."""
    untold: frozenset[str] = field(default=frozenset(), compare=False)
    """Settings that others imply, left out of the text."""
    number: int = field(default=0, compare=False)
    """Of conditions that read alike, counted from 1; 0 of one that reads like no other."""

    def __bool__(self) -> bool:
        """Whether something sets them apart; an empty value ("" of a run without a file) says nothing."""
        return self.number > 0 or any(key not in self.untold and value != "" for key, value in self.settings)

    def __str__(self) -> str:
        return self.text

    @property
    def text(self) -> str:
        """`no warm-up, lr 0.002`; "" where nothing sets them apart."""
        phrases = [_phrase(key, value) for key, value in self.settings if key not in self.untold]
        text = plain(", ".join(filter(None, phrases)))
        return f"{text} [{self.number}]" if self.number else text

    @property
    def key(self) -> str:
        """`train.warmup=0 train.lr=0.0005`: the same for a file, whatever the words are."""
        return " ".join(f"{key}={value}" for key, value in self.settings)

    def of(self, *keys: str) -> Condition:
        """These of its settings alone, in its own order."""
        return Condition(tuple(item for item in self.settings if item[0] in keys))

    def but(self, key: str, value: Any) -> Condition:
        """The same with another value of one setting."""
        return Condition(tuple((name, value if name == key else held) for name, held in self.settings))


@dataclass(frozen=True, kw_only=True, slots=True)
class Shown:
    """A run, and what places it among the others shown."""

    run: Run
    condition: Condition

    @property
    def variant(self) -> str:
        """The method's key with its options: `admin:omega=closed`."""
        return methods.variant(self.run.spec)

    @property
    def label(self) -> str:
        return method_label(self.run.spec)

    @property
    def paint(self) -> str:
        """By which it has its colour and its switch."""
        return paint(self.run.spec)

    @property
    def shape(self) -> tuple[int, int]:
        """(N, M), the layers of encoder and decoder."""
        return self.run.spec.model.encoder_layers, self.run.spec.model.decoder_layers

    def facts(self, *of_outcome: str) -> dict[str, Any]:
        """The columns with which every frame begins, and these numbers of the outcome."""
        spec = self.run.spec
        return {
            "run": self.run.run_id,
            "method": self.paint,
            "label": self.label,
            "condition": self.condition.text,
            "depth": spec.depth,
            "encoder_layers": spec.model.encoder_layers,
            "decoder_layers": spec.model.decoder_layers,
            "seed": spec.seed,
            "outcome": displayed(self.run.outcome.word),
            **{name: getattr(self.run.outcome, name) for name in of_outcome},
        }


def paint(spec: RunSpec) -> str:
    """The key of a run's colour: its method's, or that of a variant that has a colour of its own (mHC's starts)."""
    variant = methods.variant(spec)
    return variant if variant in methods.PAINTED else spec.method


FACTS = ("run", "method", "label", "condition", "depth", "encoder_layers", "decoder_layers", "seed", "outcome")


@once
def shown(runs: Iterable[Run]) -> list[Shown]:
    """Every run once, in the order of all tables and legends: method table, condition, depth, seed."""
    once = list({run.run_id: run for run in runs}.values())
    of_runs = conditions([run.spec for run in once])
    order = condition_order([run.spec for run in once])
    placed = [Shown(run=run, condition=condition) for run, condition in zip(once, of_runs, strict=True)]
    return sorted(
        placed,
        key=lambda s: (
            method_rank(s.run.spec),
            order[s.condition],
            depth_rank(s.run.spec),
            s.run.spec.seed,
            s.run.run_id,
        ),
    )


def apart(runs: Iterable[Run]) -> list[Run]:
    """The runs without those that are another's training once more: of those that differ in further probes alone, the
    one with the most."""
    kept: dict[str, Run] = {}
    for run in runs:
        training = replace(run.spec, probes=()).run_id
        if training not in kept or len(kept[training].records) < len(run.records):
            kept[training] = run
    return list(kept.values())


@once
def trained(runs: Sequence[Run]) -> Runs:
    """The runs without the single steps that probe the linear regime; where there is nothing else, those."""
    longer = [run for run in runs if not run.spec.single_step]
    return Runs(longer) if 0 < len(longer) < len(runs) else Runs.of(runs)


def method_label(spec: RunSpec) -> str:
    """`ADMIN (omega=closed)`; one from a file of one's own as it calls itself; an unknown key stands for itself."""
    return plain(methods.label_of(spec))


def variants(runs: Iterable[Run]) -> dict[str, str]:
    """{a run's id, as in a frame's column `run`: its method's key with options}."""
    return {run.run_id: methods.variant(run.spec) for run in runs}


def method_rank(spec: RunSpec) -> tuple[int, str]:
    """Table order, then unknown methods by name; variants of one method stand together, the plain one first."""
    known = methods.KEYS.index(spec.method) if spec.method in methods.KEYS else len(methods.KEYS)
    return known, methods.variant(spec)


def method_group(spec: RunSpec) -> str:
    """The row group of DeepNet Table 1, or what a file of one's own was seen to be; of unknown methods `other`."""
    method = methods.of(spec)
    group = group_of(method) if method else spec.own.group if spec.own else "other"
    return group if group in GROUPS else "other"


def depth_rank(spec: RunSpec) -> tuple[int, int]:
    """Shallow before deep; of equally many layers the one with the shallower encoder first."""
    return spec.model.encoder_layers + spec.model.decoder_layers, spec.model.encoder_layers


def ends_in_norm(spec: RunSpec) -> bool:
    """Whether the output is what a norm gives, √d long: then ‖ΔF‖ has a ceiling. Of unknown methods, yes."""
    if spec.own:
        return spec.own.ends_in_norm
    method = methods.of(spec)
    return method is None or output_norm.in_norm(method, spec.model)


def norm_after_sum(spec: RunSpec) -> bool:
    """Whether what leaves a residual sum enters a norm at once, so that ω√d is the length of its shortcut."""
    if spec.own:
        return spec.own.norm_after_sum
    method = methods.of(spec)
    return method is None or output_norm.sums_in_norm(method, spec.model)


def output_layers(spec: RunSpec) -> list[str]:
    """The layers of the stack that the output comes from, lowest first: of the decoder, or of an encoder alone."""
    n, m = spec.model.encoder_layers, spec.model.decoder_layers
    return [f"decoder.{layer}" for layer in range(1, m + 1)] or [f"encoder.{layer}" for layer in range(1, n + 1)]


def output_stack(decoder_layers: Iterable[int]) -> str:
    """What that stack is called among models of these decoder layers: `decoder`, `encoder`, or both."""
    words = {"decoder" if layers else "encoder" for layers in decoder_layers} or {"decoder"}
    return " or ".join(sorted(words))


def conditions(specs: Sequence[RunSpec]) -> list[Condition]:
    """For each spec what sets it apart from the others besides method, depth and seed; nothing where nothing does.

    Different settings never share a text: should two read alike, they are numbered.
    """
    settings = [{**_settings(spec), "file": text} for spec, text in zip(specs, _versions(specs), strict=True)]
    varying = [
        key
        for key in (settings[0] if settings else ())
        if len({each[key] for each in settings}) > 1
        or (key == "recipe" and "paper" in {each[key] for each in settings})
    ]
    # the synthetic language's digest is of batch and vocabulary: they tell it
    made = not any(spec.task.source for spec in specs) and bool({"train.max_tokens", "task.vocab"} & set(varying))
    implied = frozenset({"task.digest"} if made else ())
    if "train.optimizer" in varying and not any(spec.train.unusual for spec in specs):
        implied |= {"train.weight_decay", "train.momentum"}
    parts = []
    for values in settings:
        own_recipe = RECIPE if "recipe" in varying and values["recipe"] == "paper" else ()
        held = tuple((key, values[key]) for key in varying)
        parts.append(Condition(held, implied | set(own_recipe)))
    alike = Counter(condition.text for condition in dict.fromkeys(parts))
    numbered = [condition for condition in dict.fromkeys(parts) if alike[condition.text] > 1]
    numbered.sort(key=lambda condition: repr([value for _, value in condition.settings]))
    numbers = {condition: place for place, condition in enumerate(numbered, 1)}
    return [replace(condition, number=numbers.get(condition, 0)) for condition in parts]


ALWAYS = ("train.warmup", "train.lr", "train.max_tokens", "task.name", "task.vocab")
"""What a setting told by itself always says; of the others those that are not at their defaults."""


def _versions(specs: Sequence[RunSpec]) -> list[str]:
    """`my.py 3f2a91c0` of methods of one's own that are called alike and are of different files; "" of all others."""
    held: dict[str, set[tuple[str, str]]] = {}
    for spec in specs:
        held.setdefault(method_label(spec), set()).add((spec.own.digest, spec.own.name) if spec.own else ("", ""))
    many = {label for label, digests in held.items() if len(digests) > 1}
    return [f"{s.own.file}:{s.own.name} {s.own.digest[:8]}" if s.own and method_label(s) in many else "" for s in specs]


def setting(spec: RunSpec) -> Condition:
    """A run's settings besides method, depth and seed, whole: `no warm-up, lr 0.0005, 512 tokens per batch, synthetic,
    vocabulary 2000`."""
    default = _settings(RunSpec(method=spec.method, model=ModelConfig(encoder_layers=0, decoder_layers=0)))
    lengths = ("train.steps", "train.stop_when_decided", "train.verdict_at")
    skipped = (*OWN_AXES, *lengths, "record_every", "snapshots", "task.digest")
    held = {
        key: value
        for key, value in _settings(spec).items()
        if key not in skipped and (key in ALWAYS or value != default[key])
    }
    order = sorted(held, key=lambda key: ALWAYS.index(key) if key in ALWAYS else len(ALWAYS))
    return Condition(tuple((key, held[key]) for key in order))


def condition_order(specs: Sequence[RunSpec]) -> dict[Condition, int]:
    """{condition: its place}, by the values themselves: warm-up 0 before 400 before 4000; factors on α alone before
    those on β."""

    def place(spec: RunSpec) -> tuple[Any, ...]:
        return tuple({**_settings(spec), "alpha_scale": (spec.beta_scale != 1, spec.alpha_scale)}.values())

    values = {found: place(spec) for spec, found in zip(specs, conditions(specs), strict=True)}
    return {found: place for place, found in enumerate(sorted(values, key=lambda found: values[found]))}


def _settings(spec: RunSpec) -> dict[str, Any]:
    """Every setting that makes the condition, flat: {"train.lr": 0.0005}."""
    settings = {key: value for key, value in flat(spec).items() if key not in NO_SETTING}
    settings["model.block"] = blocks.name_of(spec.model)
    if spec.recipe == "paper":  # these belong to the method, as its residual does
        settings.update({key: type(settings[key])() for key in RECIPE})
    return settings


def flat(spec: RunSpec) -> dict[str, Any]:
    """The spec as one flat mapping, `train.lr` and so on, in the order of its fields; options stay one mapping."""
    out: dict[str, Any] = {}
    for name, inner in FIELDS:
        value = getattr(spec, name)
        if inner:
            out.update([(key, getattr(value, part)) for key, part in inner])
        else:
            out[name] = value
    return out


def _phrase(key: str, value: Any) -> str:
    if key == "train.warmup" and isinstance(value, tuple):
        return f"warm-up {value[1]} or none"
    if key == "train.lr" and isinstance(value, tuple):
        return f"lr {value[0]:g} to {value[1]:g}"
    if key == "train.warmup" and value == 0:
        return "no warm-up"
    if key == "model.tied":
        return "softmax tied to the embedding" if value else "separate softmax"
    if key == "recipe":
        return "each method's own recipe" if value == "paper" else "one recipe for all"
    if key not in WORDS:
        return f"{key.split('.')[-1].replace('_', ' ')} {value}"
    return WORDS[key].format(value)
