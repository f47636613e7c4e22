"""Parallel text as a task: batches of sentences of similar length, cut from the encoded text (`encoded.py`).

An epoch shuffles the pairs, sorts them by length keeping that order among equals, cuts them into batches and shuffles
the batches.
"""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

from stabkit.errors import UsageError
from stabkit.streams import stream
from stabkit.tasks.base import EOS, Batch
from stabkit.tasks.buckets import Indices, cut, half, spread
from stabkit.tasks.corpus import Corpus, Pairs, digest, find, read
from stabkit.tasks.encoded import Prepared, prepare

__all__ = ["Corpus", "Pairs", "ParallelText", "digest", "find", "read"]

VERSION = 1
"""Of how batches are made: raised whenever the same text would give other batches."""
VALIDATION_BATCHES = 2


def identity(text: str, vocab: int, max_tokens: int) -> str:
    """The task's digest, from that of its text. The library's version is left out, as torch's is: the runs' environment
    records both."""
    if max_tokens < 2:
        raise UsageError(f"a batch of text needs at least 2 tokens, a word and an end mark, got {max_tokens}")
    return hashlib.sha256(f"text {VERSION} {text} vocab {vocab} max_tokens {max_tokens}".encode()).hexdigest()


PLANS = 64
"""Orders of an epoch that are kept."""


class ParallelText:
    """The task of translating a corpus; every batch is a function of (text, vocab, max_tokens, seed, step)."""

    def __init__(
        self, *, corpus: Corpus, vocab: int, max_tokens: int, text: str = "", prepared: Prepared | None = None
    ) -> None:
        """`text`, `prepared`: the corpus's digest and what `prepare` made of it, where they are known."""
        self.corpus = corpus
        self.name = f"{corpus.source}-{corpus.target}"
        self.vocab = vocab
        self.max_tokens = max_tokens
        self.digest = identity(text or digest(corpus), vocab, max_tokens)
        self.prepared = prepared or prepare(corpus, vocab, max_tokens)
        self._train, self._validation = self.prepared.train, self.prepared.validation
        self.epoch = len(cut(self._train.lengths, max_tokens))
        """Batches in each: every epoch cuts the same lengths."""
        self._plans: dict[tuple[int, int], list[Indices]] = {}
        """Of the last (seed, epoch)s: runs of several seeds may train at once."""

    def train(self, seed: int, step: int) -> Batch:
        epoch, position = divmod(step, self.epoch)
        if (seed, epoch) not in self._plans:
            if len(self._plans) >= PLANS:
                del self._plans[next(iter(self._plans))]
            self._plans[seed, epoch] = self._order(seed, epoch)
        return self._train.batch(self._plans[seed, epoch][position])

    def probe(self) -> Batch:
        """Validation sentences of middling length."""
        return self._validation.batch(self._held_out()[0])

    def validation(self) -> tuple[Batch, ...]:
        """Batches from long sentences to short, none of them the probe's unless there is but one."""
        return tuple(self._validation.batch(chosen) for chosen in self._held_out()[1])

    def unseen(self) -> tuple[Batch, ...]:
        """Every other validation pair, in batches from long to short: what no outcome was judged on and no rate was
        chosen by."""
        batches = cut(self._validation.lengths, self.max_tokens)
        middle, chosen = self._held_out()
        seen = {*middle, *np.concatenate(chosen)}
        left = [np.array([i for i in batch if i not in seen], dtype=np.int64) for batch in batches]
        return tuple(self._validation.batch(some) for some in left if len(some))

    def calibration(self, seed: int) -> Batch:
        """At most 4096 tokens (max_tokens, if that is more) in training sentences of middling length."""
        batches = self._shuffled(stream(seed, self.digest, "calibration"), max(4096, self.max_tokens))
        return self._train.batch(spread(batches, 1)[0])

    def target_counts(self) -> NDArray[np.int64]:
        """Counted over every training target that is kept, end marks included."""
        counts = np.bincount(self._train.target, minlength=self.vocab).astype(np.int64)
        counts[EOS] += len(self._train.lengths)
        return counts

    def _order(self, seed: int, epoch: int) -> list[Indices]:
        rng = stream(seed, self.digest, "order", epoch)
        batches = self._shuffled(rng, self.max_tokens)
        return [batches[i] for i in np.argsort(rng.random(len(batches)), kind="stable")]

    def _shuffled(self, rng: np.random.Generator, max_tokens: int) -> list[Indices]:
        """Training pairs cut into batches, in an order of their own among those of equal length."""
        order = np.argsort(rng.random(len(self._train.lengths)), kind="stable")
        return [order[chosen] for chosen in cut(self._train.lengths[order], max_tokens)]

    def _held_out(self) -> tuple[Indices, list[Indices]]:
        """The probe's pairs, and those of the validation batches."""
        batches = cut(self._validation.lengths, self.max_tokens)
        middle = batches.pop(len(batches) // 2)
        return half(middle), spread(batches or [middle], VALIDATION_BATCHES)
