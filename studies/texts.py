"""Texts as subwords: the English side of Multi30k, and the source code of Python's own standard library.

Of each a byte-pair vocabulary of WORDS is made; of ten pieces of PIECE tokens one is held out, so that both parts
are of the same kind. Which library it is depends on the Python that runs: rows hold the entropy of its subwords, by
which another one is known.
"""

from __future__ import annotations

import gzip
import io
import sysconfig
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from stabkit.streams import stream

WORDS = 1_000
"""Subwords of a vocabulary."""
CHARACTERS = 4_000_000
"""Of the standard library: its files in the order of their names, to about so many."""
PIECE = 1_000
"""Tokens."""
HELD_OUT = 1_000_000
"""The step that held-out batches begin at."""
TEXTS = ("multi30k", "python")


@dataclass(frozen=True)
class Text:
    """Tokens in a row, read from random places."""

    tokens: NDArray[np.int64]
    words: int

    @property
    def frequencies(self) -> float:
        """Nats of who knows how often each token comes."""
        counts = np.bincount(self.tokens, minlength=self.words) / len(self.tokens)
        counts = counts[counts > 0]
        return float(-(counts * np.log(counts)).sum())

    def batch(self, shape: tuple[int, int], step: int) -> torch.Tensor:
        """Of the first nine tenths, held-out ones of the last."""
        edge = len(self.tokens) * 9 // 10
        low, high = (0, edge) if step < HELD_OUT else (edge, len(self.tokens))
        starts = stream(0, f"letters {step}").integers(low, high - shape[1], shape[0])
        return torch.from_numpy(np.stack([self.tokens[at : at + shape[1]] for at in starts]))


@cache
def letters(data: Path) -> Text:
    """Of the English side of a parallel text: what ASCII has no letter for is left out."""
    return Text(np.frombuffer(_english(data).encode("ascii", "ignore"), dtype=np.uint8).astype(np.int64), 128)


@cache
def subwords(name: str, data: Path) -> Text:
    """One of TEXTS."""
    return _encoded(_english(data) if name == "multi30k" else _library())


def _english(data: Path) -> str:
    with gzip.open(data / "train.en.gz", "rt", encoding="utf-8") as file:
        return file.read()


def _library() -> str:
    """Modules that stand in the library's own folder, of which a package of others has none."""
    text, size = list[str](), 0
    for path in sorted(Path(sysconfig.get_path("stdlib")).glob("*.py")):
        text.append(path.read_text(encoding="utf-8", errors="ignore"))
        size += len(text[-1])
        if size >= CHARACTERS:
            break
    return "\n".join(text)


def _encoded(text: str) -> Text:
    from sentencepiece import SentencePieceProcessor, SentencePieceTrainer

    model = io.BytesIO()
    lines = text.split("\n")
    SentencePieceTrainer.train(
        sentence_iterator=iter(lines[:: 1 + len(lines) // 50_000]),
        model_writer=model,
        model_type="bpe",
        vocab_size=WORDS,
        character_coverage=0.9995,
        remove_extra_whitespaces=False,  # what a line of code begins with
        num_threads=1,
        minloglevel=5,  # above every level: it would write to stderr
    )
    processor = SentencePieceProcessor(model_proto=model.getvalue())
    ends = processor.eos_id()
    encoded = processor.encode(text.split("\n"), num_threads=1)
    tokens = np.array([token for line in encoded for token in (*line, ends)], dtype=np.int64)
    pieces = tokens[: len(tokens) // PIECE * PIECE].reshape(-1, PIECE)
    held_out = np.arange(len(pieces)) % 10 == 9
    return Text(np.concatenate([pieces[~held_out], pieces[held_out]]).ravel(), WORDS)
