"""What a task is: batches that depend on (seed, step) alone, and the few fixed ones that every run is measured on.

Shapes: B sentences, S source positions, T target positions. Tasks know numpy and nothing of torch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

PAD, BOS, EOS, UNK = 0, 1, 2, 3
"""The four symbols that every vocabulary begins with."""

Tokens = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Batch:
    """Sentence pairs of one update, padded with PAD on the right.

    source     (B, S)  ends with EOS
    target_in  (B, T)  begins with BOS: what the decoder reads (teacher forcing)
    target_out (B, T)  ends with EOS: what it must predict; PAD where nothing is asked

    A model without an encoder has no source (B, 0), one without a decoder no target_in (`objective.py`).
    """

    source: Tokens
    target_in: Tokens
    target_out: Tokens


class Task(Protocol):
    """A translation task. Every method is a pure function of its arguments and of how the task was built."""

    @property
    def name(self) -> str:
        """How reports call it."""

    @property
    def digest(self) -> str:
        """sha256 over everything that decides its batches, the corpus included; part of every run's identity."""

    @property
    def vocab(self) -> int:
        """Size of the joint vocabulary, the four symbols included."""

    def train(self, seed: int, step: int) -> Batch:
        """The batch of update `step` (from 0): at most max_tokens = B × max(S, T)."""
        ...

    def probe(self) -> Batch:
        """The one batch on which updates, LN inputs and branch ratios are measured; the same for every seed, held out,
        half as large as a training batch."""
        ...

    def validation(self) -> tuple[Batch, ...]:
        """The fixed held-out batches on which outcomes are judged; the same for every seed."""
        ...

    def calibration(self, seed: int) -> Batch:
        """A larger training batch from a stream of its own, for methods that profile (ADMIN)."""
        ...

    def target_counts(self) -> NDArray[np.int64]:
        """(vocab,) how often each token stands in target_out of the training text; PAD counts 0."""
        ...


def unigram_loss(counts: NDArray[np.int64], batches: tuple[Batch, ...], smoothing: float) -> float:
    """U: what the best constant predictor loses a token on `batches`, under the loss that runs are trained with.

    With label smoothing ε and p the add-one-smoothed unigram of the training targets, the constant that minimises the
    expected loss is q = (1 − ε)·p + ε/V; its loss is (1 − ε)·(−log q_y) + ε·mean_v(−log q_v), averaged over the tokens.
    A model that predicts by frequency alone loses U.
    """
    p = (counts + 1) / (counts + 1).sum()
    nll = -np.log((1 - smoothing) * p + smoothing / len(p))
    targets = np.concatenate([batch.target_out[batch.target_out != PAD] for batch in batches])
    return float((1 - smoothing) * nll[targets].mean() + smoothing * nll.mean())
