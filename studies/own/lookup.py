"""What a table of settings says without a probe: scheme, norms, initialisation, optimiser, task, kind and size.

A ridge logistic (C = 0.3) of the settings alone, fitted on the fitting part: one column a value of each setting, and
the logarithms of the rate over the usual one, of the depth, of their product and of the width. With a group held out
both this and the probe's forecast are fitted without it, and judged on its models, pooled over the groups.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from sklearn.linear_model import LogisticRegression

from stabkit.results.forecast.logistic import Array
from studies.forecast.scores import auc, auc_interval
from studies.own.corpus import CorpusRow
from studies.own.fit import fitted, labels, part, probability, setting
from studies.own.judge import norms

RIDGE = 0.3
WORDS: tuple[Callable[[CorpusRow], str], ...] = (
    lambda row: row.case.shape.scheme,
    norms,
    lambda row: row.case.shape.init,
    lambda row: row.case.optimizer,
    lambda row: row.case.task,
    lambda row: row.case.shape.kind,
    lambda row: str(row.case.warmup),
)
GROUPS: dict[str, Callable[[CorpusRow], str]] = {
    "each scheme held out": lambda row: row.case.shape.scheme,
    "each kind of norm held out": norms,
}
Area = tuple[float, float, float]
"""(area, from, to)."""


def _columns(rows: Sequence[CorpusRow], seen: Sequence[CorpusRow]) -> Array:
    """The settings of rows as numbers; values that were not among those seen have no column."""
    columns = [[float(of(row) == value) for row in rows] for of in WORDS for value in sorted({of(row) for row in seen})]
    rate = [np.log(setting(row).rate) for row in rows]
    depth = [np.log(row.case.shape.depth) for row in rows]
    columns += [rate, depth, list(np.multiply(rate, depth)), [np.log(row.case.shape.width) for row in rows]]
    return np.array(columns, dtype=np.float64).T


def predicted(seen: Sequence[CorpusRow], asked: Sequence[CorpusRow]) -> Array:
    """The probability that each of `asked` trains, by a fit on `seen`."""
    model = LogisticRegression(C=RIDGE, max_iter=5000).fit(_columns(seen, seen), labels(seen))
    found: Array = model.predict_proba(_columns(asked, seen))[:, 1]
    return found


def compared(rows: Sequence[CorpusRow]) -> list[tuple[str, Area, Area]]:
    """(how it is held out, the probe, the settings), on the models that both have a number for."""
    seen, judged = part(rows, judge=False), part(rows, judge=True)
    found = [("all in the fit", *_both([(seen, judged)]))]
    for name, of in GROUPS.items():
        parts = [
            ([row for row in seen if of(row) != group], [row for row in judged if of(row) == group])
            for group in sorted({of(row) for row in judged})
        ]
        found.append((name, *_both(parts)))
    return found


def _both(parts: Sequence[tuple[Sequence[CorpusRow], Sequence[CorpusRow]]]) -> tuple[Area, Area]:
    probe, settings, right = list[float](), list[float](), list[bool]()
    for seen, asked in parts:
        by = fitted(seen)
        given = [(p, row) for row in asked if (p := probability(row, by)) is not None]
        if given:
            probe += [p for p, _ in given]
            settings += predicted(seen, [row for _, row in given]).tolist()
            right += labels([row for _, row in given]).tolist()
    label = np.array(right)
    areas = [(auc(np.array(p), label), *auc_interval(np.array(p), label)) for p in (probe, settings)]
    return areas[0], areas[1]
