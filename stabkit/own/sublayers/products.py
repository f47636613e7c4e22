"""What a product of matrices is, whichever operation makes it: a linear map of an activation, or a match of two."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import torch

from stabkit.own.sublayers.graph import Op, WeightUse
from stabkit.own.sublayers.memory import Memory

LINEAR = frozenset({"linear", "_linear_pointwise", "mkl_linear", "_mkl_linear"})


class Watching(Protocol):
    """Who sees the operations (`watch.py`)."""

    own: Memory

    def find(self, tensor: Any) -> int | None:
        """The node that made this tensor; None for a constant."""

    def note(self, op: Op, inputs: tuple[Any, ...], value: torch.Tensor, **more: Any) -> int:
        """A new node; returns its place."""


def product(watch: Watching, name: str, args: Sequence[Any], kwargs: dict[str, Any], out: torch.Tensor) -> bool:
    """Note the node of a product, whichever operation made it; False where this is none that is followed."""
    added: Any = None
    beta = alpha = 1.0
    if name in LINEAR:
        x, w = args[0], args[1].t() if args[1].dim() == 2 else None
        bias = args[2] if len(args) > 2 and isinstance(args[2], torch.Tensor) else None
        if w is None or watch.find(x) is None or watch.find(args[1]) is not None:
            return False
        at = watch.note(
            "product", (watch.find(x),), out, matrix=WeightUse(w, bias, watch.own.name(args[1]), watch.own.name(bias))
        )
        if len(args) > 3 and args[3] not in ("none", None):
            watch.note("other", (at,), out)
        return True
    if name == "convolution" and watch.find(args[0]) is not None and watch.find(args[1]) is None:
        x, w, b = args[:3]
        if w.dim() != 3 or w.shape[2] != 1 or args[8] != 1:
            return False
        matrix = WeightUse(w[:, :, 0].t(), b, watch.own.name(w), watch.own.name(b), flipped=True)
        watch.note("product", (watch.find(x),), out, matrix=matrix)
        return True
    if name in ("addmm", "baddbmm"):
        added, a, b = args[:3]
        beta, alpha = float(kwargs.get("beta", 1)), float(kwargs.get("alpha", 1))
    elif name in ("mm", "bmm"):
        a, b = args[:2]
    else:
        return False
    first, second = watch.find(a), watch.find(b)
    bias = None
    if isinstance(added, torch.Tensor) and watch.find(added) is None and added.numel() == out.shape[-1]:
        bias = beta * added.reshape(-1)
    if first is not None and second is not None:
        at = watch.note("match", (first, second), out, factors=(alpha,))
    else:
        weight, flipped = (b, False) if first is not None else (a.transpose(-1, -2), True)
        if weight.dim() == 3 and (weight.shape[0] == 1 or weight.stride(0) == 0):
            weight = weight[0]
        if weight.dim() != 2:
            return False
        if flipped and weight.shape[1] == 1:  # one number for each of several values: a combination, as DLCL's
            watch.note("other", (second,), out)
            return True
        own = b if first is not None else a
        matrix = WeightUse(
            weight if alpha == 1.0 else alpha * weight, bias, watch.own.name(own), watch.own.name(added), flipped
        )
        at = watch.note("product", (first if first is not None else second,), out, matrix=matrix)
    if isinstance(added, torch.Tensor) and (behind := watch.find(added)) is not None:
        watch.note("add", (behind, at), out, factors=(beta, 1.0))
    return True
