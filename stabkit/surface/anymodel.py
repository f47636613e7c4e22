"""The loss surface of a user's own torch.nn.Module: `stabkit.loss_surface(model, loss)`.

    surface = stabkit.loss_surface(model, lambda m: criterion(m(x), y))
    surface.a, surface.b, surface.loss        # loss[j, i] is that at a[i], b[j]; the middle is the model's own

The model is copied, and the copy is moved: weights, `requires_grad`, mode and torch's random state stay as they
are. A metric of the `loss_landscapes` library is a loss too, unchanged.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from stabkit.errors import UsageError
from stabkit.results.surface import NORMALISATIONS, Normalise
from stabkit.surface import directions, roughness
from stabkit.surface.directions import Vector
from stabkit.surface.evaluate import Evaluator


@dataclass(frozen=True, kw_only=True, repr=False)
class LossSurface:
    """A surface and the plane that it lies in."""

    a: NDArray[np.float64]
    b: NDArray[np.float64]
    loss: NDArray[np.float64]
    """(b, a); (1, a) for a cut. NaN and infinity are what the loss was."""
    origin: Vector
    directions: tuple[Vector, Vector]
    """Vectors in the order of `model.named_parameters()`."""

    def __repr__(self) -> str:
        size = "×".join(map(str, self.loss.shape))
        return f"<LossSurface: {size} points, roughness {self.roughness:.3g}, curvature {self.curvature:.3g}>"

    @property
    def roughness(self) -> float:
        """Σ|Δ²L|/Σ|ΔL| over neighbouring points, which has no scale (`surface/roughness.py`)."""
        return roughness.roughness(self.loss)

    @property
    def curvature(self) -> float:
        """Mean absolute second difference between neighbouring points: large for a steep bowl too."""
        return roughness.curvature(self.loss)

    @property
    def negative_curvature(self) -> float:
        """Share of the second differences that are negative."""
        return roughness.negative_curvature(self.loss)

    def project(self, model: nn.Module) -> tuple[float, float, float]:
        """(a, b, outside) of other weights of the same model: least squares, and the share outside the plane."""
        point = np.concatenate([p.detach().double().cpu().numpy().reshape(-1) for p in model.parameters()])
        return directions.project(point, self.origin, *self.directions)


def loss_surface(
    model: nn.Module,
    loss: Callable[[Any], Any],
    *,
    points: int = 25,
    reach: float = 1.0,
    seed: int = 0,
    normalise: Normalise = "filter",
    one_dimensional: bool = False,
    orthogonalise: bool = False,
    cut: bool = False,
    plane: tuple[Sequence[float], Sequence[float]] | None = None,
    together: int = 1,
) -> LossSurface:
    """The loss at model + a·δ + b·η for a and b in [−reach, reach], `points` along each axis, an exact 0 in the middle.

    `loss(model)` is one number: a function of the (copied) model, or a metric of `loss_landscapes`. δ and η are
    Gaussian from `seed`, as long as the weights row by row (`normalise`: filter, layer, model, none), one-dimensional
    parameters at rest unless `one_dimensional`; or given as `plane`, two vectors in the order of `named_parameters()`.
    Both are as Li et al. (2018) have them; `orthogonalise` turns η against δ afterwards, whose rows then are no longer
    as long as the weights'.
    `cut`: the line along δ alone. `together`: points in one forward pass (`torch.vmap`; the loss must allow it).

    Raises UsageError for a number of points that is even, a model that cannot be copied, a plane of another length, a
    loss that is not one number; what the loss itself raises passes through, and the model is as it was.

    >>> import stabkit, torch
    >>> model = torch.nn.Linear(4, 1, bias=False)
    >>> surface = stabkit.loss_surface(model, lambda model: model.weight.square().sum(), points=5)
    >>> surface.loss.shape, bool((surface.loss >= 0).all())
    ((5, 5), True)
    """
    if not isinstance(model, nn.Module) or not callable(loss):
        got = f"{type(model).__name__} and {type(loss).__name__}"
        raise UsageError(f"loss_surface needs a torch.nn.Module and a function loss(model), got {got}")
    if normalise not in NORMALISATIONS:
        raise UsageError(f"normalise must be one of {', '.join(NORMALISATIONS)}, not {normalise!r}")
    if not 0 < reach < float("inf"):
        raise UsageError(f"reach must be a positive number, not {reach!r}")
    try:
        a = np.array(directions.axis(points, reach))
    except ValueError as error:
        raise UsageError(str(error)) from error
    evaluator = Evaluator(model, _wrapped(loss), together)
    if plane is None:
        first, second = directions.random_plane(
            evaluator.origin, evaluator.layout, seed, normalise, one_dimensional, orthogonalise
        )
    else:
        if len(plane) != 2:
            raise UsageError(f"a plane needs two directions, got {len(plane)}")
        first, second = (np.asarray(direction, dtype=np.float64) for direction in plane)
        if not first.shape == second.shape == evaluator.origin.shape:
            sizes = f"{first.shape} and {second.shape}"
            raise UsageError(f"a plane's directions have {evaluator.origin.shape} numbers for this model, got {sizes}")
    if not first.any() or not (np.isfinite(first).all() and np.isfinite(second).all()):
        alone = "a model with only one-dimensional parameters needs one_dimensional=True"
        raise UsageError(f"the direction is zero or not finite; {alone}")
    b = np.zeros(1) if cut else a
    losses = evaluator.at(evaluator.origin, (first, second), [(x, y) for y in b for x in a]).reshape(len(b), len(a))
    return LossSurface(a=a, b=b, loss=losses, origin=evaluator.origin, directions=(first, second))


def _wrapped(loss: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A loss of a model; a metric of `loss_landscapes` is given the model in that library's own wrapper."""
    if "loss_landscapes" not in sys.modules:  # whoever has made a metric has imported it
        return loss
    from loss_landscapes.metrics import Metric
    from loss_landscapes.model_interface.model_wrapper import SimpleModelWrapper

    if isinstance(loss, Metric):
        return lambda model: loss(SimpleModelWrapper(model))
    return loss
