"""The forecast of users' models, fitted on the rows to choose on; the words counted on those that judge.

Ridge logistic regression with weights that are never negative (`studies/forecast/regression.py`), on rows that are
clear and whose numbers were all there after sixteen updates; a row that lost a number before is told LOST, without any
fit.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stabkit.results.forecast.logistic import Array, Logistic, numbers
from stabkit.results.own.forecast import LINKS, LOST, USUAL, OwnCoefficients, OwnLink, OwnSetting
from studies.forecast.regression import Labels, fit
from studies.own.corpus import CorpusRow

NAMES = {"adamw": "AdamW", "sgd": "SGD", "muon": "Muon", "lion": "Lion"}
"""{optimiser of the design: its class}."""
RIDGE = 1.0
"""What a standard deviation's worth of weight costs against one model."""


def setting(row: CorpusRow) -> OwnSetting:
    """Of a row."""
    case = row.case
    return OwnSetting(case.rate / USUAL[NAMES[case.optimizer]], case.warmup, case.shape.depth, case.shape.width)


def usable(row: CorpusRow, links: Sequence[OwnLink] = LINKS) -> bool:
    """Whether a fit can be made of it, or a probability given: all its numbers are there, and its loss is one of
    scores."""
    if row.measured is None or row.case.regression:
        return False
    return row.measured.finite and bool(np.isfinite(features([row], links)).all())


def features(rows: Sequence[CorpusRow], links: Sequence[OwnLink] = LINKS) -> Array:
    """(rows × links)."""
    return numbers([(row.measured, setting(row)) for row in rows if row.measured is not None], links)


def labels(rows: Sequence[CorpusRow]) -> Labels:
    """True where a model trains."""
    return np.array([not row.fails for row in rows], dtype=bool)


def part(rows: Sequence[CorpusRow], *, judge: bool) -> list[CorpusRow]:
    """The clear rows of one part."""
    return [row for row in rows if row.case.judge is judge and row.clear]


def fitted(rows: Sequence[CorpusRow], links: Sequence[OwnLink] = LINKS) -> Logistic:
    """The fit on these rows."""
    good = [row for row in rows if usable(row, links)]
    return fit(features(good, links), labels(good), RIDGE)


def probability(row: CorpusRow, by: Logistic, known: OwnCoefficients | None = None) -> float | None:
    """The probability that a row is given: LOST where a number was lost; None of a probe without result, or where it is
    unlike all models that are `known`."""
    if not row.refused and (row.measured is None or not row.measured.finite):
        return LOST
    if not usable(row):
        return None
    x = features([row])
    if known is not None and known.beyond(x[0], setting(row)):
        return None
    return float(by.probability(x)[0])
