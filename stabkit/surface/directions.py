"""Planes in weight space. Weights, directions and paths are vectors; a Layout says which part is which tensor.

    filter   ‖δ_row‖ = ‖w_row‖ for every row of a matrix, embeddings by row     (Li et al. 2018, §4)
    layer    ‖δ_tensor‖ = ‖w_tensor‖
    model    ‖δ‖ = ‖w‖ over all tensors that move
    none     δ as drawn, N(0, 1)

One-dimensional tensors (biases, norms, scalars) do not move unless asked to: at 18L-18L they hold a fiftieth of the
weights and, normalised, a fifth (Post-LN) to a third (DeepNorm) of the direction's energy. Everything is numpy in
float64; never imports torch.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stabkit.results.surface import Normalise
from stabkit.streams import stream

Vector = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Tensor:
    """One tensor's place in the vector."""

    name: str
    shape: tuple[int, ...]
    begin: int

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def part(self) -> slice:
        return slice(self.begin, self.begin + self.size)

    @property
    def rests(self) -> bool:
        """Whether it stays where it is unless everything moves: what has one dimension, and what wirings train, vectors
        and scalars of all sub-layers in one tensor."""
        return len(self.shape) < 2 or self.name.startswith("history.")


Layout = Sequence[Tensor]


def layout(shapes: Sequence[tuple[str, tuple[int, ...]]]) -> tuple[Tensor, ...]:
    """Tensors one after the other."""
    tensors, begin = [], 0
    for name, shape in shapes:
        tensors.append(Tensor(name, tuple(shape), begin))
        begin += tensors[-1].size
    return tuple(tensors)


def difference(tensors: Layout, other: Layout) -> str:
    """The first tensor in which two layouts differ, in words; "" where none does."""
    for ours, theirs in zip(tensors, other, strict=False):
        if (ours.name, ours.shape) != (theirs.name, theirs.shape):
            return f"{ours.name} {list(ours.shape)} against {theirs.name} {list(theirs.shape)}"
    if len(tensors) != len(other):
        longer = tensors if len(tensors) > len(other) else other
        extra = longer[min(len(tensors), len(other))]
        return f"{extra.name} {list(extra.shape)} against nothing"
    return ""


def gaussian(tensors: Layout, seed: int, axis: int) -> Vector:
    """N(0, 1) for every weight, each tensor from its own stream: a model with one tensor more shares all the others."""
    parts = [stream(seed, "direction", axis, tensor.name).standard_normal(tensor.size) for tensor in tensors]
    return np.concatenate(parts) if parts else np.empty(0)


def normalised(direction: Vector, weights: Vector, tensors: Layout, how: Normalise, one_dimensional: bool) -> Vector:
    """The direction at the length of the weights. A row of zeros gets a direction of zeros."""
    scaled = np.zeros_like(direction)
    for tensor in tensors:
        if tensor.rests and not one_dimensional:
            continue
        d, w = direction[tensor.part], weights[tensor.part]
        rows = tensor.shape[0] if how == "filter" and len(tensor.shape) > 1 else 1
        if how in ("filter", "layer"):
            d_rows, w_rows = d.reshape(rows, -1), w.reshape(rows, -1)
            length = np.linalg.norm(d_rows, axis=1, keepdims=True)
            wanted = np.linalg.norm(w_rows, axis=1, keepdims=True)
            d = (d_rows * np.divide(wanted, length, out=np.zeros_like(length), where=length > 0)).reshape(-1)
        scaled[tensor.part] = d
    if how == "model":
        moving = scaled != 0
        length = np.linalg.norm(scaled)
        scaled *= np.linalg.norm(weights[moving]) / length if length > 0 else 0.0
    return scaled


def orthogonal(second: Vector, first: Vector) -> Vector:
    """`second` without its part along `first`: row norms change by a cosine, at most 4·10⁻⁴ of them at 18L-18L."""
    squared = float(first @ first)
    return second - (float(second @ first) / squared) * first if squared > 0 else second


def random_plane(
    weights: Vector,
    tensors: Layout,
    seed: int,
    how: Normalise = "filter",
    one_dimensional: bool = False,
    orthogonalise: bool = False,
) -> tuple[Vector, Vector]:
    """Two random directions at the length of these weights; the same seed gives the same draws to every model."""
    first, second = (
        normalised(gaussian(tensors, seed, axis), weights, tensors, how, one_dimensional) for axis in (0, 1)
    )
    return first, orthogonal(second, first) if orthogonalise else second


@dataclass(frozen=True, slots=True)
class Axes:
    """Two orthonormal directions of a path, and the share of its squared displacement that each explains."""

    first: Vector
    second: Vector
    explained: tuple[float, float]


def pca(path: Sequence[Vector]) -> Axes:
    """The first two principal axes of {θ_i − θ_last}, uncentred, as Li et al. §7 and their code draw a path.

    Found through the small Gram matrix of the displacements. Raises ValueError for fewer than three points, or points
    that lie on a line.
    """
    moves = _moves(path)
    total = float((moves**2).sum())
    first, scale = _principal(moves)
    second, two = _principal(moves - np.outer(moves @ first, first))
    return Axes(first, second, (scale / total, two / total))


def hao(path: Sequence[Vector]) -> Axes:
    """From the first to the last point, and the first principal axis of what is left of the path (Hao et al. 2019)."""
    moves = _moves(path)
    total = float((moves**2).sum())
    first = -moves[0] / np.linalg.norm(moves[0])
    along = moves @ first
    second, two = _principal(moves - np.outer(along, first))
    return Axes(first, second, (float((along**2).sum()) / total, two / total))


def _moves(path: Sequence[Vector]) -> NDArray[np.float64]:
    """(points − 1, P) displacements from the last point."""
    if len(path) < 3:
        raise ValueError(f"a path's plane needs three sets of weights or more, got {len(path)}")
    moves = np.stack([point - path[-1] for point in path[:-1]])
    if not np.isfinite(moves).all():
        raise ValueError("the path holds weights that are not finite")
    return moves


def _principal(moves: NDArray[np.float64]) -> tuple[Vector, float]:
    """The unit axis that explains most, pointing to where the path begins, and its share of the squares."""
    values, vectors = np.linalg.eigh(moves @ moves.T)
    axis = vectors[:, -1] @ moves
    length = float(np.linalg.norm(axis))
    if not length > 1e-12 * math.sqrt(moves.shape[1]):
        raise ValueError("the path lies on a line: there is no plane")
    axis /= length
    return axis * (1.0 if float(moves[0] @ axis) >= 0 else -1.0), float(values[-1])


def project(point: Vector, origin: Vector, first: Vector, second: Vector) -> tuple[float, float, float]:
    """(a, b, outside): least-squares coordinates of a point in a plane, and the share of its displacement outside it.

    Least squares and not dot products: filter-normalised directions are neither of unit length nor, quite, orthogonal.
    """
    move = point - origin
    gram = np.array([[first @ first, first @ second], [first @ second, second @ second]])
    a, b = np.linalg.lstsq(gram, np.array([first @ move, second @ move]), rcond=None)[0]
    length = float(np.linalg.norm(move))
    left = float(np.linalg.norm(move - a * first - b * second))
    return float(a), float(b), left / length if length > 0 else 0.0


def axis(points: int, reach: float) -> tuple[float, ...]:
    """`points` evenly from −reach to reach, an exact 0 in the middle, symmetric to the bit; raises ValueError."""
    if points < 3 or points % 2 == 0:
        raise ValueError(f"a surface needs an odd number of points, 3 or more, with one in the middle; got {points}")
    half = points // 2
    up = [reach * (i / half) for i in range(1, half + 1)]
    return (*(-value for value in reversed(up)), 0.0, *up)
