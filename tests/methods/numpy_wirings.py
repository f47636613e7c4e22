"""Every wiring once more, in numpy, one sentence at a time (`numpy_reference.py`): no code of `wirings/`.

A wiring is made of a stack's weights and sub-layers; x and f are (T, d).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stabkit.methods.base import Site
from stabkit.methods.wirings import Wiring

Array = NDArray[np.float64]
Weights = Callable[[str], Array]
"""The weight of this name."""
Normed = Callable[[str, Array], Array]
"""(name, x) → x past the comparison's norm of this name."""


class NumpyChain:
    """What each sub-layer reads, and what its output becomes."""

    def __init__(self, w: Weights, norm: Normed, sites: Sequence[Site], x: Array) -> None:
        self.w, self.norm, self.sites, self.x = w, norm, sites, x
        self.layers = sites[-1].layer
        self.start()

    def start(self) -> None:
        """Before the first."""

    def read(self, i: int) -> Array:
        return self.x

    def join(self, i: int, y: Array, f: Array) -> None:
        self.x = y

    def end(self) -> Array:
        return self.x

    def opens(self, i: int) -> bool:
        """Whether sub-layer i is the first of its layer."""
        return i == 0 or self.sites[i].layer != self.sites[i - 1].layer

    def closes(self, i: int) -> bool:
        return i == len(self.sites) - 1 or self.opens(i + 1)


class Triangle(NumpyChain):
    """DLCL: all outputs so far, weighed by a row of the triangle."""

    normed = True

    def start(self) -> None:
        self.ys = [self.x]

    def read(self, i: int) -> Array:
        return self.combined() if self.opens(i) else self.x

    def join(self, i: int, y: Array, f: Array) -> None:
        self.x = y
        if self.closes(i):
            self.ys.append(y)

    def end(self) -> Array:
        return self.combined()

    def combined(self) -> Array:
        length = len(self.ys)
        row = self.w("weight")[length * (length - 1) // 2 : length * (length + 1) // 2]
        arrays = list(self.ys)
        if self.normed:
            arrays[1:] = [self.norm(f"norms.{k}", y) for k, y in enumerate(self.ys[1:])]
        total = np.zeros_like(self.x)
        for weight, array in zip(row, arrays, strict=True):
            total = total + weight * array
        return total if self.normed or length == 1 else self.norm(f"norms.{length - 2}", total)


class TriangleNormedAfter(Triangle):
    normed = False


class Dual(NumpyChain):
    """ResiDual: everything added, past a norm, beside the chain."""

    def start(self) -> None:
        self.total = self.x

    def join(self, i: int, y: Array, f: Array) -> None:
        self.x, self.total = y, self.total + f

    def end(self) -> Array:
        return self.x + self.norm("norm", self.total)


class Twins(NumpyChain):
    """SiameseNorm."""

    def start(self) -> None:
        self.free = self.x

    def read(self, i: int) -> Array:
        self.x = self.norm(f"of_x.{i}", self.x)
        return self.x + self.norm(f"of_y.{i}", self.free)

    def join(self, i: int, y: Array, f: Array) -> None:
        self.x, self.free = self.x + f / (2 * self.sites[i].layer) ** 0.5, self.free + f

    def end(self) -> Array:
        last = len(self.sites)
        return self.norm(f"of_x.{last}", self.x) + self.norm(f"of_y.{last}", self.free)


class Smaller(NumpyChain):
    """GPAS: times 1 − SiLU(α_l)."""

    def join(self, i: int, y: Array, f: Array) -> None:
        alpha = self.w("alpha")[self.sites[i].layer - 1]
        self.x = y * (1 - alpha / (1 + math.exp(-alpha)))


class Beginning(NumpyChain):
    """nanochat's x₀ in every layer, and its middle taken out."""

    def start(self) -> None:
        self.first = self.middle = self.x

    def read(self, i: int) -> Array:
        if not self.opens(i):
            return self.x
        layer = self.sites[i].layer - 1
        mixed: Array = self.w("keep")[layer] * self.x + self.w("start")[layer] * self.first
        return mixed

    def join(self, i: int, y: Array, f: Array) -> None:
        self.x = y
        if self.closes(i) and self.sites[i].layer - 1 == self.layers // 2:
            self.middle = y

    def end(self) -> Array:
        left: Array = self.x - self.w("back") * self.middle
        return left


class OverDepth(NumpyChain):
    """Attention Residuals, token by token."""

    blocks = 0

    def start(self) -> None:
        self.values = [self.x]

    def join(self, i: int, y: Array, f: Array) -> None:
        length = -(-self.layers // self.blocks) if self.blocks else 1
        new = self.opens(i) and (self.sites[i].layer - 1) % length == 0 if self.blocks else True
        if new:
            self.values.append(f)
        else:
            self.values[-1] = self.values[-1] + f
        query = self.w("queries")[i]
        self.x = np.empty_like(y)
        for t in range(len(y)):
            rows = [v[t] for v in self.values]
            score = np.array([query @ row / np.sqrt((row**2).mean() + 1e-5) for row in rows])
            weight = np.exp(score - score.max())
            self.x[t] = sum(a * row for a, row in zip(weight / weight.sum(), rows, strict=True))


class OverBlocks(OverDepth):
    blocks = 8


class Free(NumpyChain):
    """Hyper-connections, token by token: X (n, d)."""

    def start(self) -> None:
        self.streams = np.repeat(self.x[:, None], 4, axis=1)

    def read(self, i: int) -> Array:
        normed = self.norm(f"norms.{i}", self.streams)
        self.r, self.q = [], []
        heard = np.empty_like(self.x)
        for t, (x, n) in enumerate(zip(self.streams, normed, strict=True)):
            s, s_back = self.w("sizes")[i]
            mixing = self.w("static")[i] + s * np.tanh(n @ self.w("mix")[i])
            self.q.append(self.w("spread")[i] + s_back * np.tanh(n @ self.w("back")[i])[:, 0])
            self.r.append(mixing[:, 1:].T)
            heard[t] = mixing[:, 0] @ x
        return heard

    def join(self, i: int, y: Array, f: Array) -> None:
        for t in range(len(f)):
            self.streams[t] = self.r[t] @ self.streams[t] + np.outer(self.q[t], f[t])

    def end(self) -> Array:
        total: Array = self.streams.sum(axis=1)
        return total


class Stochastic(Free):
    """mHC: the same with mixings that are doubly stochastic."""

    def read(self, i: int) -> Array:
        self.r, self.q = [], []
        heard = np.empty_like(self.x)
        for t, x in enumerate(self.streams):
            flat = x.reshape(-1)
            mapped = flat / np.sqrt((flat**2).mean() + 1e-5) @ self.w("map")[i]
            p, q, r = np.split(mapped, [4, 8])
            parts = zip(self.w("sizes")[i], (p, q, r), np.split(self.w("bias")[i], [4, 8]), strict=True)
            p, q, r = (size * part + bias for size, part, bias in parts)
            matrix = np.exp(r.reshape(4, 4))
            for _ in range(20):
                matrix = matrix / np.maximum(matrix.sum(axis=1, keepdims=True), 1e-6)
                matrix = matrix / np.maximum(matrix.sum(axis=0, keepdims=True), 1e-6)
            self.r.append(matrix)
            self.q.append(2 / (1 + np.exp(-q)))
            heard[t] = 1 / (1 + np.exp(-p)) @ x
        return heard


NUMPY: Mapping[Wiring, Any] = {
    "chain": NumpyChain,
    "history, normed": Triangle,
    "history, norm after": TriangleNormedAfter,
    "two streams": Dual,
    "siamese streams": Twins,
    "shrunk chain": Smaller,
    "from the start": Beginning,
    "attention over depth": OverDepth,
    "attention over blocks": OverBlocks,
    "hyper-connections": Free,
    "doubly stochastic, from 1/n": Stochastic,
    "doubly stochastic, from I": Stochastic,
    "doubly stochastic, from logits I": Stochastic,
}
"""By the names of `methods.wirings.WIRINGS`."""
