"""Will this model train at this rate and depth? A probability from what sixteen updates on fresh batches left, and
sixteen more while the rate rises to sixteen times its highest.

    p = σ(bias + Σ weight_j·(x_j − mean_j)/scale_j),   x the numbers of LINKS, each turned so that more is better

`coefficients.json` is fitted on one part of a corpus of other people's kind of models (`studies/own`, beside the
package), and holds how often its words came true on the other part, which nothing was chosen on; and what numbers
models that train have. It carries its own sha256 and is not edited.

No forecast is given of what the corpus has not: fewer updates or more, one batch for all of them, an optimiser of
another kind, a loss that is no cross-entropy of scores, few of these, a width, depth or rate far from its models'.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TypedDict

import numpy as np

from stabkit.results.forecast.logistic import (
    Array,
    Link,
    Logistic,
    Region,
    Word,
    contents,
    foreign,
    log,
    numbers,
    unsealed,
    word,
)
from stabkit.results.own.cell import Facts, ModelCell
from stabkit.results.own.looks import Looks
from stabkit.results.own.measured import SILENT, TOP, UPDATES, OwnMeasured, measured

SCHEMA = "stabkit-own-forecast/2"
FILE = Path(__file__).with_name("coefficients.json")
ONE_BATCH, OPTIMIZER, OTHER = "one batch", "optimizer", "updates"
NO_SCORES, FEW_SCORES, REGRESSION, DRAWN = "no scores", "few scores", "regression", "size of matrices"
"""Axes along which a model is out of range before any number is read."""
UNRAMPED = "no ramp"
"""The axis of a probe whose rate was not raised."""
RATE = "rate"
"""The axis of the rate, over the usual one."""
LARGE = 2.0
"""Beyond it a model's matrices are drawn larger than any of the corpus' (`own/probe/loop.py`)."""
LEAST_ROWS, LEAST_CLASSES = 16, 10
"""Scores that the models of the corpus give at a time, and over how many classes, at least: what few can tell of their
input is little (one alone nothing)."""
FIRST_LOSS_RANGE = 0.6, 1.5
"""The first loss over what scores like those at the start cost on average: a cross-entropy of a model that knows
nothing yet lies between (0.85 to 1.16 in the corpus)."""
LOST = 0.0
"""The probability of what is no number any more."""
USUAL = {**dict.fromkeys(("Adam", "AdamW", "NAdam", "RAdam"), 1e-3), "SGD": 0.1, "Lion": 1e-4, "Muon": 0.02}
"""{optimiser: the rate that it is used at on models of this size}; of several the first counts. SGD's is with a
momentum of 0.9."""


FAST = 32.0
"""Times the usual rate, or as far below it: from there on the usual one is tried."""
TESTED = 1 / 33, 30.0
"""Times the usual rate that models of the corpus have, at least and at most (a test reads them)."""


@dataclass(frozen=True, slots=True)
class OwnSetting:
    """What of a training a link reads besides its numbers."""

    rate: float
    """The highest, over the usual one of its optimiser."""
    warmup: int
    layers: int
    """Of the deepest stack."""
    width: int


OwnLink = Link[OwnMeasured, OwnSetting]
"""One number of the chain."""


def clamp(value: float, least: float, most: float) -> float:
    """Within these; what is no number is the least."""
    return min(max(value, least), most) if not math.isnan(value) else least


LINKS: tuple[OwnLink, ...] = (
    OwnLink(
        "scores",
        f"information about the input in the scores during a ramp to {TOP:g} times the highest rate",
        "a model near its limit breaks on the way, and then gives every token the same scores",
        lambda seen, at: log(seen.ramp_information, SILENT),
    ),
    OwnLink(
        "least scores",
        "the lowest of these values",
        "a model with room to spare still tells tokens apart at all of these rates",
        lambda seen, at: log(seen.ramp_information_least, SILENT),
    ),
    OwnLink(
        "loss",
        "whether the loss still falls",
        "mean loss of updates 5 to 8 minus that of the last four: a loss that stalls this early seldom falls again",
        lambda seen, at: clamp(seen.loss_bend, -2.0, 2.0),
    ),
)
"""Those that the forecast is made of; chosen on the fitting part (`studies/own/choose.py` at commit 686db662)."""


def setting(facts: Facts) -> OwnSetting:
    """Of a cell; the rate is NaN under an optimiser that is none of USUAL."""
    usual = USUAL.get(next(iter(facts.optimizers), ""), math.nan)
    return OwnSetting(facts.rate / usual, facts.warmup, facts.layers, facts.width)


def axes(at: OwnSetting) -> dict[str, float]:
    """The axes of a setting, in powers of two."""
    return {
        "depth": math.log2(at.layers),
        "width": math.log2(at.width),
        "warm-up": math.log2(1 + at.warmup / 16),
        RATE: math.log2(at.rate),
    }


NEAR = 0.5
"""Powers of two that a setting may lie beyond all of the corpus' along an axis."""
AXES = tuple(axes(OwnSetting(1.0, 0, 1, 1)))


class OwnForecastJson(TypedDict):
    """The forecast of a user's model."""

    word: Word
    probability: float | None
    """That it trains, of the seed that is least likely to; null where it is out of range."""
    depth: int | None
    """At which it was asked: the deepest."""
    axes: list[str]
    """Along which it lies out of range."""
    warmup: int
    corpus: str
    """sha256 of what the forecast was fitted on."""


@dataclass(frozen=True, kw_only=True, slots=True)
class OwnForecast:
    """What the updates and the ramp say of a model."""

    probability: float | None
    """That it trains, of the seed that is least likely to; None where it is out of range."""
    depth: int | None
    """At which it was asked: the deepest."""
    axes: tuple[str, ...]
    """Along which it lies out of range."""
    warmup: int
    corpus: str

    def to_json(self) -> OwnForecastJson:
        """Plain JSON values."""
        return {
            "word": word(self.probability),
            "probability": self.probability,
            "depth": self.depth,
            "axes": list(self.axes),
            "warmup": self.warmup,
            "corpus": self.corpus,
        }


@dataclass(frozen=True, kw_only=True, slots=True)
class Healthy:
    """A number among those of models that train."""

    low: float
    high: float
    """Between them lie 90 of 100."""
    n: int
    percent: float
    """Of models that train, how many have a lower one."""


@dataclass(frozen=True, slots=True)
class OwnCoefficients:
    """A fit, where its corpus lies, how it was judged."""

    logistic: Logistic
    region: Region
    judged: int
    """Models of the other part that its words were counted on."""
    quantiles: Mapping[str, Array]
    """{number of `OwnMeasured`: its percentiles 0 to 100 among models of the fitting part that train}."""
    trained: int
    """How many these are."""
    corpus: str
    runs: int
    looks: Looks
    """What a training that the forecast does not decide is ended by."""

    def beyond(self, x: Array, at: OwnSetting) -> tuple[str, ...]:
        """Along which axes or links a model is unlike all of the corpus; none where it is like one of them."""
        known = self.region.places[:, len(LINKS) :] * self.region.spread[len(LINKS) :]
        low, high = known.min(axis=0) - NEAR, known.max(axis=0) + NEAR
        place = axes(at)
        outside = [name for (name, y), a, b in zip(place.items(), low, high, strict=True) if not a <= y <= b]
        return tuple(outside) or self.region.beyond(np.r_[x, list(place.values())])

    def healthy(self, number: str, value: float) -> Healthy | None:
        """A number among those of models that train; None where it is not one of those, or no number."""
        quantiles = self.quantiles.get(number)
        if quantiles is None or math.isnan(value):
            return None
        percent = float(np.searchsorted(quantiles, value, side="left"))
        return Healthy(low=float(quantiles[5]), high=float(quantiles[95]), n=self.trained, percent=min(percent, 100.0))


def read(data: bytes, path: str) -> OwnCoefficients:
    """The coefficients of a file's bytes; raises ForeignCoefficients that names its digest."""
    try:
        body = unsealed(data)
        if (body["schema"], body["links"], body["axes"]) != (SCHEMA, [link.key for link in LINKS], list(AXES)):
            raise ValueError("it was fitted on other links than this version reads")
        return OwnCoefficients(
            Logistic.from_json(body),
            Region.from_json(body),
            int(body["judged"]),
            {name: np.array(own, dtype=np.float64) for name, own in body["quantiles"].items()},
            int(body["trained"]),
            str(body["corpus"]),
            int(body["runs"]),
            Looks.from_json(body["looks"]),
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise foreign(path, data, error) from error


@cache
def ours() -> OwnCoefficients:
    """Those of the package."""
    return read(contents(FILE), str(FILE))


def forecast(cells: Sequence[ModelCell], coefficients: OwnCoefficients | None = None) -> OwnForecast:
    """Of the cells at one rate and the deepest depth, a seed each."""
    by = coefficients or ours()
    each = [of_cell(cell, by) for cell in cells]
    beyond = tuple(dict.fromkeys(axis for p, axes in each for axis in axes))
    p = None if beyond else min(p for p, _ in each if p is not None)
    return OwnForecast(
        probability=p, depth=cells[0].facts.depth, axes=beyond, warmup=cells[0].facts.warmup, corpus=by.corpus
    )


def of_cell(cell: ModelCell, by: OwnCoefficients) -> tuple[float | None, tuple[str, ...]]:
    """(probability, axes out of range) of one cell. Of one whose numbers are lost within the updates it is LOST."""
    facts = cell.facts
    if facts.broke is not None:
        return LOST, ()
    outside = []
    if int(cell.records["loss"].steps[-1]) != UPDATES:
        outside.append(OTHER)
    if not facts.fresh:
        outside.append(ONE_BATCH)
    outside += _unscored(cell)
    if facts.drawn > LARGE:
        outside.append(DRAWN)
    at = setting(facts)
    if not at.rate > 0:
        outside.append(OPTIMIZER)
    if outside:
        return None, tuple(outside)
    seen = measured(cell)
    if seen is None:
        return None, (OTHER,)
    if math.isnan(seen.ramp_information):
        return None, (UNRAMPED,)
    x = numbers([(seen, at)], LINKS)
    if not np.isfinite(x).all():
        return None, tuple(link.key for link, value in zip(LINKS, x[0], strict=True) if not math.isfinite(value))
    if beyond := by.beyond(x[0], at):
        return None, beyond
    return float(by.logistic.probability(x)[0]), ()


def scored(cell: ModelCell) -> bool:
    """Whether its first loss is like the cross-entropy of its scores."""
    guess = cell.facts.guess
    return (
        guess is not None
        and "scores" in cell.records
        and FIRST_LOSS_RANGE[0] <= cell.facts.start / guess.cost <= FIRST_LOSS_RANGE[1]
    )


def _unscored(cell: ModelCell) -> list[str]:
    """Why there are no scores to read, or too few."""
    if cell.facts.regression:
        return [REGRESSION]
    guess = cell.facts.guess
    if guess is None or not scored(cell):
        return [NO_SCORES]
    table = cell.records["scores"]
    rows = table.at("rows")[0] if "rows" in table.sites else math.inf
    return [FEW_SCORES] if rows < LEAST_ROWS or guess.classes < LEAST_CLASSES else []
