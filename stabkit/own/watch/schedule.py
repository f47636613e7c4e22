"""After which updates of a training a watch reads activations and steps."""

from __future__ import annotations

import math

DENSE = 16
"""Updates that are all read: where the chain of DeepNet §2 begins."""
MOST_ROWS = 4096
TOGETHER = 64


def reads(every: str | int, step: int) -> bool:
    """`log`: 0 to 16, then the powers of √2, rounded up; a number: every so many."""
    if isinstance(every, int):
        return step % every == 0
    if step <= DENSE:
        return True
    power = math.floor(2 * math.log2(step) + 1e-9)
    return step in (math.ceil(2 ** (power / 2) - 1e-9), math.ceil(2 ** ((power - 1) / 2) - 1e-9))


def meets(every: str | int, step: int) -> bool:
    """Where processes that share a model fetch what they hold together."""
    return reads(every, step) or step % TOGETHER == 0


def stride(step: int) -> int:
    """Updates from one kept gradient to the next: every one of the first 4,096, then half as many an octave."""
    return 1 if step < MOST_ROWS else 2 ** (step // MOST_ROWS).bit_length()
