"""Whether what a stack makes of a token depends on the tokens after it, seen on the stack's own states.

A late entry of an input is changed: the stack's first state then changes from some position on. Where its last state
changes before that position, a token sees those after it. So it does not matter which of several inputs the stack
reads, nor what becomes of its output.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from stabkit.own.sublayers import run
from stabkit.own.sublayers.anatomy import Stack
from stabkit.own.sublayers.run import Call


def sees_ahead(model: nn.Module, inputs: Any, stack: Stack) -> bool | None:
    """None where no input changes both states."""
    call = Call.of(inputs)
    first, last = stack.sublayers[0].fork, stack.sublayers[-1].at
    seen = False
    with run.opened(model):
        base = run.watched(model, call, {first, last}).values
        for x in [x for x in (*call.args, *call.kwargs.values()) if isinstance(x, torch.Tensor) and x.dim() > 1]:
            for place in ((0, -1), (-1, 0)):  # whichever axis counts tokens
                other = run.altered(x, place)
                now = {} if torch.equal(other, x) else run.watched(model, call.instead(x, other), {first, last}).values
                begins, ends = (_begins(base[at], now[at]) if at in now else None for at in (first, last))
                if begins is not None and ends is not None:
                    if ends < begins:
                        return True
                    seen = True
    return False if seen else None


def _begins(a: torch.Tensor, b: torch.Tensor) -> int | None:
    """The first position, of all rows one after the other, at which two states (rows, tokens, d) differ; either of the
    first two axes may count tokens."""
    if a.dim() != 3 or a.shape != b.shape or not a.is_floating_point():
        return None
    apart = (a - b).abs().amax(-1).flatten() > run.ROUNDING * a.abs().max()
    return int(apart.nonzero()[0]) if bool(apart.any()) else None
