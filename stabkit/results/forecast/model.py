"""The forecast of one run by the coefficients that stand in the package: a word, its probability, or why none.

    p = σ(bias + Σ weight_j·(x_j − mean_j)/scale_j),  x the links' numbers of updates 0 to 16 (`links.py`)

`coefficients.json` holds all that a forecast needs: the fit, the digest of its corpus, and where the corpus' runs lie,
by which it knows what it has never seen. Here it is read; `studies/forecast/coefficients.py`, beside the package, fits
it. It is not edited: it carries its own sha256.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from stabkit import methods
from stabkit.methods import blocks
from stabkit.results.forecast.links import FITTED, RunSetting
from stabkit.results.forecast.logistic import Array, Logistic, Region, Word, contents, foreign, numbers, unsealed, word
from stabkit.results.forecast.measured import measure
from stabkit.results.records import Records
from stabkit.spec import ModelConfig, RunSpec

SCHEMA = "stabkit-forecast/4"
FILE = Path(__file__).with_name("coefficients.json")
HORIZON = {"text": 250, "synthetic": 400}
"""Updates past the warm-up after which the corpus' runs were judged, by task; what was early then went on to 800. So
`trains` says: within so many."""
SLOWER = 1.25
"""A rate may be this many times below the lowest that the corpus has at that width: one that is slow enough trains no
model by HORIZON, which nothing in sixteen updates shows."""
FACTOR = 2.0
"""Batch and vocabulary may be this many times the corpus' or a share of it."""
FIXED = (
    *("train.dropout", "train.clip", "train.label_smoothing", "train.hold", "train.adam_beta1", "train.adam_beta2"),
    *("train.adam_eps", "model.base_init", "model.tied", "alpha_scale", "beta_scale"),
)
"""What is the same in all of the corpus: a run that has it otherwise is out of range."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Forecast:
    """What sixteen updates say of a run."""

    word: Word
    p_trains: float | None
    """None where it is out of range."""
    features: Mapping[str, float]
    """The links' numbers."""
    axes: tuple[str, ...]
    """Along which it lies out of range."""
    corpus: str
    """sha256 of the rows that the coefficients were fitted on."""
    unseen: bool = False
    """Whether the fit has no run of its method."""


@dataclass(frozen=True, slots=True)
class OptimizerRange:
    """Where the runs of an optimiser lie that was joined to the corpus: beyond, nothing was scored."""

    blocks: tuple[str, ...]
    encoders: bool
    """Whether some have an encoder."""
    warmup: int
    """The longest."""


@dataclass(frozen=True, slots=True)
class Coefficients:
    """A fit and where its corpus lies."""

    logistic: Logistic
    region: Region
    """Of the corpus, along links and axes."""
    max_tokens: float
    vocab: float
    corpus: str
    methods: tuple[str, ...]
    """Of the corpus."""
    optimizers: tuple[str, ...]
    blocks: tuple[str, ...]
    """Those that it is given for."""
    joined: Mapping[str, OptimizerRange]
    """{optimiser that the first corpus lacks: what it was seen in}."""
    alone: Mapping[str, Logistic]
    """{optimiser: a fit of the gradient alone}, where that is the better forecast of methods that no fit has seen."""
    lowest: Mapping[int, float]
    """{width: the lowest rate that the corpus has there}."""
    abstains: tuple[str, ...]
    """Methods for which it was too often wrong where the fit had not seen them: no forecast is given."""


def settings(depth: int, hidden: int, warmup: int) -> dict[str, float]:
    """The axes of a setting beside the rate, which is a link, each in powers of two."""
    return {"depth": math.log2(depth), "width": math.log2(hidden), WARMUP: math.log2(1 + warmup / 16)}


WARMUP = "warm-up"
UNSEEN = {"adam": ("Adam", 0.94), "adamw": ("AdamW", 0.82), "muon": ("Muon", 0.82)}
"""{optimiser: its name, and the area under the curve of forecasts of methods by fits without them}; from
docs/evidence/forecast.md, as a test compares."""
"""The key of this axis in the file of coefficients and in JSON."""
AXES = tuple(settings(1, 1, 0))


def load(path: Path = FILE) -> Coefficients:
    """The coefficients of a file; raises ForeignCoefficients that names its digest."""
    return read(contents(path), str(path))


def read(data: bytes, path: str) -> Coefficients:
    """The coefficients of a file's bytes; raises ForeignCoefficients likewise."""
    try:
        body = unsealed(data)
        if (body["schema"], body["links"], body["axes"]) != (SCHEMA, [link.key for link in FITTED], list(AXES)):
            raise ValueError("it was fitted on other links than this version reads")
        return Coefficients(
            Logistic.from_json(body),
            Region.from_json(body),
            float(body["max_tokens"]),
            float(body["vocab"]),
            str(body["corpus"]),
            tuple(body["methods"]),
            tuple(body["optimizers"]),
            tuple(body["blocks"]),
            {
                name: OptimizerRange(tuple(each[0]), bool(each[1]), int(each[2]))
                for name, each in body["joined"].items()
            },
            {name: Logistic.from_json(fit) for name, fit in body["alone"].items()},
            {int(width): float(rate) for width, rate in body["lowest"].items()},
            tuple(body["abstains"]),
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise foreign(path, data, error) from error


@cache
def ours() -> Coefficients:
    """Those of the package."""
    return load()


def forecast(
    records: Records, spec: RunSpec, unigram: float, coefficients: Coefficients | None = None
) -> Forecast | None:
    """The forecast of a run by its first sixteen updates; None where it has fewer, or had diverged by then."""
    measured = measure(records, unigram)
    if measured is None:
        return None
    by = coefficients or ours()
    x = numbers([(measured, RunSetting(spec.train.lr, spec.model.hidden))], FITTED)
    axes = outside(spec, x[0], by)
    p = None if axes else float(fit_of(spec, by).probability(x)[0])
    return Forecast(
        word=word(p),
        p_trains=p,
        features={link.key: float(value) for link, value in zip(FITTED, x[0], strict=True)},
        axes=axes,
        corpus=by.corpus,
        unseen=unseen(spec, by),
    )


def fit_of(spec: RunSpec, by: Coefficients) -> Logistic:
    """By which a run is forecast: the gradient alone where its method was never seen and that is better."""
    return by.alone.get(spec.train.optimizer, by.logistic) if unseen(spec, by) else by.logistic


def unseen(spec: RunSpec, by: Coefficients) -> bool:
    """Whether the fit has no run of its method: a user's own, or one that was added after the corpus."""
    return spec.own is not None or spec.method not in by.methods


def outside(spec: RunSpec, x: Array, by: Coefficients) -> tuple[str, ...]:
    """Along which axes a run lies beyond the corpus; none where it is in range."""
    axes = [path for path in FIXED if _at(spec, path) != _at(DEFAULT, path)]
    axes += unscored(spec, by)
    method = methods.of(spec)
    if spec.own.scaled if spec.own else method and method.scaled and spec.method not in by.methods:
        axes.append("factors")  # on the rate, which is a link
    if blocks.name_of(spec.model) not in by.blocks:
        axes.append("block")
    if spec.method in by.abstains:
        axes.append("method")
    narrower = [width for width in by.lowest if width <= spec.model.hidden] or [min(by.lowest)]
    if spec.train.lr * SLOWER < by.lowest[max(narrower)]:
        axes.append("rate")
    if not spec.model.decoder_layers:
        axes.append("encoder-only")
    for name, value, median in (
        ("max_tokens", spec.train.max_tokens, by.max_tokens),
        ("vocab", spec.task.vocab, by.vocab),
    ):
        if not median / FACTOR <= value <= median * FACTOR:
            axes.append(name)
    depth = max(spec.model.encoder_layers, spec.model.decoder_layers)
    return tuple(dict.fromkeys((*axes, *far(x, settings(depth, spec.model.hidden, spec.train.warmup), by))))


def unscored(spec: RunSpec, by: Coefficients) -> tuple[str, ...]:
    """Along what a run's optimiser was never scored: the optimiser itself, its decay or momentum, or, of one that was
    joined, a block, an encoder or a warm-up; nothing where it was."""
    train, model = spec.train, spec.model
    if train.optimizer not in by.optimizers:
        return ("train.optimizer",)
    axes = [f"train.{name}" for name in train.unusual]
    if scored := by.joined.get(train.optimizer):
        beyond = {
            "block": blocks.name_of(model) not in scored.blocks,
            "encoder": model.encoder_layers > 0 and not scored.encoders,
            WARMUP: train.warmup > scored.warmup,
        }
        axes += [axis for axis, out in beyond.items() if out]
    return tuple(axes)


def far(x: Array, axes: Mapping[str, float], by: Coefficients) -> tuple[str, ...]:
    """Along which links and axes a place lies out of the corpus' reach; none where one of its runs is near."""
    return by.region.beyond(np.r_[x, list(axes.values())])


DEFAULT = RunSpec(method="post-ln", model=ModelConfig(encoder_layers=1, decoder_layers=1))


def _at(spec: RunSpec, path: str) -> Any:
    value: Any = spec
    for name in path.split("."):
        value = getattr(value, name)
    return value
