"""Random streams: one generator per purpose, named, never shared.

A stream is keyed by sha256 over a seed and the words that say what it is for, so that adding a stream changes no other,
and so that the method, the length of the run and the worker never enter: every method at one seed sees the same batches
and, where shapes match, draws the same initial weights.
"""

from __future__ import annotations

import hashlib

import numpy as np


def key(seed: int, *purpose: str | int) -> int:
    """A 64-bit key for (seed, purpose): the first eight bytes of sha256 over their unambiguous text."""
    text = "\x1f".join([str(seed), *map(str, purpose)])
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")


def stream(seed: int, *purpose: str | int) -> np.random.Generator:
    """A numpy generator for (seed, purpose). The same words give the same numbers on every machine."""
    return np.random.Generator(np.random.PCG64(key(seed, *purpose)))
