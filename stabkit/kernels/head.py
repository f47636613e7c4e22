"""Logits and their cross-entropy as one node of torch's graph: `stack.cpp`, `struct Head`.

n tokens, D width, V classes.
"""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple

import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from stabkit.kernels.lease import Lease, Spare, gradients_of
from stabkit.kernels.native import HeadStruct, Native, native


class Scored(NamedTuple):
    """What a batch was given: logits (n, V), the loss and −log p of the right class without label smoothing, as means
    over the rows that were asked for."""

    logits: torch.Tensor
    loss: torch.Tensor
    right: torch.Tensor


def scored(
    x: torch.Tensor, weight: torch.nn.Parameter, target: torch.Tensor, ignored: int, smoothing: float, spare: Spare
) -> Scored:
    """Logits x·Wᵀ and their cross-entropy: (n, D), (V, D), (n) → `Scored`; only `loss` has a gradient, which is added
    to the parameter's as a stack's are. Whether that can be is `Fused.why_not`'s to say."""
    out: tuple[torch.Tensor, ...] = _Head.apply(x, weight.detach(), weight, target, ignored, smoothing, spare)  # type: ignore[no-untyped-call]
    return Scored(*out)


class _Head(Function):
    @staticmethod
    def forward(
        ctx: Any,
        x: torch.Tensor,
        weight: torch.Tensor,
        parameter: torch.nn.Parameter,
        target: torch.Tensor,
        ignored: int,
        smoothing: float,
        spare: Spare,
    ) -> tuple[torch.Tensor, ...]:
        found = native()
        assert isinstance(found, Native)
        x, target = x.contiguous(), target.contiguous()
        logits = x.new_empty((len(x), len(weight)))
        head = HeadStruct(
            doubles=x.dtype == torch.float64,
            rows=len(x),
            width=x.shape[1],
            classes=len(weight),
            ignored=ignored,
            smoothing=smoothing,
            x=x.data_ptr(),
            weight=weight.data_ptr(),
            target=target.data_ptr(),
            logits=logits.data_ptr(),
        )
        work = Lease(spare, found.head_size(ctypes.byref(head)), x)
        head.work = work.tensor.data_ptr()
        found.head_forward(ctypes.byref(head))
        ctx.held = (found, head, work, x, weight, parameter, target, logits.detach())
        right = x.new_full((), head.right)
        ctx.mark_non_differentiable(logits, right)
        return logits, x.new_full((), head.loss), right

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        found, head, _, x, _, parameter, *_ = ctx.held
        dx = torch.empty_like(x)
        leaves = gradients_of([parameter])
        head.dloss, head.dx, head.dweight = float(gradients[1]), dx.data_ptr(), leaves[0] or None
        found.head_backward(ctypes.byref(head))
        return dx, None, None, None, None, None, None
