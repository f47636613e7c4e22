"""The synthetic translation task: sentences of a small language drawn without end from a seed; it needs no files.

Seeds differ in the sentences drawn, never in the language. A step draws the shapes of a small corpus of its own, cuts
it into batches of sentences of similar length, takes one of them and only then draws words: so lengths are mixed over
steps as they are in the language, little is padding, and step t costs the same for every t.
"""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

from stabkit.errors import UsageError
from stabkit.streams import stream
from stabkit.tasks.base import Batch
from stabkit.tasks.buckets import Indices, bracket, cut, full, half, spread
from stabkit.tasks.language import SMALLEST_VOCAB, VERSION, Language

SMALLEST_BATCH = 64
"""In tokens: every sentence fits, the longest having 39."""


class Synthetic:
    """The synthetic task: every batch is a function of (vocab, max_tokens, seed, step)."""

    def __init__(self, *, vocab: int = 2000, max_tokens: int = 512) -> None:
        if vocab < SMALLEST_VOCAB:
            raise UsageError(f"the synthetic task needs a vocabulary of at least {SMALLEST_VOCAB}, got {vocab}")
        if max_tokens < SMALLEST_BATCH:
            raise UsageError(f"the synthetic task needs at least {SMALLEST_BATCH} tokens per batch, got {max_tokens}")
        self.name = "synthetic"
        self.vocab = vocab
        self.max_tokens = max_tokens
        self.digest = hashlib.sha256(f"synthetic {VERSION} vocab {vocab} max_tokens {max_tokens}".encode()).hexdigest()
        self.language = Language(vocab)

    def train(self, seed: int, step: int) -> Batch:
        """One of the batches that a pool of sentences of this step's own is cut into, any one as likely."""
        rng = stream(seed, self.digest, "train", step)
        pool, batches = self._pool(rng, self.max_tokens)
        return self._spell(rng, pool[batches[int(rng.random() * len(batches))]])

    def probe(self) -> Batch:
        """Sentences of middling length."""
        rng = stream(0, self.digest, "probe")
        pool, batches = self._pool(rng, self.max_tokens)
        return self._spell(rng, pool[half(spread(batches, 1)[0])])

    def validation(self) -> tuple[Batch, ...]:
        """Two batches, of longer and of shorter sentences."""
        rng = stream(0, self.digest, "validation")
        pool, batches = self._pool(rng, self.max_tokens)
        return tuple(self._spell(rng, pool[chosen]) for chosen in spread(batches, 2))

    def calibration(self, seed: int) -> Batch:
        """At most 4096 tokens (max_tokens, if that is more) in sentences of middling length."""
        rng = stream(seed, self.digest, "calibration")
        pool, batches = self._pool(rng, max(4096, self.max_tokens))
        return self._spell(rng, pool[spread(batches, 1)[0]])

    def target_counts(self) -> NDArray[np.int64]:
        """Expected in a million sentences, to the nearest whole."""
        return np.rint(1e6 * self.language.expected()).astype(np.int64)

    def _pool(self, rng: np.random.Generator, max_tokens: int) -> tuple[NDArray[np.bool_], list[Indices]]:
        """The shapes of a small corpus, some six batches, and how it is cut; a piece too short for a batch is lost."""
        shapes = self.language.shapes(rng, max_tokens // 2)
        # No target is longer than its source; the full stop and the end mark come on top.
        return shapes, full(cut(np.count_nonzero(shapes, axis=(1, 2)) + 2, max_tokens))

    def _spell(self, rng: np.random.Generator, shapes: NDArray[np.bool_]) -> Batch:
        return bracket(*self.language.say(rng, shapes))
