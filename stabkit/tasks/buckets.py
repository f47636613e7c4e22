"""Sentence pairs of similar length, cut into batches that waste little on padding.

Shapes: B sentences, S source positions, T target positions. A *rows* array (B, L) holds token ids, PAD on the right.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stabkit.tasks.base import BOS, EOS, PAD, Batch, Tokens

Indices = NDArray[np.int64]


def cut(lengths: Indices, max_tokens: int) -> list[Indices]:
    """Consecutive runs of sentences sorted by length, each with count × longest ≤ max_tokens; the longest come first.

    lengths: of sentence i, the longer of its two sides, end mark included, none above max_tokens. Sentences of one
    length keep the order in which they came.
    """
    order = np.argsort(-lengths, kind="stable")
    batches = []
    start = 0
    while start < len(order):
        stop = start + max_tokens // int(lengths[order[start]])
        batches.append(order[start:stop])
        start = stop
    return batches


def full(batches: list[Indices]) -> list[Indices]:
    """The batches of `cut` without the last, which holds whatever was left, unless it is all there is."""
    return batches[:-1] or batches


def spread(batches: list[Indices], count: int) -> list[Indices]:
    """At most `count` of the batches, evenly from the longest sentences to the shortest, neither end preferred."""
    count = min(count, len(batches))
    return [batches[(2 * i + 1) * len(batches) // (2 * count)] for i in range(count)]


def half(chosen: Indices) -> Indices:
    """Half the sentences of a batch: the probe's share. A mean over 200 tokens is good to 2 %, at half the price."""
    return chosen[: (len(chosen) + 1) // 2]


def bracket(source: Tokens, target: Tokens) -> Batch:
    """The batch of rows without end marks: EOS after every sentence, BOS before what the decoder reads."""
    return Batch(
        source=_close(source),
        target_in=np.concatenate([np.full((len(target), 1), BOS), target], axis=1),
        target_out=_close(target),
    )


def _close(rows: Tokens) -> Tokens:
    """(B, L) → (B, L + 1) with EOS in each row's first free position."""
    closed = np.concatenate([rows, np.full((len(rows), 1), PAD)], axis=1)
    closed[np.arange(len(rows)), np.count_nonzero(rows, axis=1)] = EOS
    return closed
