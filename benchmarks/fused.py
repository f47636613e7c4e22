"""The trial of one autograd node a sub-layer: benchmarks/fused.py [LAYERS] [STEPS] [PAIRS] [WORKERS]. It was left out.

From x to the sum before the norm, forward and backward of one residual as one node: products through MKL, the sum made
in place, ω·ds folded into the product's `beta`. It serves what most methods are, a norm after the sum and ω a number;
everything else takes the plain path, as do passes without a gradient. WORKERS processes a side train the same run at
once (`alternate.py`); both must record the same ‖ΔF‖.
"""

from __future__ import annotations

import sys
from typing import Any

import torch
from alternate import answer, compare
from torch.autograd import Function

from stabkit.model.branch import FeedForward
from stabkit.model.kernels import _split, attended, scores
from stabkit.model.residual import Residual

T = torch.Tensor


class Ffn(Function):
    @staticmethod
    def forward(ctx: Any, x: T, w1: T, b1: T, w2: T, b2: T, omega: float) -> T:
        x2 = x.view(-1, x.shape[-1])
        h = torch.addmm(b1, x2, w1.t()).relu_()
        ctx.save_for_backward(x2, h, w1, w2)
        ctx.omega = omega
        return torch.addmm(b2, h, w2.t()).add_(x2, alpha=omega).view(x.shape)

    @staticmethod
    def backward(ctx: Any, *gradients: T) -> tuple[T | None, ...]:
        x2, h, w1, w2 = ctx.saved_tensors
        ds = gradients[0].reshape(-1, gradients[0].shape[-1])
        dh = torch.ops.aten.threshold_backward(torch.mm(ds, w2), h, 0)
        dx = torch.addmm(ds, dh, w1, beta=ctx.omega).view(gradients[0].shape)
        return dx, torch.mm(dh.t(), x2), dh.sum(0), torch.mm(ds.t(), h), ds.sum(0), None


class Attend(Function):
    """Self-attention where `memory` is None: then `wk`, `bk` are, too, and `wq` holds query, key and value."""

    @staticmethod
    def forward(
        ctx: Any, x: T, memory: T | None, wq: T, bq: T, wk: T | None, bk: T | None, wo: T, bo: T, *rest: Any
    ) -> T:
        mask, heads, scale, omega = rest
        t, b, d = x.shape
        x2 = x.view(-1, d)
        q, kv, m2 = torch.addmm(bq, x2, wq.t()).view(t, b, -1), None, None
        if memory is not None and wk is not None and bk is not None:
            m2 = memory.view(-1, d)
            kv = torch.addmm(bk, m2, wk.t()).view(len(memory), b, -1)
        o, p = attended(scores(q, kv, mask, heads, scale), q, kv, heads)
        o2 = o.view(-1, d)
        ctx.save_for_backward(x2, m2, q, kv, p, o2, wq, wk, wo)
        ctx.numbers = heads, scale, omega
        return torch.addmm(bo, o2, wo.t()).add_(x2, alpha=omega).view(x.shape)

    @staticmethod
    def backward(ctx: Any, *gradients: T) -> tuple[T | None, ...]:
        x2, m2, queries, memory, p, o2, wq, wk, wo = ctx.saved_tensors
        heads, scale, omega = ctx.numbers
        ds = gradients[0].reshape(-1, gradients[0].shape[-1])
        q, k, v = _split(queries, memory, heads)
        do = torch.mm(ds, wo).view(len(queries), -1, v.shape[-1]).transpose(0, 1)
        dp = torch.bmm(v, do.transpose(1, 2)).transpose(0, 1).contiguous()
        dscore = torch.ops.aten._softmax_backward_data(dp, p.transpose(0, 1), 0, dp.dtype).transpose(0, 1)
        d_queries = torch.empty_like(queries)
        d_memory = None if memory is None else torch.empty_like(memory)
        dq, dk, dv = _split(d_queries, d_memory, heads)
        torch.mul(torch.bmm(dscore.transpose(1, 2), k), scale, out=dq)
        torch.mul(torch.bmm(dscore, q), scale, out=dk)
        dv.copy_(torch.bmm(p, do))
        dq2 = d_queries.view(len(x2), -1)
        dx = torch.addmm(ds, dq2, wq, beta=omega).view(gradients[0].shape)
        own = dx, torch.mm(dq2.t(), x2), dq2.sum(0), torch.mm(ds.t(), o2), ds.sum(0)
        if d_memory is None:
            return own[0], None, own[1], own[2], None, None, own[3], own[4], None, None, None, None
        dk2 = d_memory.view(len(m2), -1)
        dm = torch.mm(dk2, wk).view(len(memory), memory.shape[1], -1)
        return own[0], dm, own[1], own[2], torch.mm(dk2.t(), m2), dk2.sum(0), own[3], own[4], None, None, None, None


def fuse() -> None:
    """Residuals that fit the pattern take the node in training."""
    plain = Residual.forward

    def forward(self: Residual, x: T, memory: T | None, mask: T | None, past: Any = None) -> T:
        g: Any = self.g
        inner = (g.first, g.last, g.end, getattr(g, "mid", None), self.norm_in, self.norm_branch)
        fits = self.gamma == 1.0 and isinstance(self.omega, float) and not self.dropout and inner == (None,) * 6
        if not torch.is_grad_enabled() or not fits or past is not None or self.norm_out is None:
            return plain(self, x, memory, mask, past)
        if isinstance(g, FeedForward):
            joined = Ffn.apply(x, g.up.weight, g.up.bias, g.down.weight, g.down.bias, self.omega)
        else:
            q = g.qkv if g.own else g.q
            kv = (None, None, None) if g.own else (memory, g.kv.weight, g.kv.bias)
            out, numbers = (g.out.weight, g.out.bias), (mask, g.heads, g.scale, self.omega)
            joined = Attend.apply(x, kv[0], q.weight, q.bias, *kv[1:], *out, *numbers)
        norm = self.norm_out
        joined = self.sum(joined)
        return torch.native_layer_norm(joined, norm.normalized_shape, norm.weight, norm.bias, norm.eps)[0]

    Residual.forward = forward  # type: ignore[method-assign]


def main(layers: str = "50", steps: str = "8", pairs: str = "3", workers: str = "2") -> None:
    compare(__file__, "plain", "fused", layers, steps, pairs, workers)


if __name__ == "__main__":
    if sys.argv[1:2] in (["plain"], ["fused"]):
        if sys.argv[1] == "fused":
            fuse()
        answer("deepnorm", int(sys.argv[2]), int(sys.argv[3]))
    else:
        main(*sys.argv[1:])
