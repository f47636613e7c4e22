"""The methods: one paper a file, one row in METHODS (order = legend = colour)."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, get_args, get_type_hints

from stabkit.errors import UsageError, nearest
from stabkit.methods import own, papers
from stabkit.methods.base import Method, Recipe, Site, sites
from stabkit.methods.count import parameters as count
from stabkit.methods.papers import (
    admin,
    deepnorm,
    dlcl,
    ds_init,
    normformer,
    post_ln,
    post_ln_init,
    pre_ln,
    r_fixup,
    rezero,
    sub_ln,
    t_fixup,
)
from stabkit.methods.recent import (
    OUT,
    attention_residuals,
    completep,
    depth_mup,
    derf,
    dyt,
    gated_attention,
    gpas,
    gpt2_init,
    hyper_connections,
    keel,
    layernorm_scaling,
    mhc,
    mix_ln,
    nanochat,
    peri_ln,
    reordered_norm,
    residual,
    sandwich_ln,
    siamesenorm,
    value_residual,
)
from stabkit.spec import ModelConfig, RunSpec

METHODS: tuple[Callable[..., Method], ...] = (
    post_ln.method,
    post_ln_init.method,
    ds_init.method,
    admin.method,
    rezero.method,
    r_fixup.method,
    t_fixup.method,
    pre_ln.method,
    dlcl.method,
    normformer.method,
    sub_ln.method,
    deepnorm.method,
    residual.method,
    peri_ln.method,
    sandwich_ln.method,
    reordered_norm.method,
    mix_ln.method,
    keel.method,
    layernorm_scaling.method,
    dyt.method,
    gpt2_init.method,
    depth_mup.method,
    completep.method,
    derf.method,
    gpas.method,
    gated_attention.method,
    value_residual.method,
    nanochat.method,
    siamesenorm.method,
    attention_residuals.method,
    hyper_connections.method,
    mhc.method,
)
"""Each row makes a method. Its keyword arguments are the method's options: texts from a Literal, with a default, which
users write as `admin:omega=closed`; `alpha_scale` and `beta_scale` are axes of a grid."""

SCALES = ("alpha_scale", "beta_scale")

DEFAULTS: tuple[Method, ...] = tuple(make() for make in METHODS)
"""Every method with its default options, in table order."""

KEYS: tuple[str, ...] = tuple(method.key for method in DEFAULTS)


SETS: Mapping[str, tuple[str, ...]] = {
    "all": KEYS,
    "papers": tuple(
        key for key, make in zip(KEYS, METHODS, strict=True) if make.__module__.startswith(papers.__name__)
    ),
    "2026": (
        *("post-ln", "pre-ln", "deepnorm"),
        *("peri-ln", "sandwich-ln", "reordered-norm", "mix-ln", "keel", "layernorm-scaling", "dyt", "gpt2-init"),
        *("depth-mup", "completep", "derf", "gpas", "gated-attention", "value-residual", "nanochat", "siamesenorm"),
        *("attention-residuals", "hyper-connections", "mhc"),
    ),
}
"""What `--models` calls several at once: every method; those that DeepNet and Very Deep Transformers compare; those
that models of 2026 have, beside three that they are compared with."""

PAINTED = ("mhc:start=identity", "mhc:start=static", "deepnorm:alpha=one", "deepnorm:beta=one")
"""Variants that are compared with their method, and have a colour of their own (`figures/drawing/palette.py`)."""

NAMES: Mapping[str, str] = {name: method.key for method in DEFAULTS for name in (method.key, *method.also)}
"""{what people call it: its key}."""


def build(key: str, options: Mapping[str, str], alpha_scale: float = 1.0, beta_scale: float = 1.0) -> Method:
    """The method of a run. Scales of 1 are left out, so that a method without α and β can still be built."""
    given = {name: value for name, value in zip(SCALES, (alpha_scale, beta_scale), strict=True) if value != 1.0}
    return row(key)(**options, **given)


def method_of(spec: RunSpec, texts: own.Texts = {}) -> Method:  # noqa: B006  # a mapping that nothing writes to
    """The method of a run that is to be trained or measured; `texts` holds the files that this command named. Raises
    UsageError for a file that was not."""
    if spec.own is None:
        return build(spec.method, spec.options, spec.alpha_scale, spec.beta_scale)
    make = own.row(own.text_of(spec.own, texts), spec.own.file, spec.own.name)
    given = {name: getattr(spec, name) for name in SCALES if getattr(spec, name) != 1.0}
    return own.method_from(make, f"{spec.own.file}:{spec.own.name}", {**spec.options, **given})


def of(spec: RunSpec) -> Method | None:
    """The method of a run that may come from elsewhere; None for one that this version does not know so."""
    return _built(spec.method, spec.options, spec.alpha_scale, spec.beta_scale)


def _built(key: str, options: Mapping[str, str], alpha_scale: float, beta_scale: float) -> Method | None:
    try:
        return build(key, options, alpha_scale, beta_scale)
    except (TypeError, ValueError, KeyError):
        return None


def sites_of(spec: RunSpec) -> tuple[Site, ...]:
    """The sub-layers of a run's model."""
    return sites(spec.model.encoder_layers, spec.model.decoder_layers, spec.model.hidden)


def parameters(spec: RunSpec, texts: own.Texts = {}) -> int:  # noqa: B006
    """What a run's model holds, trained or not; of a method that this version does not know, or whose file is not among
    the texts, as Post-LN's."""
    if spec.own is not None and spec.own.digest in texts:
        return count(method_of(spec, texts), spec.model, spec.task.vocab)
    options = tuple(spec.options.items())
    return _counted(spec.method, options, spec.alpha_scale, spec.beta_scale, spec.model, spec.task.vocab)


@lru_cache(maxsize=4096)  # a plan asks several times for each run, and runs of a grid differ in what is not counted
def _counted(
    key: str,
    options: tuple[tuple[str, str], ...],
    alpha_scale: float,
    beta_scale: float,
    config: ModelConfig,
    vocab: int,
) -> int:
    return count(_built(key, dict(options), alpha_scale, beta_scale) or DEFAULTS[0], config, vocab)


def parse(text: str) -> tuple[str, dict[str, str]]:
    """`ADMIN:omega=closed` → ("admin", {"omega": "closed"}); raises UsageError naming the nearest valid thing.

    Keys in any case, with or without hyphens. An option given at its default is left out: it is the same run.
    """
    if own.parts(text):
        raise UsageError(f"{text}: a user's file works only in `sweep`, `transfer`, `ablate` and `methods`")
    name, *settings = text.split(":")
    key = _among(name, NAMES)
    if key is None:
        if out := _among(name, {key: key for key in OUT}):
            raise UsageError(f"{OUT[out].label} is not here yet: it needs {OUT[out].needs} ({OUT[out].source})")
        if option := _among(name, OPTIONS):
            raise UsageError(f"{name.strip()} is a part of the block, not a method: `{option}`")
        close = nearest(name.strip(), [*NAMES, *OUT, *SETS])
        raise UsageError(f"unknown method {name.strip()!r}{close or ';'} `stabkit methods` lists all")
    return key, settled(f"method {key}", options(key), settings)


OPTIONS = {
    "rmsnorm": "--norm rms",
    "layernorm": "--norm layer",
    "llama": "--block llama",
    "swiglu": "--ffn-kind swiglu",
    "rope": "--positions rotary",
    "rotary": "--positions rotary",
    "qk-norm": "--qk-norm",
}
"""What people call a method and is an option of the block."""


def _among(name: str, names: Mapping[str, str]) -> str | None:
    """What is meant by a name however it is written: DeepNorm, deep_norm, deep-norm."""
    bare = {known.replace("-", ""): meant for known, meant in names.items()}
    return bare.get(name.strip().lower().replace("-", "").replace("_", "").replace(" ", "").replace("μ", "mu"))


def settled(what: str, valid: Mapping[str, tuple[str, ...]], settings: Sequence[str]) -> dict[str, str]:
    """`omega=closed` and its like, of the options that `what` has; one at its default is left out."""
    chosen: dict[str, str] = {}
    for setting in settings:
        option, equals, value = setting.partition("=")
        if option not in valid:
            has = f"it has {', '.join(valid)}" if valid else "it has none"
            raise UsageError(f"{what} has no option {option!r}{nearest(option, valid) or ';'} {has}")
        if not equals or value not in valid[option]:
            colons = "; separate options with colons" if "," in value else ""
            words = ", ".join(valid[option])
            raise UsageError(f"option {option} of {what} must be one of {words}, not {value!r}{colons}")
        if option in chosen:
            raise UsageError(f"option {option} of {what} is given twice: {chosen[option]} and {value}")
        chosen[option] = value
    return dict(sorted((option, value) for option, value in chosen.items() if value != valid[option][0]))


def options(key: str) -> dict[str, tuple[str, ...]]:
    """{option: its values, the default first} of a method."""
    return options_of(row(key))


def options_of(row: Callable[..., Method]) -> dict[str, tuple[str, ...]]:
    """The same of the function that makes a method."""
    hints = get_type_hints(row)
    choices: dict[str, tuple[str, ...]] = {}
    for name, parameter in inspect.signature(row).parameters.items():
        if name not in SCALES:
            default: Any = parameter.default
            choices[name] = (default, *(value for value in get_args(hints[name]) if value != default))
    return choices


def scalable() -> tuple[str, ...]:
    """The methods that have an α and a β to scale."""
    return tuple(key for key, row in zip(KEYS, METHODS, strict=True) if scales(row))


def scales(row: Callable[..., Method]) -> bool:
    """Whether the function that makes a method takes factors on α and β."""
    return set(SCALES) <= set(inspect.signature(row).parameters)


def with_recipe(spec: RunSpec, texts: own.Texts = {}) -> RunSpec:  # noqa: B006
    """The spec with its method's own base initialisation, optimiser and rate where its recipe is the paper's."""
    if spec.recipe == "shared":
        return spec
    method = method_of(spec, texts)
    given = method.recipe
    if given is None:
        raise UsageError(f"--recipe paper: {method.label} has no recipe here; leave it out")
    return replace(
        spec,
        model=replace(spec.model, base_init=given.base_init),
        train=replace(spec.train, optimizer=given.optimizer, lr=given.lr, warmup=given.warmup, hold=given.hold),
    )


def recipe_words(recipe: Recipe) -> str:
    """`fairseq_uniform, adam, lr 0.0015, warm-up 4000`."""
    warmup = f"warm-up {recipe.warmup}" if recipe.warmup else "no warm-up"
    decay = f", decay after {recipe.hold} updates" if recipe.hold else ""
    return f"{recipe.base_init}, {recipe.optimizer}, lr {recipe.lr:g}, {warmup}{decay}"


def label(key: str, options: Mapping[str, str]) -> str:
    """`ADMIN`, or `ADMIN (omega=closed)` when an option differs from its default."""
    return with_options(DEFAULTS[KEYS.index(key)].label, options)


def label_of(spec: RunSpec) -> str:
    """The same of a run: one from a file of one's own as it calls itself, an unknown key as it stands."""
    if spec.method in KEYS:
        return label(spec.method, spec.options)
    return with_options(spec.own.label if spec.own else spec.method, spec.options)


def variant(spec: RunSpec) -> str:
    """`deepnorm`, `admin:omega=closed`: a run's method with the options away from their defaults, as a key."""
    return variant_of(spec.method, spec.options)


def variant_of(key: str, options: Mapping[str, str]) -> str:
    """The same of a key and options."""
    return ":".join((key, *(f"{name}={value}" for name, value in sorted(options.items()))))


def with_options(name: str, options: Mapping[str, str]) -> str:
    """A name with what differs from the default behind it."""
    return f"{name} ({', '.join(f'{k}={v}' for k, v in options.items())})" if options else name


def row(key: str) -> Callable[..., Method]:
    """The row of METHODS that makes this method."""
    return METHODS[KEYS.index(key)]
