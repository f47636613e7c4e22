"""All parameters of a model as one vector θ, and all gradients as another.

The model's parameters become views into the vectors, laid out in the order of the forward pass, so a sub-layer is one
contiguous slice: one fused Adam call updates everything, and norms per sub-layer are norms of slices. At 100L-100L this
makes the update twenty times cheaper than a loop over 3,200 tensors.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import nn


class Flat:
    """θ and ∂L/∂θ of a model, and where each part of it lies. Parts are `embedding`, the sites, `final`."""

    def __init__(self, model: nn.Module, parts: Mapping[str, nn.Module | nn.Parameter]) -> None:
        """`parts` names modules or parameters that together hold every parameter of the model; one that several hold is
        counted in the first."""
        self.parts: dict[str, list[nn.Parameter]] = {}
        seen = set[int]()
        for name, part in parts.items():
            parameters = [part] if isinstance(part, nn.Parameter) else list(part.parameters())
            if fresh := [p for p in parameters if id(p) not in seen]:
                self.parts[name] = fresh
                seen.update(map(id, fresh))
        params = [p for part in self.parts.values() for p in part]
        if {id(p) for p in params} != {id(p) for p in model.parameters()}:
            raise ValueError("the parts do not cover the model's parameters")
        self.theta = torch.cat([p.detach().reshape(-1) for p in params])
        self.grad = torch.zeros_like(self.theta)
        self.slices: dict[str, slice] = {}
        self._places: list[tuple[nn.Parameter, slice]] = []
        begin = 0
        for name, held in self.parts.items():
            start = begin
            for p in held:
                end = begin + p.numel()
                p.data = self.theta[begin:end].view(p.shape)
                p.grad = self.grad[begin:end].view(p.shape)
                self._places.append((p, slice(begin, end)))
                begin = end
            self.slices[name] = slice(start, begin)
        self._sizes = [part.stop - part.start for part in self.slices.values()]

    def into(self, theta: torch.Tensor, grad: torch.Tensor) -> None:
        """Let these vectors hold θ, copied there, and the gradient from now on: rows of a matrix of several models."""
        theta.copy_(self.theta)
        self.theta, self.grad = theta, grad
        for p, part in self._places:
            p.data, p.grad = theta[part].view(p.shape), grad[part].view(p.shape)

    def places(self) -> list[tuple[nn.Parameter, slice]]:
        """Every parameter and where it lies, in the order of the vector."""
        return list(self._places)

    def norms(self, vector: torch.Tensor) -> torch.Tensor:
        """‖part of vector‖₂ for every part, in the order of `slices`, float64.

        Summed in the vector's own precision; a part that comes out so small or so large that squares may have left
        float32's range is summed again in float64, so that 1e-30 is not 0.
        """
        parts = vector.split_with_sizes(self._sizes)
        norms = torch.stack(torch._foreach_norm(list(parts), 2)).double()
        for i in torch.nonzero((norms < SAFE_LOW) | (norms > SAFE_HIGH) | norms.isnan()).flatten().tolist():
            norms[i] = torch.linalg.vector_norm(parts[i], dtype=torch.float64)
        return norms


SAFE_LOW, SAFE_HIGH = 1e-12, 1e15
