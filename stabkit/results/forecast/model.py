"""The forecast of one run by the coefficients that stand in the package: a word, a probability, or `out of range`.

`coefficients.json` is written by `fitted` from the rows of a study and holds all that a forecast needs: the fit, the
digest of its corpus, and the corpus' places, by which it knows what it has never seen. It is not read by hand and not
edited: it carries its own sha256.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

import numpy as np

from stabkit import methods
from stabkit.errors import StoreError
from stabkit.methods import blocks
from stabkit.results.forecast.fit import Array, Logistic, fit
from stabkit.results.forecast.holdouts import labels, seen
from stabkit.results.forecast.links import FITTED, Setting, numbers
from stabkit.results.forecast.measured import measure
from stabkit.results.forecast.newcomers import newcomers
from stabkit.results.forecast.rows import Row, digest
from stabkit.results.forecast.scores import LIKELY, UNLIKELY
from stabkit.results.records import Records
from stabkit.spec import ModelConfig, RunSpec, canonical

Word = Literal["likely trains", "likely stuck", "open", "out of range"]
"""`likely stuck` stands for stuck and diverged together."""
SCHEMA = "stabkit-forecast/2"
FILE = Path(__file__).with_name("coefficients.json")
FACTOR = 2.0
"""Batch and vocabulary may be this many times the corpus' or a share of it."""
SHARE = 0.99
"""Of the corpus' own runs that lie as near to their nearest neighbour as a run must to be in range."""
FIXED = (
    *("train.optimizer", "train.dropout", "train.clip", "train.label_smoothing", "train.hold", "train.adam_beta1"),
    *("train.adam_beta2", "train.adam_eps", "model.base_init", "model.tied", "alpha_scale", "beta_scale"),
)
"""What is the same in all of the corpus: a run that has it otherwise is out of range."""


class ForeignCoefficients(StoreError):
    """A file of coefficients that is damaged, or was fitted for other links."""


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

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            "word": self.word,
            "p_trains": self.p_trains,
            "features": dict(self.features),
            "axes": list(self.axes),
            "corpus": self.corpus,
        }


@dataclass(frozen=True, slots=True)
class Coefficients:
    """A fit and where its corpus lies."""

    logistic: Logistic
    places: Array
    """(runs × (links + axes)) of the corpus, in units of `spread`."""
    spread: Array
    reach: float
    """The distance to the nearest of them beyond which a run is out of range."""
    max_tokens: float
    vocab: float
    corpus: str
    methods: tuple[str, ...]
    """Of the corpus."""
    blocks: tuple[str, ...]
    """Those that it is given for."""
    abstains: tuple[str, ...]
    """Methods for which it was too often wrong where it had not seen them (`newcomers.py`): no forecast is given."""
    before: Logistic
    """The fit without the runs that were joined later: what these are judged by."""
    highest: float
    """The highest rate of the runs that it was fitted on."""


def settings(depth: int, hidden: int, warmup: int) -> dict[str, float]:
    """The axes of a setting beside the rate, which is a link, each in powers of two."""
    return {"depth": math.log2(depth), "width": math.log2(hidden), "warm-up": math.log2(1 + warmup / 16)}


AXES = tuple(settings(1, 1, 0))
NARROW = 0.05
"""The spread of a link that hardly varies in the corpus, at least."""
DIGITS = 3
ROUNDED = 10.0**-DIGITS
"""A setting of the corpus itself lies beyond its own rounded place by no more."""
LEAST = 0.5
"""The spread of an axis along which the corpus hardly varies: half a doubling."""


def fitted(rows: Sequence[Row], joined: Sequence[Row] = ()) -> dict[str, Any]:
    """The document of coefficients for labelled rows: what `coefficients.json` holds. Those `joined` are scored by the
    fit without them first, which says for which of their blocks and methods a forecast is given at all; where none is,
    their runs do not shape it either."""
    first, later = (sorted((r for r in some if r.labelled), key=lambda r: r.run_id) for some in (rows, joined))
    before = fit(numbers(seen(first)), labels(first))
    highest = max(row.rate for row in first)
    new = newcomers(later, before, highest)
    given = {row.block for row in first} | set(new.trusted("block"))
    abstains = set(new.of("method")) - {row.method for row in first} - set(new.trusted("method"))
    kept = (row for row in later if row.block in given and row.method not in abstains)
    rows = sorted((*first, *kept), key=lambda row: row.run_id)
    x = numbers(seen(rows))
    found = fit(x, labels(rows))
    axes = np.array([list(settings(r.depth, r.hidden, r.warmup).values()) for r in rows])
    whole = np.column_stack([x, axes])
    spread = np.maximum(whole.std(axis=0), np.r_[np.full(len(FITTED), NARROW), np.full(len(AXES), LEAST)])
    places = np.round(whole / spread, DIGITS)
    apart = np.sqrt(((places[:, None] - places[None]) ** 2).sum(axis=-1))
    np.fill_diagonal(apart, np.inf)
    body = {
        "schema": SCHEMA,
        "corpus": digest(rows),
        "runs": len(rows),
        "links": [link.key for link in FITTED],
        "axes": list(AXES),
        **_of(found),
        "before": {"corpus": digest(first), "runs": len(first), "highest": highest, **_of(before)},
        "methods": sorted({row.method for row in rows}),
        "blocks": sorted(given),
        "abstains": sorted(abstains),
        "spread": spread.tolist(),
        "reach": float(np.quantile(apart.min(axis=1), SHARE)),
        "max_tokens": float(np.median([row.max_tokens for row in rows])),
        "vocab": 2000.0,
        "places": places.tolist(),
    }
    return {**body, "sha256": hashlib.sha256(canonical(body).encode()).hexdigest()}


def _of(found: Logistic) -> dict[str, Any]:
    """A fit as JSON values."""
    arrays = {name: getattr(found, name).tolist() for name in ("mean", "scale", "weight")}
    return {**arrays, "bias": found.bias}


def _logistic(body: Mapping[str, Any]) -> Logistic:
    mean, scale, weight = (np.array(body[name], dtype=np.float64) for name in ("mean", "scale", "weight"))
    return Logistic(mean, scale, weight, float(body["bias"]))


def load(path: Path = FILE) -> Coefficients:
    """The coefficients of a file; raises ForeignCoefficients that names its digest."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ForeignCoefficients(f"the forecast's coefficients: {path}: {error.strerror or error}") from error
    return read(data, str(path))


def read(data: bytes, path: str) -> Coefficients:
    """The coefficients of a file's bytes; raises ForeignCoefficients likewise."""
    try:
        body = json.loads(data)
        said = body.pop("sha256")
        is_ = hashlib.sha256(canonical(body).encode()).hexdigest()
        if said != is_:
            raise ValueError(f"its content has sha256 {is_[:12]}…, and it says {str(said)[:12]}…")
        if (body["schema"], body["links"], body["axes"]) != (SCHEMA, [link.key for link in FITTED], list(AXES)):
            raise ValueError("it was fitted for other links than this version reads")
        return Coefficients(
            _logistic(body),
            np.array(body["places"], dtype=np.float64),
            np.array(body["spread"], dtype=np.float64),
            float(body["reach"]),
            float(body["max_tokens"]),
            float(body["vocab"]),
            str(body["corpus"]),
            tuple(body["methods"]),
            tuple(body["blocks"]),
            tuple(body["abstains"]),
            _logistic(body["before"]),
            float(body["before"]["highest"]),
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        whose = hashlib.sha256(data).hexdigest()
        raise ForeignCoefficients(
            f"the forecast's coefficients {path} (sha256 {whose}) are damaged or foreign: {error}; install stabkit anew"
        ) from error


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
    x = numbers([(measured, Setting(spec.train.lr, spec.model.hidden))])
    axes = outside(spec, x[0], by)
    p = None if axes else float(by.logistic.probability(x)[0])
    return Forecast(
        word=word(p),
        p_trains=p,
        features={link.key: float(value) for link, value in zip(FITTED, x[0], strict=True)},
        axes=axes,
        corpus=by.corpus,
    )


def word(p: float | None) -> Word:
    """What is said of a probability."""
    if p is None:
        return "out of range"
    return "likely trains" if p >= LIKELY else "likely stuck" if p <= UNLIKELY else "open"


def outside(spec: RunSpec, x: Array, by: Coefficients) -> tuple[str, ...]:
    """Along which axes a run lies beyond the corpus; none where it is in range."""
    found = [path for path in FIXED if _at(spec, path) != _at(DEFAULT, path)]
    method = methods.of(spec)
    if spec.own.scaled if spec.own else method and method.scaled and spec.method not in by.methods:
        found.append("factors")  # on the rate, which is a link
    if blocks.name_of(spec.model) not in by.blocks:
        found.append("block")
    if spec.method in by.abstains:
        found.append("method")
    if not spec.model.decoder_layers:
        found.append("encoder-only")
    for name, value, theirs in (
        ("max_tokens", spec.train.max_tokens, by.max_tokens),
        ("vocab", spec.task.vocab, by.vocab),
    ):
        if not theirs / FACTOR <= value <= theirs * FACTOR:
            found.append(name)
    depth = max(spec.model.encoder_layers, spec.model.decoder_layers)
    return (*found, *far(x, settings(depth, spec.model.hidden, spec.train.warmup), by))


def far(x: Array, axes: Mapping[str, float], by: Coefficients) -> tuple[str, ...]:
    """Along which links and axes a place lies out of the corpus' reach; none where one of its runs is near."""
    place = np.r_[x, list(axes.values())] / by.spread
    apart = by.places - place
    nearest = apart[np.argmin((apart**2).sum(axis=1))]
    if np.sqrt((nearest**2).sum()) <= by.reach:
        return ()
    names = (*(link.key for link in FITTED), *AXES)
    low, high = by.places.min(axis=0) - ROUNDED, by.places.max(axis=0) + ROUNDED
    beyond = tuple(name for name, at, a, b in zip(names, place, low, high, strict=True) if not a <= at <= b)
    return beyond or (names[int(np.argmax(np.abs(nearest)))],)


DEFAULT = RunSpec(method="post-ln", model=ModelConfig(encoder_layers=1, decoder_layers=1))


def _at(spec: RunSpec, path: str) -> Any:
    value: Any = spec
    for name in path.split("."):
        value = getattr(value, name)
    return value
