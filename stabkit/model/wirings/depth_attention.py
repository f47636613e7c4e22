"""Every sub-layer reads an attention over what all before it added (Attention Residuals: arXiv 2603.15031)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import nn
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from stabkit.kernels.reference import transformed
from stabkit.kernels.wirings import Added
from stabkit.methods.base import Site
from stabkit.model.part import EPS
from stabkit.model.wirings.base import ChainWiring, States, layer_ends
from stabkit.spec import Norm


class DepthAttention(ChainWiring):
    """h = Σ_i a_i·v_i, a = softmax_i(w·v_i/rms(v_i)), w of the reader, 0 at first, so that h begins as the mean.

    v₀ is the embedding, then follows what each sub-layer added. With `blocks`, layers are parted into so many runs of
    one length, and within a run what was added is one sum. What leaves the stack is one reading more; the first
    sub-layer reads v₀ alone and needs no w. The released code's RMSNorm has weights, which multiply w.
    """

    adds = True

    def __init__(self, places: Sequence[Site], norm: Norm, blocks: int = 0) -> None:
        super().__init__()
        layers = places[-1].layer
        length = math.ceil(layers / blocks) if blocks else 0
        starts, _ = layer_ends(places)
        self.opens = frozenset(i for i in starts if length and (places[i].layer - 1) % length == 0)
        """The sub-layers that begin a run; empty where every one does."""
        self.queries = nn.Parameter(torch.zeros(len(places), places[0].width))

    def begin(self, x: torch.Tensor) -> States:
        queries = self.queries.unbind()  # the gradient of one that is taken by itself has zeros for all others
        if not self.fused:
            return (x, queries, x)
        added = Added(EPS)
        added.append(x)
        return (x, queries, added)

    def join(self, states: States, y: torch.Tensor, branch: torch.Tensor | None, at: int) -> States:
        assert branch is not None  # it `adds`
        _, queries, *arrays = states
        within = bool(self.opens) and at not in self.opens
        if isinstance(added := arrays[0], Added):
            (added.extend if within else added.append)(branch)
            return (added.read(queries[at]), queries, added)
        arrays = [*arrays[:-1], arrays[-1] + branch] if within else [*arrays, branch]
        return (attended(queries[at], arrays), queries, *arrays)


def attended(query: torch.Tensor, values: Sequence[torch.Tensor]) -> torch.Tensor:
    """(D), n × (T, B, D) → (T, B, D)."""
    if torch.is_grad_enabled() and not transformed():
        found: torch.Tensor = _Attend.apply(query, *values)  # type: ignore[no-untyped-call]
        return found
    return _attended(query, values)


def _attended(query: torch.Tensor, values: Sequence[torch.Tensor]) -> torch.Tensor:
    v = torch.stack(list(values))
    weight = ((v @ query) * torch.rsqrt(v.square().mean(-1) + EPS)).softmax(0)
    return (weight[..., None] * v).sum(0)


class _Attend(Function):
    """The same, which keeps the v_i themselves, alive anyway, and not a copy of all of them for every reader."""

    @staticmethod
    def forward(ctx: Any, query: torch.Tensor, *values: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(query, *values)
        return _attended(query, values)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        query, *values = (tensor.detach().requires_grad_() for tensor in ctx.saved_tensors)
        with torch.enable_grad():
            return torch.autograd.grad(_attended(query, values), [query, *values], gradients[0])
