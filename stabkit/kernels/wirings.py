"""What wirings compute between sub-layers, by `stack.cpp`: Sinkhorn's rounds, and attention over what was added so far.

Each is the torch code of its wiring (`model/wirings`) to rounding; that code serves where a pass is not fused.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from typing import Any

import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from stabkit.kernels.lease import addresses
from stabkit.kernels.native import Native, native


def _library() -> Native:
    found = native()
    assert isinstance(found, Native)  # a pass is fused where there is one
    return found


def sinkhorn(logits: torch.Tensor, rounds: int) -> torch.Tensor:
    """(…, n, n) → exp of them, rows and then columns divided by their sums, so many rounds; n up to 4, 32 rounds."""
    found: torch.Tensor = _Sinkhorn.apply(logits, rounds)  # type: ignore[no-untyped-call]
    return found


class _Sinkhorn(Function):
    @staticmethod
    def forward(ctx: Any, logits: torch.Tensor, rounds: int) -> torch.Tensor:
        logits = logits.contiguous()
        ctx.save_for_backward(logits)
        n = logits.shape[-1]
        ctx.sizes = (logits.dtype == torch.float64, logits.numel() // n**2, n, rounds)
        out = torch.empty_like(logits)
        _library().sinkhorn(*ctx.sizes, logits.data_ptr(), out.data_ptr())
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        (logits,), dout = ctx.saved_tensors, gradients[0].contiguous()
        dlogits = torch.empty_like(logits)
        _library().sinkhorn_backward(*ctx.sizes, logits.data_ptr(), dout.data_ptr(), dlogits.data_ptr())
        return dlogits, None


@dataclass(slots=True)
class SharedArray:
    """One array that readers attend to, and the gradient that they leave for it."""

    value: torch.Tensor
    gradient: torch.Tensor | None = None
    task: int = -1
    """The backward that left it: what another left, and nobody took, counts no more."""


class Added:
    """What was added so far, for readers to attend to: Σ_i a_i·v_i, a = softmax_i(q·v_i/√(mean v_i² + ε)).

    Readers do not stand in the graph between the arrays: each adds to the arrays' gradients where they lie, and an
    array hands its gradient on when all that read it have done so. `order` sees to that: a scalar that passes from
    array to array and into every reader.
    """

    def __init__(self, epsilon: float) -> None:
        self.epsilon, self.held, self.order = epsilon, list[SharedArray](), torch.zeros(())

    def append(self, x: torch.Tensor) -> None:
        """One array more, (T, B, D)."""
        held = SharedArray(x.detach().contiguous())
        out, self.order = _Hold.apply(x, self.order, held)  # type: ignore[no-untyped-call]
        self.last: torch.Tensor = out
        self.held = [*self.held, held]

    def extend(self, x: torch.Tensor) -> None:
        """x more in the last array."""
        last = self.last + x
        self.held = self.held[:-1]
        self.append(last)

    def read(self, query: torch.Tensor) -> torch.Tensor:
        """(D) → (T, B, D)."""
        found: torch.Tensor = _Read.apply(query, self.order, self.held, self.epsilon)  # type: ignore[no-untyped-call]
        return found


class _Hold(Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, order: torch.Tensor, held: SharedArray) -> tuple[torch.Tensor, torch.Tensor]:
        ctx.held = held
        ctx.set_materialize_grads(False)
        return x.view_as(x), order.clone()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: torch.Tensor | None) -> tuple[torch.Tensor | None, ...]:
        own, left = gradients[0], ctx.held.gradient
        if ctx.held.task != torch._C._current_graph_task_id():
            left = None
        ctx.held.gradient = None  # a second backward begins anew
        return left if own is None else own if left is None else own + left, None, None


class _Read(Function):
    @staticmethod
    def forward(
        ctx: Any, query: torch.Tensor, order: torch.Tensor, held: list[SharedArray], epsilon: float
    ) -> torch.Tensor:
        first, query = held[0].value, query.contiguous()
        count, rows, width = len(held), first.numel() // first.shape[-1], first.shape[-1]
        work, out = first.new_empty((2, count, rows)), torch.empty_like(first)
        values = addresses([one.value for one in held])
        sizes = (first.dtype == torch.float64, count, rows, width, epsilon)
        _library().depth(*sizes, query.data_ptr(), _at(values), work.data_ptr(), out.data_ptr())
        ctx.held = (sizes, query, held, values, work)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        sizes, query, held, values, work = ctx.held
        dout, dquery = gradients[0].contiguous(), torch.zeros_like(query)
        task = torch._C._current_graph_task_id()
        for one in held:
            if one.gradient is None or one.task != task:
                one.gradient, one.task = torch.zeros_like(one.value), task
        left = addresses([one.gradient for one in held])
        more = work.new_empty(16 * sizes[1] + 2 * sizes[3])
        given = (query.data_ptr(), _at(values), work.data_ptr(), dout.data_ptr(), _at(left), dquery.data_ptr())
        _library().depth_backward(*sizes, *given, more.data_ptr())
        return dquery, None, None, None


def _at(table: array[int]) -> int:
    return table.buffer_info()[0]
