"""What is to be had for less than the forecast, on the same hold-outs: a lookup that trains nothing, one link, a loss.

    lookup      method, rate, depth, architecture, task, optimiser: how such runs ended, nothing is trained
    family      family of the method, rate, depth: likewise
    gradient    the forecast's first link alone
    loss        the probe batch's loss after 16 updates, in units of U, and the rate

Each is a ridge logistic regression, of the ridge that the forecast has, on the runs that the forecast is
fitted on; none is widened.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
from sklearn.linear_model import LogisticRegression

from stabkit import methods
from stabkit.methods.groups import group_of
from stabkit.results.forecast.links import FITTED
from stabkit.results.forecast.logistic import Array, Logistic
from stabkit.words import short
from studies.forecast.holdouts import AXES, FAMILIES, fixed
from studies.forecast.joined import Joined
from studies.forecast.regression import RIDGE, features, fit, labels
from studies.forecast.scores import ForecastScores, score
from studies.forecast.widened import widen
from studies.numbers import with_sign
from studies.rows import OPTIMIZERS, StudyRow

Rows = Sequence[StudyRow]
Predictor = Callable[[Rows, Rows], Array]
"""(what it is fitted on, what it is asked of) → probabilities."""
GRADIENT = FITTED[:1]
UNSEEN = "{} held out"
METHOD = UNSEEN.format("method")
IN_TURN = "every method unseen in turn, {}"
"""The name of a scheme of an optimiser: by fits on all else, what is joined among it."""


@cache
def _group(key: str) -> str:
    named = next((name for name, keys in FAMILIES.items() if key in keys), "")
    return named or group_of(methods.build(key, {}))


def family(row: StudyRow) -> str:
    """The family of a row's method: as the hold-outs have it, else where its norms stand."""
    return _group(row.method)


def gradient_alone(rows: Rows) -> Logistic:
    """A widened fit of the gradient alone, as one of all links of which the others weigh nothing."""
    alone = widen(rows, labels(rows), GRADIENT)
    more = len(FITTED) - len(GRADIENT)
    return Logistic(
        np.r_[alone.mean, np.zeros(more)],
        np.r_[alone.scale, np.ones(more)],
        np.r_[alone.weight, np.zeros(more)],
        alone.bias,
    )


def _looked_up(columns: Callable[[Rows, Rows], Array]) -> Predictor:
    """By these columns of a row, given the rows that categories are taken from."""

    def predict(seen: Rows, asked: Rows) -> Array:
        x = columns(seen, seen)
        mean, scale = x.mean(axis=0), x.std(axis=0)
        scale = np.where(scale > 0, scale, 1.0)
        regression = LogisticRegression(C=1 / RIDGE, max_iter=2000).fit((x - mean) / scale, labels(seen))
        p: Array = regression.predict_proba((columns(asked, seen) - mean) / scale)[:, 1]
        return p

    return predict


def _categories(rows: Rows, seen: Rows, of: Callable[[StudyRow], str]) -> Array:
    names = sorted({of(row) for row in seen})
    return np.array([[float(of(row) == name) for name in names] for row in rows])


def _logs(rows: Rows) -> Array:
    return np.array([[math.log10(row.rate), math.log10(row.depth)] for row in rows])


def _lookup(rows: Rows, seen: Rows) -> Array:
    names: tuple[Callable[[StudyRow], str], ...] = (
        lambda row: row.method,
        lambda row: row.architecture,
        lambda row: row.task,
        lambda row: row.optimizer,
    )
    return np.hstack([_logs(rows), *(_categories(rows, seen, of) for of in names)])


def _family(rows: Rows, seen: Rows) -> Array:
    return np.hstack([_logs(rows), _categories(rows, seen, family)])


def _loss(rows: Rows, seen: Rows) -> Array:
    measured = [(row.rate, row.measured) for row in rows if row.measured]
    return np.array([[each.loss_last / each.unigram, math.log10(rate)] for rate, each in measured])


PREDICTORS: Mapping[str, tuple[str, Predictor]] = {
    "forecast": ("forecast", lambda seen, asked: fit(features(seen), labels(seen)).probability(features(asked))),
    "gradient": (
        "gradient alone",
        lambda seen, asked: fit(features(seen, GRADIENT), labels(seen)).probability(features(asked, GRADIENT)),
    ),
    "family": ("family, rate, depth", _looked_up(_family)),
    "lookup": ("lookup", _looked_up(_lookup)),
    "loss": ("loss after 16 updates", _looked_up(_loss)),
}


@dataclass(frozen=True, slots=True)
class Scheme:
    """A way to hold out, and how each predictor does by it; runs without warm-up."""

    name: str
    scores: Mapping[str, ForecastScores]


@dataclass(frozen=True)
class Baselines:
    """The forecast compared with what costs less."""

    joined: Joined

    @cached_property
    def schemes(self) -> tuple[Scheme, ...]:
        """One axis held out after the other; what is joined, by fits on the corpus alone; every method in turn by fits
        on all else."""
        if not self.joined.corpus:
            return ()
        return tuple(self._schemes())

    def _schemes(self) -> Iterator[Scheme]:
        corpus = self.joined.corpus
        for axis in fixed():
            if axis in AXES:
                parts = [_parted(corpus, AXES[axis], value) for value in fixed()[axis]]
                yield _scheme(UNSEEN.format(axis), [part for part in parts if part[0] and part[1]])
        near = self.joined.runs.within.rows
        for optimizer, name in OPTIMIZERS.items():
            asked = [row for row in near if row.optimizer == optimizer]
            if asked:
                yield _scheme(f"joined runs under {name}, as they came", [(corpus, asked)])
        parts = [(seen, asked) for seen, asked in self.methods_in_turn if asked]
        for optimizer, name in OPTIMIZERS.items():
            if any(row.optimizer == optimizer for _, asked in parts for row in asked):
                yield _scheme(IN_TURN.format(name), parts, optimizer)

    @cached_property
    def methods_in_turn(self) -> tuple[tuple[Rows, Rows], ...]:
        """(all runs but a method's, a method's) at rates of the corpus, with what is joined."""
        every = (*self.joined.corpus, *self.joined.runs.within.rows)
        return tuple(_parted(every, AXES["method"], key) for key in sorted({row.method for row in every}))

    def alone(self) -> tuple[str, ...]:
        """Optimisers under which the gradient alone is the better forecast of methods that no fit has seen: by AUC and
        by skill."""
        better = list[str]()
        for optimizer, name in OPTIMIZERS.items():
            found = next((scheme for scheme in self.schemes if scheme.name == IN_TURN.format(name)), None)
            if found and all(
                getattr(found.scores["gradient"], key) > getattr(found.scores["forecast"], key)
                for key in ("auc", "skill")
            ):
                better.append(optimizer)
        return tuple(better)


HEADS = ("runs", *(label for label, _ in PREDICTORS.values()))


def table(schemes: Sequence[Scheme]) -> list[tuple[str, ...]]:
    """(how it is held out, runs, `AUC/skill` of every predictor) a row."""
    rows = []
    for scheme in schemes:
        first = next(iter(scheme.scores.values()))
        cells = [f"{short(scores.auc)}/{with_sign(scores.skill)}" for scores in scheme.scores.values()]
        rows.append((scheme.name, f"{first.n}, {first.n - first.trained} fail", *cells))
    return rows


def headline(schemes: Sequence[Scheme]) -> list[str]:
    """What it adds for methods that no fit has seen, beside what costs less: of the papers' methods, then of all."""
    by = {scheme.name: scheme.scores for scheme in schemes}
    if METHOD not in by:
        return []
    held_out = by[METHOD]
    in_turn = {name: by[IN_TURN.format(name)] for name in OPTIMIZERS.values() if IN_TURN.format(name) in by}
    every = ", ".join(f"{short(scores['forecast'].auc)} under {name}" for name, scores in in_turn.items())
    return [
        f"16 updates tell which of the papers' methods train under Adam (AUC {short(held_out['forecast'].auc)}; "
        f"settings alone {short(held_out['family'].auc)})",
        f"each method was held out for this; the gradient alone has {short(held_out['gradient'].auc)}",
        *([f"with each of all methods held out the AUC is {every}"] if every else []),
    ]


def to_json(schemes: Sequence[Scheme]) -> dict[str, dict[str, dict[str, float]]]:
    """{how it is held out: {predictor: its numbers}}."""
    names = ("n", "trained", "auc", "skill", "coverage", "accuracy")
    return {
        scheme.name: {key: {name: getattr(each, name) for name in names} for key, each in scheme.scores.items()}
        for scheme in schemes
    }


def _parted(rows: Rows, of: Callable[[StudyRow], object], value: object) -> tuple[Rows, Rows]:
    """(those without a value, those with it)."""
    return [row for row in rows if of(row) != value], [row for row in rows if of(row) == value]


def _scheme(name: str, parts: Sequence[tuple[Rows, Rows]], optimizer: str = "") -> Scheme:
    """Of the runs without warm-up, under one optimiser where one is named, by fits on the first of each part."""
    cold = [
        (seen, [row for row in asked if not row.warmup and optimizer in ("", row.optimizer)]) for seen, asked in parts
    ]
    cold = [(seen, asked) for seen, asked in cold if asked and len(set(labels(seen).tolist())) == 2]
    label = np.concatenate([np.empty(0, bool), *(labels(asked) for _, asked in cold)])
    return Scheme(
        name,
        {
            key: score(np.concatenate([np.empty(0), *(of(seen, asked) for seen, asked in cold)]), label)
            for key, (_, of) in PREDICTORS.items()
        },
    )
