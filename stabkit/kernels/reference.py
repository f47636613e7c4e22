"""Two operations written out with their gradients, because they are where a step's time goes on a CPU.

`linear`: a third of a step is matrix products of 512 × 64, made by torch’s library (`products.py`).
`attend`: softmax attention over many tiny problems, whose gradient autograd would assemble from three times as many
small operations. Both equal the plain formula to rounding and have gradients checked by `torch.autograd.gradcheck`.

They are the Python path: what `stack.cpp` is tested against, and what runs without a compiler, under torch.func and on
a GPU.

T queries, S keys, G = B·H problems, E width of a head.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.autograd import Function
from torch.nn import functional


def transformed() -> bool:
    """Whether torch.func is at work (vmap), which has no rule for gradients written out by hand: then torch's are made
    from the operations of the plain formula."""
    return torch._C._functorch.maybe_current_level() is not None


def product(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, relu: bool = False) -> torch.Tensor:
    """x·Wᵀ + b, or its positive part, without a gradient: (…, in), (out, in), (out) → (…, out)."""
    y = functional.linear(x, weight, bias)
    return y.relu_() if relu else y


def _outer(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """aᵀ·b: (N, A), (N, B) → (A, B); of the logits' weight too, which is 6 % slower made as its transpose."""
    return torch.mm(a.t(), b)


class _Linear(Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, relu: bool) -> torch.Tensor:
        y = product(x, weight, bias, relu)
        ctx.save_for_backward(x, weight, y if relu else None)
        ctx.biased = bias is not None
        return y

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        (dy,) = gradients
        x, weight, positive = ctx.saved_tensors
        if positive is not None:
            dy = torch.ops.aten.threshold_backward(dy, positive, 0)
        dy2, x2 = dy.reshape(-1, dy.shape[-1]), x.reshape(-1, x.shape[-1])
        return product(dy, weight.t(), None), _outer(dy2, x2), dy2.sum(0) if ctx.biased else None, None


def linear(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, relu: bool = False) -> torch.Tensor:
    """x·Wᵀ + b, or its positive part: (…, in), (out, in), (out) → (…, out)."""
    if not torch.is_grad_enabled() or transformed():
        return product(x, weight, bias, relu)
    y: torch.Tensor = _Linear.apply(x, weight, bias, relu)  # type: ignore[no-untyped-call]
    return y


def scores(
    queries: torch.Tensor, memory: torch.Tensor | None, mask: torch.Tensor | None, heads: int, scale: float
) -> torch.Tensor:
    """scale·K·Qᵀ + mask of every head, without a gradient: (S, G·T), keys by the queries of all heads.

    Keys outermost: a softmax over an innermost axis of 15 costs ten times one of 16.
    """
    q, k, _ = _split(queries, memory, heads)
    if mask is None:
        s_GST = torch.bmm(k, q.transpose(1, 2)).mul_(scale)
    else:
        s_GST = torch.baddbmm(mask, k, q.transpose(1, 2), alpha=scale)
    g, s, t = s_GST.shape
    return s_GST.transpose(0, 1).reshape(s, g * t)


def attended(
    s_SQ: torch.Tensor, queries: torch.Tensor, memory: torch.Tensor | None, heads: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """The attended values (T, B, D) and the probabilities (G, S, T) of these scores, without a gradient."""
    v = _split(queries, memory, heads)[2]
    g, s, _ = v.shape
    t = len(queries)
    p_GST = torch.softmax(s_SQ, dim=0).view(s, g, t).transpose(0, 1)
    o_GTE = torch.bmm(p_GST.transpose(1, 2), v)
    return o_GTE.transpose(0, 1).reshape(t, g // heads, -1), p_GST


class _Attend(Function):
    @staticmethod
    def forward(
        ctx: Any,
        queries: torch.Tensor,
        memory: torch.Tensor | None,
        mask: torch.Tensor | None,
        heads: int,
        scale: float,
    ) -> torch.Tensor:
        y, p_GST = attended(scores(queries, memory, mask, heads, scale), queries, memory, heads)
        ctx.save_for_backward(queries, memory, p_GST)
        ctx.heads, ctx.scale = heads, scale
        return y

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        (do,) = gradients
        queries, memory, p_GST = ctx.saved_tensors
        q, k, v = _split(queries, memory, ctx.heads)
        do_GTE = do.reshape(len(do), -1, v.shape[-1]).transpose(0, 1)
        dp = torch.bmm(v, do_GTE.transpose(1, 2)).transpose(0, 1).contiguous()
        ds = torch.ops.aten._softmax_backward_data(dp, p_GST.transpose(0, 1), 0, dp.dtype).transpose(0, 1)
        d_queries = torch.empty_like(queries)
        d_memory = None if memory is None else torch.empty_like(memory)
        dq, dk, dv = _split(d_queries, d_memory, ctx.heads)
        torch.mul(torch.bmm(ds.transpose(1, 2), k), ctx.scale, out=dq)
        torch.mul(torch.bmm(ds, q), ctx.scale, out=dk)
        dv.copy_(torch.bmm(p_GST, do_GTE))
        return d_queries, d_memory, None, None, None


def attend(
    queries: torch.Tensor, memory: torch.Tensor | None, mask: torch.Tensor | None, heads: int, scale: float
) -> torch.Tensor:
    """softmax(scale·Q·Kᵀ + mask)·V over every head: (T, B, D).

    Self-attention: `queries` (T, B, H·3·E) holds query, key and value of each head, `memory` is None. Cross-attention:
    `queries` (T, B, H·E), `memory` (S, B, H·2·E). `mask` (G, S, T), keys by queries: 0 where a key may be seen,
    −∞ where not.
    """
    if transformed():
        return attended(scores(queries, memory, mask, heads, scale), queries, memory, heads)[0]
    y: torch.Tensor = _Attend.apply(queries, memory, mask, heads, scale)  # type: ignore[no-untyped-call]
    return y


def _split(queries: torch.Tensor, memory: torch.Tensor | None, heads: int) -> tuple[torch.Tensor, ...]:
    """Views (G, T, E), (G, S, E), (G, S, E)."""
    if memory is None:
        return _heads(queries, heads, 3)
    return *_heads(queries, heads, 1), *_heads(memory, heads, 2)


def _heads(x_TBC: torch.Tensor, heads: int, parts: int) -> tuple[torch.Tensor, ...]:
    """(T, B, H·parts·E) → `parts` views (B·H, T, E)."""
    t, b, _ = x_TBC.shape
    return x_TBC.view(t, b * heads, parts, -1).transpose(0, 1).unbind(2)
