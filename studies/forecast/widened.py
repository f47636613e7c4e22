"""A fit widened by what its own held-out groups show: where forecasts by fits without a group are too sure, it is less.

    p = σ(a + s·z),   z the score of the plain fit;  a, s by maximum likelihood on the scores that runs get from fits
    without their group (`holdouts.py`), a run's several scores weighing as one (Platt 1999)

The scores of a logistic fit are straight in its features, so what comes out is a fit of the same form.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from sklearn.linear_model import LogisticRegression

from stabkit.results.forecast.links import FITTED, Link
from stabkit.results.forecast.logistic import Logistic
from studies.forecast.holdouts import HeldOutGroup, out_of_group
from studies.forecast.regression import Labels, features, fit
from studies.rows import StudyRow

SURE = 1e-9
"""Probabilities count as this far from 0 and 1 at least."""


def widen(rows: Sequence[StudyRow], label: Labels, links: Sequence[Link] = FITTED) -> Logistic:
    """The fit of labelled rows by these links, widened; the plain one where no group can be held out."""
    plain = fit(features(rows, links), label)
    scores, labels_, weights = _scores(out_of_group(rows, label, links), label)
    if not len(scores) or labels_.all() or not labels_.any():
        return plain
    regression = LogisticRegression(C=np.inf, solver="newton-cholesky", tol=1e-10, max_iter=1000)
    regression.fit(scores[:, None], labels_, sample_weight=weights)
    slope, shift = float(regression.coef_[0, 0]), float(regression.intercept_[0])
    return plain.turned(slope, shift) if slope > 0 else plain


def out_of_group_widened(rows: Sequence[StudyRow], label: Labels) -> tuple[HeldOutGroup, ...]:
    """Every held-out group, forecast by a widened fit that has seen none of it: neither the fit nor what widens it."""
    groups = []
    for group in out_of_group(rows, label):
        inside = np.zeros(len(rows), dtype=bool)
        inside[group.places] = True
        rest = [row for row, held in zip(rows, inside, strict=True) if not held]
        p = widen(rest, label[~inside]).probability(features([rows[i] for i in group.places]))
        groups.append(HeldOutGroup(group.axis, group.value, group.places, p))
    return tuple(groups)


def _scores(groups: Sequence[HeldOutGroup], label: Labels) -> tuple[np.ndarray, Labels, np.ndarray]:
    """(scores, labels, weights) of all forecasts of these groups."""
    run = np.concatenate([np.empty(0, np.intp), *(group.places for group in groups)])
    p = np.clip(np.concatenate([np.empty(0), *(group.p for group in groups)]), SURE, 1 - SURE)
    _, which, count = np.unique(run, return_inverse=True, return_counts=True)
    return np.log(p / (1 - p)), label[run], 1 / count[which]
