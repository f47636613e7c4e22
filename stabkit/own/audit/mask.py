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
from stabkit.own.sublayers.anatomy import Anatomy
from stabkit.own.sublayers.run import Call


def sees_ahead(model: nn.Module, inputs: Any, anatomy: Anatomy) -> bool | None:
    """Of the decoder that reads an encoder, else of the longest stack. None where nothing tells.

    An input tells nothing that changes what the decoder reads of the encoder, or all of a row. That no token sees those
    after it is said where some are seen to see those before them.
    """
    if not anatomy.stacks:
        return None
    place = max(anatomy.encoder_of or range(len(anatomy.stacks)), key=lambda i: len(anatomy.stacks[i].sublayers))
    stack, memory = anatomy.stacks[place], anatomy.encoder_of.get(place)
    first, last = stack.sublayers[0].fork, stack.sublayers[-1].at
    read = first if memory is None else anatomy.stacks[memory].sublayers[-1].at
    call, behind, ahead = Call.of(inputs), False, False
    with run.opened(model):
        base = run.watched(model, call, {first, last, read})
        for x in [x for x in (*call.args, *call.kwargs.values()) if isinstance(x, torch.Tensor) and x.dim() > 1]:
            if x.shape[1] < 2:
                continue
            for entry in ((0, -2), (0, -1), (-1, 0)):  # either axis may count tokens
                now = run.watched(model, call.instead(x, run.altered(x, entry)), {first, last, read})
                if base.operations != now.operations:  # experts that no token chose are left out
                    continue
                begins, ends, elsewhere = (_apart(base.values[at], now.values[at]) for at in (first, last, read))
                if begins is None or ends is None:
                    continue
                if memory is not None and (elsewhere is not None or base.values[read].dim() != 3):
                    continue
                if not bool(
                    begins.all(-1).any()
                ):  # of a whole row that changes, as a picture's, none is before another
                    behind |= _end(ends, -1) > _end(begins, -1)
                    ahead |= _end(ends, 0) < _end(begins, 0)
    return True if ahead else False if behind else None


def _apart(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor | None:
    """The places (rows, tokens), in either order, at which two states differ; None where they do nowhere, or have other
    axes."""
    if a.dim() != 3 or a.shape != b.shape or not a.is_floating_point():
        return None
    apart = (a - b).abs().amax(-1) > run.ROUNDING * a.abs().max()
    return apart if bool(apart.any()) else None


def _end(places: torch.Tensor, which: int) -> int:
    """The first or the last of them, of all rows one after the other."""
    return int(places.flatten().nonzero()[which])
