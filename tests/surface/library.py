"""The same plane walked by the `loss_landscapes` library (3.0.6), as an independent check of our own engine.

Its `planar_interpolation` adds and subtracts steps in place, forwards along one row and backwards along the next, and
evaluates the even rows one step later than the odd ones; it takes three models, moves the first, and returns no
coordinates. Here it is given copies, a start one step before the first point, one step more than there are points, and
its rows are put back in line.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import loss_landscapes
import numpy as np
import torch
from loss_landscapes.metrics import Metric
from numpy.typing import NDArray
from torch import nn

from stabkit.surface.directions import Vector
from stabkit.surface.evaluate import Evaluator, undisturbed


def walk(
    evaluator: Evaluator,
    loss: Callable[[Any], Any],
    origin: Vector,
    first: Vector,
    second: Vector,
    a: NDArray[np.float64],
    b: NDArray[np.float64],
) -> NDArray[np.float64]:
    """(b, a) losses at origin + a·first + b·second, of a square of two rows or more, by the library."""

    class LossMetric(Metric):  # type: ignore[misc]  # the library ships no types
        def __call__(self, wrapper: Any) -> float:
            return float(loss(wrapper.get_modules()[0]))

    steps, across, along = len(a) + 1, a[1] - a[0], b[1] - b[0]
    # the library's rows run along its first direction, its columns along its second: ours along b, ours along a
    start = origin + (a[0] - across) * first + b[0] * second
    corners = (start, start + steps * along * second, start + steps * across * first)
    with torch.no_grad(), undisturbed(evaluator.vector(np.zeros(1)).device):
        losses = loss_landscapes.planar_interpolation(*(_moved(evaluator, at) for at in corners), LossMetric(), steps)
    losses = np.asarray(losses, dtype=np.float64)
    return np.stack([losses[j, :-1] if j % 2 == 0 else losses[j, 1:] for j in range(len(b))])


def _moved(evaluator: Evaluator, theta: Vector) -> nn.Module:
    """A copy of the model at these weights, its parameters its own."""
    moved = copy.deepcopy(evaluator.model)
    vector = evaluator.vector(theta)
    parameters = dict(moved.named_parameters())
    for tensor in evaluator.layout:
        parameters[tensor.name].data = vector[tensor.part].view(tensor.shape).clone()
    return moved
