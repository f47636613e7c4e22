"""Ridge logistic regression with weights that are never negative, of the links that rows have.

Minimises  −Σ log p(label_i) + ½·ridge·‖w‖²  over w and b,  p = σ(x·w + b), x standardised, every w_j ≥ 0: a feature
that rises never lowers the probability. Features come with their sign turned so that more is better; the one whose
weight is the most negative is left out and the rest fitted again, until none is. Each of these fits is scikit-learn's,
by Newton's method with conjugate gradients; the ridge is the inverse of its C, and the bias costs nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from stabkit.results.forecast.links import FITTED, Link, RunSetting
from stabkit.results.forecast.logistic import Array, Logistic, numbers
from studies.rows import StudyRow

RIDGE = 0.3
"""What a standard deviation's worth of weight costs against one run: keeps a feature that separates all from running
to infinity."""
STEPS, TOLERANCE = 1000, 1e-13
"""Newton steps at most, and the gradient of the mean cost that ends them."""

Labels = NDArray[np.bool_]


def features(rows: Sequence[StudyRow], links: Sequence[Link] = FITTED) -> Array:
    """(runs × links) of labelled rows."""
    return numbers([(row.measured, RunSetting(row.rate, row.hidden)) for row in rows if row.measured], links)


def labels(rows: Sequence[StudyRow]) -> Labels:
    """True where the run trains."""
    return np.array([row.trains for row in rows], dtype=bool)


def fit(x: Array, label: Labels, ridge: float = RIDGE) -> Logistic:
    """The minimum for (n × features) x and (n,) labels. Where all labels are one, the weights are 0 and the bias is
    that of (n + ½)/(n + 1)."""
    mean, scale = x.mean(axis=0), x.std(axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    z = (x - mean) / scale
    weight = np.zeros(x.shape[1])
    if label.all() or not label.any():
        share = (label.sum() + 0.5) / (len(label) + 1)
        return Logistic(mean, scale, weight, float(np.log(share / (1 - share))))
    columns = np.arange(x.shape[1])
    while len(columns):
        regression = LogisticRegression(C=1 / ridge, solver="newton-cg", tol=TOLERANCE, max_iter=STEPS)
        regression.fit(z[:, columns], label)
        (solution,) = regression.coef_
        if solution.min() >= 0:
            weight[columns] = solution
            return Logistic(mean, scale, weight, float(regression.intercept_[0]))
        columns = np.delete(columns, np.argmin(solution))
    share = label.mean()
    return Logistic(mean, scale, weight, float(np.log(share / (1 - share))))
