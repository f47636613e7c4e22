"""Ridge logistic regression with signs, by Newton's method: small enough to be refitted in a second.

Minimises  −Σ log p(label_i) + ½·ridge·‖w‖²  over w and b,  p = σ(x·w + b), x standardised, every w_j ≥ 0: a feature
that rises never lowers the probability. Features come with their sign turned so that more is better; one that the data
would give a negative weight gets none.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

RIDGE = 0.3
"""What a standard deviation's worth of weight costs against one run: keeps a feature that separates all from running
to infinity."""
STEPS, ENOUGH = 100, 1e-10
"""Newton steps at most, and a step so small that it is the last."""

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Logistic:
    """p = σ(bias + Σ weight_j·(x_j − mean_j)/scale_j)."""

    mean: Array
    scale: Array
    weight: Array
    bias: float

    def probability(self, x: Array) -> Array:
        """(n,) of the (n × features) given."""
        return sigmoid(((x - self.mean) / self.scale) @ self.weight + self.bias)


def sigmoid(z: Array) -> Array:
    """1/(1 + e^−z) without overflow."""
    found: Array = 0.5 * (1 + np.tanh(0.5 * z))
    return found


def fit(x: Array, label: NDArray[np.bool_], ridge: float = RIDGE) -> Logistic:
    """The minimum for (n × features) x and (n,) labels. Where all labels are one, the weights are 0 and the bias is
    that of (n + ½)/(n + 1)."""
    mean, scale = x.mean(axis=0), x.std(axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    z = (x - mean) / scale
    weight = np.zeros(x.shape[1])
    if label.all() or not label.any():
        share = (label.sum() + 0.5) / (len(label) + 1)
        return Logistic(mean, scale, weight, float(np.log(share / (1 - share))))
    kept = np.arange(x.shape[1])
    while True:
        solved = _newton(np.column_stack([z[:, kept], np.ones(len(z))]), label.astype(np.float64), ridge)
        if not len(kept) or solved[:-1].min() >= 0:
            weight[kept] = solved[:-1]
            return Logistic(mean, scale, weight, float(solved[-1]))
        kept = np.delete(kept, np.argmin(solved[:-1]))


def _newton(x: Array, y: Array, ridge: float) -> Array:
    """The minimum for columns x, the last of them the constant, which costs nothing."""
    penalty = np.full(x.shape[1], ridge)
    penalty[-1] = 0.0
    w = np.zeros(x.shape[1])
    for _ in range(STEPS):
        p = sigmoid(x @ w)
        gradient = x.T @ (p - y) + penalty * w
        hessian = (x * (p * (1 - p))[:, None]).T @ x + np.diag(penalty + 1e-12)
        step = np.linalg.solve(hessian, gradient)
        size = 1.0
        while size > 1e-6 and _cost(x, y, penalty, w - size * step) > _cost(x, y, penalty, w):
            size /= 2
        w = w - size * step
        if np.abs(step).max() < ENOUGH:
            break
    return w


def _cost(x: Array, y: Array, penalty: Array, w: Array) -> float:
    z = x @ w
    return float((np.logaddexp(0, z) - y * z).sum() + 0.5 * (penalty * w * w).sum())
