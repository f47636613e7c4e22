"""Parallel text as a task: one subword vocabulary for both languages, batches of sentences of similar length.

The vocabulary is byte-pair encoding (sentencepiece), trained in memory on both sides of the training text. Its defaults
stand: text is cased, normalised to NFKC with single spaces, and the rarest characters, 0.05 % of the text, become UNK.
An epoch shuffles the pairs, sorts them by length keeping that order among equals, cuts them into batches and shuffles
the batches.
"""

from __future__ import annotations

import hashlib
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from stabkit.errors import CorpusError, UsageError
from stabkit.streams import stream
from stabkit.tasks.base import BOS, EOS, PAD, UNK, Batch, HeldOut, Tokens
from stabkit.tasks.buckets import Indices, bracket, cut, half, spread
from stabkit.tasks.corpus import LONGEST_LINE, Corpus, Pairs, aligned, digest, find, no_test, read, shown, test_digest

if TYPE_CHECKING:
    from sentencepiece import SentencePieceProcessor

__all__ = ["Corpus", "Pairs", "ParallelText", "digest", "find", "read"]

VERSION = 1
"""Of how batches are made: raised whenever the same text would give other batches."""
LONGEST_SENTENCE = 256
"""In tokens, the end mark included: the positions that a model has."""
VALIDATION_BATCHES = 2
TEST_TOKENS = 4096
"""Size of the batches that are translated at once; no word depends on it."""
VOCABULARY_PAIRS = 200_000
"""The vocabulary is trained on at most so many, evenly spaced: more change little and take long."""


class ParallelText:
    """The task of translating a corpus; every batch is a function of (text, vocab, max_tokens, seed, step)."""

    def __init__(self, *, corpus: Corpus, vocab: int, max_tokens: int) -> None:
        if max_tokens < 2:
            raise UsageError(f"a batch of text needs at least 2 tokens, a word and an end mark, got {max_tokens}")
        self.corpus = corpus
        self.name = f"{corpus.source}-{corpus.target}"
        self.vocab = vocab
        self.max_tokens = max_tokens
        # The library's version is left out, as torch's is: the runs' environment records both.
        identity = f"text {VERSION} {digest(corpus)} vocab {vocab} max_tokens {max_tokens}"
        self.digest = hashlib.sha256(identity.encode()).hexdigest()
        train, validation = read(corpus.train), read(corpus.validation)
        self._subwords = _subwords(train, vocab)
        limit = min(max_tokens, LONGEST_SENTENCE)
        self._train, train_blank, train_long = _encode(self._subwords, train, limit)
        self._validation, validation_blank, validation_long = _encode(self._subwords, validation, limit)
        self.dropped = train.dropped + validation.dropped + train_blank + validation_blank
        """Pairs without a word on one side, of training and validation."""
        self.left_out = train_long + validation_long
        """Pairs with a side longer than a batch or than LONGEST_SENTENCE, of training and validation."""
        for sides, kept in ((corpus.train, self._train), (corpus.validation, self._validation)):
            if not len(kept.lengths):
                raise CorpusError(
                    f"no pair of {shown(sides[0])} and {shown(sides[1])} is left:"
                    f" every one is blank on a side or longer than {limit} tokens"
                )
        self.epoch = len(cut(self._train.lengths, max_tokens))
        """Batches in each: every epoch cuts the same lengths."""
        self._plan: tuple[tuple[int, int], list[Indices]] = ((-1, -1), [])

    def train(self, seed: int, step: int) -> Batch:
        epoch, position = divmod(step, self.epoch)
        if self._plan[0] != (seed, epoch):
            self._plan = (seed, epoch), self._order(seed, epoch)
        return self._train.batch(self._plan[1][position])

    def probe(self) -> Batch:
        """Validation sentences of middling length."""
        return self._validation.batch(self._held_out()[0])

    def validation(self) -> tuple[Batch, ...]:
        """Batches from long sentences to short, none of them the probe's unless there is but one."""
        return tuple(self._validation.batch(chosen) for chosen in self._held_out()[1])

    def calibration(self, seed: int) -> Batch:
        """At most 4096 tokens (max_tokens, if that is more) in training sentences of middling length."""
        batches = self._shuffled(stream(seed, self.digest, "calibration"), max(4096, self.max_tokens))
        return self._train.batch(spread(batches, 1)[0])

    def held_out(self) -> HeldOut:
        """Every pair of the test files, blank ones too, for a score is one of all lines; a source longer than the
        model's positions is cut."""
        if self.corpus.test is None:
            raise no_test(self.corpus)
        source, target = aligned(self.corpus.test)
        encoded = self._subwords.encode(source, num_threads=1)
        rows = [np.array([*ids[: LONGEST_SENTENCE - 1], EOS], dtype=np.int64) for ids in encoded]
        batches = cut(np.array([len(row) for row in rows]), TEST_TOKENS)
        sources = [np.full((len(chosen), max(len(rows[i]) for i in chosen)), PAD) for chosen in batches]
        for batch, chosen in zip(sources, batches, strict=True):
            for place, i in enumerate(chosen):
                batch[place, : len(rows[i])] = rows[i]
        lines = tuple(int(i) for chosen in batches for i in chosen)
        return HeldOut(tuple(sources), lines, tuple(target), "13a", test_digest(self.corpus))

    def text(self, tokens: Sequence[int]) -> str:
        return self.decode(list(tokens))

    def target_counts(self) -> NDArray[np.int64]:
        """Counted over every training target that is kept, end marks included."""
        counts = np.bincount(self._train.target, minlength=self.vocab).astype(np.int64)
        counts[EOS] += len(self._train.lengths)
        return counts

    def encode(self, text: str) -> list[int]:
        """The subwords of one sentence, without an end mark."""
        return [int(i) for i in self._subwords.encode(text)]

    def decode(self, ids: list[int]) -> str:
        """The sentence up to the first end mark."""
        stop = ids.index(EOS) if EOS in ids else len(ids)
        return str(self._subwords.decode([i for i in ids[:stop] if i not in (PAD, BOS)]))

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


@dataclass(frozen=True, slots=True)
class Encoded:
    """Pairs as ids: sentence i of the source is source[source_start[i] : source_start[i + 1]]; no end marks."""

    source: Tokens
    source_start: Indices
    target: Tokens
    target_start: Indices
    lengths: Indices
    """Of the longer side, the end mark included."""

    def batch(self, chosen: Indices) -> Batch:
        return bracket(_gather(self.source, self.source_start, chosen), _gather(self.target, self.target_start, chosen))


def _gather(tokens: Tokens, start: Indices, chosen: Indices) -> Tokens:
    """(B, longest) rows of the chosen sentences, padded with PAD."""
    sizes = start[chosen + 1] - start[chosen]
    positions = np.arange(sizes.max())
    inside = positions < sizes[:, None]
    rows = np.full(inside.shape, PAD, dtype=np.int64)
    rows[inside] = tokens[(start[chosen][:, None] + positions)[inside]]
    return rows


def _encode(subwords: SentencePieceProcessor, pairs: Pairs, limit: int) -> tuple[Encoded, int, int]:
    """The pairs that fit, and how many are blank once normalised, and how many too long."""
    source, target = (subwords.encode(side, num_threads=1) for side in (pairs.source, pairs.target))
    sizes = np.array([[len(s), len(t)] for s, t in zip(source, target, strict=True)], dtype=np.int64)
    blank, long = sizes.min(axis=1) == 0, sizes.max(axis=1) >= limit
    kept = np.flatnonzero(~blank & ~long)
    flat = [np.fromiter(chain.from_iterable(side[i] for i in kept), dtype=np.int64) for side in (source, target)]
    start = np.concatenate([np.zeros((1, 2), dtype=np.int64), np.cumsum(sizes[kept], axis=0)])
    encoded = Encoded(flat[0], start[:, 0], flat[1], start[:, 1], sizes[kept].max(axis=1) + 1)
    return encoded, int(blank.sum()), int((long & ~blank).sum())


def _subwords(pairs: Pairs, vocab: int) -> SentencePieceProcessor:
    """A byte-pair encoding of exactly `vocab` subwords, the same for the same text."""
    from sentencepiece import SentencePieceProcessor

    every = -(-len(pairs.source) // VOCABULARY_PAIRS)
    text = [*pairs.source[::every], *pairs.target[::every]]
    try:
        return SentencePieceProcessor(model_proto=_train_subwords(text, vocab))
    except (RuntimeError, OSError, ValueError, TypeError, OverflowError) as error:
        message = str(error)
    if found := re.search(r"required_chars. \d+ vs (\d+)", message):
        raise UsageError(f"this text needs a vocabulary of at least {found[1]} subwords (its characters), got {vocab}")
    if found := re.search(r"set it to a value <= (\d+)", message):
        raise UsageError(f"this text yields a vocabulary of at most {found[1]} subwords, got {vocab}")
    if "all_chars_count" in message or "sentences_.empty()" in message:
        raise CorpusError("no vocabulary can be made from this text: once normalised it has no characters")
    raise CorpusError(f"no vocabulary of {vocab} subwords could be made from this text: {' '.join(message.split())}")


def _train_subwords(text: list[str], vocab: int) -> bytes:
    from sentencepiece import SentencePieceTrainer

    model = io.BytesIO()
    SentencePieceTrainer.train(
        sentence_iterator=iter(text),
        model_writer=model,
        model_type="bpe",
        vocab_size=vocab,
        pad_id=PAD,
        bos_id=BOS,
        eos_id=EOS,
        unk_id=UNK,
        max_sentence_length=LONGEST_LINE,
        num_threads=1,
        minloglevel=5,  # above every level: it would write to stderr
    )
    return model.getvalue()
