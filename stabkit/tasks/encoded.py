"""Parallel text in numbers: one subword vocabulary for both languages, and every sentence in its subwords.

The vocabulary is byte-pair encoding (sentencepiece), trained in memory on both sides of the training text. Its defaults
stand: text is cased, normalised to NFKC with single spaces, and the rarest characters, 0.05 % of the text, become UNK.
It takes seconds, so it is made once and kept (`storage/texts.py`); sentencepiece is loaded only where it is made.
"""

from __future__ import annotations

import io
import re
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from stabkit.errors import CorpusError, UsageError, require
from stabkit.tasks.base import BOS, EOS, PAD, UNK, Batch, Tokens
from stabkit.tasks.buckets import Indices, bracket
from stabkit.tasks.corpus import LONGEST_LINE, Corpus, Pairs, read, shown

if TYPE_CHECKING:
    from sentencepiece import SentencePieceProcessor

LONGEST_SENTENCE = 256
"""In tokens, the end mark included: the positions that a model has."""
VOCABULARY_PAIRS = 200_000
"""The vocabulary is trained on at most so many, evenly spaced: more change little and take long."""


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


@dataclass(frozen=True, slots=True)
class Prepared:
    """All of a corpus that its batches are cut from."""

    vocabulary: bytes
    """sentencepiece's model."""
    train: Encoded
    validation: Encoded
    dropped: int
    """Pairs without a word on one side, of training and validation."""
    left_out: int
    """Pairs with a side longer than a batch or than LONGEST_SENTENCE, of training and validation."""


def prepare(corpus: Corpus, vocab: int, max_tokens: int) -> Prepared:
    """Train the vocabulary and encode the text; raises CorpusError, UsageError where they do not fit each other."""
    train, validation = read(corpus.train), read(corpus.validation)
    proto = _vocabulary(train, vocab)
    subwords, limit = processor(proto), min(max_tokens, LONGEST_SENTENCE)
    trained, train_blank, train_long = _encode(subwords, train, limit)
    validated, validation_blank, validation_long = _encode(subwords, validation, limit)
    for sides, kept in ((corpus.train, trained), (corpus.validation, validated)):
        if not len(kept.lengths):
            raise CorpusError(
                f"no pair of {shown(sides[0])} and {shown(sides[1])} remains:"
                f" each has an empty side or more than {limit} tokens"
            )
    return Prepared(
        vocabulary=proto,
        train=trained,
        validation=validated,
        dropped=train.dropped + validation.dropped + train_blank + validation_blank,
        left_out=train_long + validation_long,
    )


def processor(vocabulary: bytes) -> SentencePieceProcessor:
    """What turns sentences into subwords."""
    require("sentencepiece", "text of your own", "papers")
    from sentencepiece import SentencePieceProcessor

    return SentencePieceProcessor(model_proto=vocabulary)


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


def _vocabulary(pairs: Pairs, vocab: int) -> bytes:
    """A byte-pair encoding of exactly `vocab` subwords, the same for the same text."""
    every = -(-len(pairs.source) // VOCABULARY_PAIRS)
    text = [*pairs.source[::every], *pairs.target[::every]]
    try:
        return _train_subwords(text, vocab)
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
