"""The rule that ends a training, fitted and judged: `stabkit/results/own/looks.py`.

Fitted on the cases to choose on: a ridge logistic of all looks together, every case with the weight of one, the
forecast of a case by a fit that has not seen its scheme (eight folds of schemes). Judged on all others, by the
command's own function (`judge.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
from sklearn.linear_model import LogisticRegression

from stabkit.results.forecast.logistic import Array
from stabkit.results.own import looks
from stabkit.results.own.looks import FIRST, KEYS, LAST, TEN, Known
from stabkit.streams import stream
from studies.own.corpus import CorpusRow
from studies.own.fit import fitted, labels, probability
from studies.own.models import SCHEMES

FOLDS, RIDGE, WEIGHT = 8, 1.0, 10.0
"""Of schemes; C of the logistic on features over their spread; how many looks a case counts as."""


def folds(rows: Sequence[CorpusRow]) -> list[tuple[list[CorpusRow], list[CorpusRow]]]:
    """(the others, one fold): a scheme is in one fold alone."""
    schemes = list(stream(0, "folds of looks").permutation(sorted(SCHEMES)))
    fold = {scheme: i % FOLDS for i, scheme in enumerate(schemes)}
    inside = [[row for row in rows if fold[row.case.shape.scheme] == k] for k in range(FOLDS)]
    return [([row for row in rows if fold[row.case.shape.scheme] != k], own) for k, own in enumerate(inside)]


def forecasts(rows: Sequence[CorpusRow]) -> dict[int, float | None]:
    """{number: the forecast of a case by a fit without its scheme}."""
    return {row.case.number: probability(row, by) for seen, own in folds(rows) for by in (fitted(seen),) for row in own}


def fit(rows: Sequence[CorpusRow], given: dict[int, float | None], keys: Sequence[str] = KEYS) -> dict[str, Array]:
    """The weights of these keys on these cases, by the forecasts given; a case without a forecast is left out where one
    is needed."""
    return {key: _fit(rows, given, key) for key in keys}


@cache  # of a case the same in every fit that it is part of
def _features(losses: tuple[float, ...], own: Known, counts: range) -> list[Array]:
    return [looks.features(losses[:count], own) for count in counts]


def _fit(rows: Sequence[CorpusRow], given: dict[int, float | None], key: str) -> Array:
    x, y, weight = list[Array](), list[bool](), list[float]()
    for row, trains in zip(rows, labels(rows), strict=True):
        p = given[row.case.number]
        counts = range(FIRST // TEN, min(len(row.losses), LAST // TEN) + 1)
        if not counts or ("forecast" in key and p is None):
            continue
        x += _features(row.losses, row.known(p, key), counts)
        y += [bool(trains)] * len(counts)
        weight += [WEIGHT / len(counts)] * len(counts)
    each = np.array(x)
    spread = np.where(each.std(axis=0) > 0, each.std(axis=0), 1.0)
    model = LogisticRegression(C=RIDGE, max_iter=4000, fit_intercept=False)
    found: Array = model.fit(each / spread, y, sample_weight=weight).coef_[0] / spread
    return np.array([float(f"{value:.5g}") for value in found])
