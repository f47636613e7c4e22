"""The loss of a model anywhere in weight space, on a copy: the caller's model is read once and never touched.

Every point is θ₀ + a·δ + b·η in absolute coordinates, so nothing drifts and a = b = 0 is θ₀ to the bit. The copy is in
eval mode, without gradients, and its parameters are views into one vector: a point costs one vector operation and a
forward pass. With `together` above 1 that many points share one forward pass (`torch.vmap`), which is what keeps a GPU
busy: these deep, narrow models are bound by the number of operations, not by their size.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from stabkit.errors import UsageError
from stabkit.model.bound import bound, places
from stabkit.surface.directions import Tensor, Vector, layout

Loss = Callable[[Any], Any]
"""A model → its loss, a number or a tensor of one element."""


class Evaluator:
    """The loss at points, of a copy of a model."""

    def __init__(self, model: nn.Module, loss: Loss, together: int = 1) -> None:
        """Raises UsageError for a model without parameters, with several kinds of them, or that cannot be copied."""
        named = list(model.named_parameters())
        kinds = {(p.dtype, p.device) for _, p in named}
        if together < 1:
            raise UsageError(f"together must be a number of points, 1 or more, not {together}")
        if len(kinds) != 1 or any(dtype.is_complex for dtype, _ in kinds):
            what = ", ".join(sorted(f"{dtype} on {device}" for dtype, device in kinds)) or "none"
            raise UsageError(
                f"a surface needs a model whose parameters are all of one real kind; this one's are: {what}"
            )
        try:
            self.model = copy.deepcopy(model)
        except Exception as error:  # the user's own
            raise UsageError(f"the model cannot be copied ({type(error).__name__}: {error})") from error
        self.model.eval()
        self.model.requires_grad_(False)
        self.layout: tuple[Tensor, ...] = layout([(name, tuple(p.shape)) for name, p in named])
        parameters = dict(self.model.named_parameters())
        self._theta = torch.cat([parameters[name].detach().reshape(-1) for name, _ in named])
        self._places = places(self.model)
        for tensor in self.layout:
            parameters[tensor.name].data = self._theta[tensor.part].view(tensor.shape)
        self._parts = {id(parameters[tensor.name]): tensor for tensor in self.layout}
        self.origin: Vector = self._theta.double().cpu().numpy().copy()
        self.loss, self._together = loss, together

    def vector(self, values: Vector) -> torch.Tensor:
        """A vector of this model's weights, as the model has them."""
        return torch.from_numpy(np.asarray(values)).to(dtype=self._theta.dtype, device=self._theta.device)

    @torch.no_grad()
    def at(
        self, origin: Vector, directions: Sequence[Vector], points: Sequence[Sequence[float]]
    ) -> NDArray[np.float64]:
        """The loss at origin + Σ points[i][k]·directions[k], for every i. NaN and infinity stay what they are."""
        start, moves = self.vector(origin), [self.vector(direction) for direction in directions]
        losses: list[float] = []
        row = _Row(start, moves)
        with undisturbed(self._theta.device):
            for first in range(0, len(points), self._together):
                some = points[first : first + self._together]
                if len(some) == 1 or self._together == 1:
                    losses += [self._one(row, point) for point in some]
                else:
                    losses += self._many(start, moves, some)
        return np.array(losses, dtype=np.float64)

    def _one(self, row: _Row, point: Sequence[float]) -> float:
        """The loss at a point: its row's base, and one step along the first direction."""
        if row.moves:
            torch.add(row.base(tuple(point[1:])), row.moves[0], alpha=point[0], out=self._theta)
        else:
            self._theta.copy_(row.start)
        return _number(self.loss(self.model))

    def _many(
        self, start: torch.Tensor, moves: Sequence[torch.Tensor], points: Sequence[Sequence[float]]
    ) -> list[float]:
        theta = start.expand(len(points), -1).clone()
        for i, move in reversed(list(enumerate(moves))):
            amounts = torch.tensor([point[i] for point in points], dtype=theta.dtype, device=theta.device)
            theta += amounts[:, None] * move

        def one(weights: torch.Tensor) -> torch.Tensor:
            views = {held: weights[tensor.part].view(tensor.shape) for held, tensor in self._parts.items()}
            with bound(self._places, views):
                return torch.as_tensor(self.loss(self.model))

        found = torch.vmap(one)(theta)
        if found.numel() != len(points):
            raise UsageError(f"a loss must be one number; this one has {found.numel() // len(points)}")
        losses: list[float] = found.double().reshape(len(points)).tolist()
        return losses


class _Row:
    """origin + b·η for one b: what all points of a row of a surface share."""

    def __init__(self, start: torch.Tensor, moves: Sequence[torch.Tensor]) -> None:
        self.start, self.moves = start, moves
        self.rest: tuple[float, ...] | None = None
        self.held = start

    def base(self, rest: tuple[float, ...]) -> torch.Tensor:
        """origin + Σ rest[k]·moves[k + 1]."""
        if rest != self.rest:
            self.rest, self.held = rest, self.start
            for move, amount in zip(self.moves[1:], rest, strict=True):
                if amount:
                    self.held = torch.add(self.held, move, alpha=amount)
        return self.held


def _number(value: Any) -> float:
    """A loss as a float; raises UsageError for what is none."""
    try:
        return float(value)
    except (TypeError, ValueError, RuntimeError) as error:
        raise UsageError(f"a loss must be one number; this one is {type(value).__name__} ({error})") from error


@contextmanager
def undisturbed(device: torch.device) -> Iterator[None]:
    """Random states are put back, whatever the loss draws."""
    before = torch.get_rng_state()
    cuda = torch.cuda.get_rng_state(device) if device.type == "cuda" else None
    try:
        yield
    finally:
        torch.set_rng_state(before)
        if cuda is not None:
            torch.cuda.set_rng_state(cuda, device)
