"""A small corpus, its words in numbers and back, and the way to ask for an error's message."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from stabkit.errors import CorpusError, StabkitError
from stabkit.tasks.base import BOS, EOS, PAD
from stabkit.tasks.encoded import processor
from stabkit.tasks.text import ParallelText

DE = "ein die der hund katze läuft schläft über wiese straße rot klein groß und mann frau sieht im park".split()
EN = "a the one dog cat runs sleeps over meadow street red small big and man woman sees in park".split()


def sentences(count: int, seed: int = 0) -> tuple[str, str]:
    """Text of `count` lines in two made-up languages that are word for word the same."""
    rng = np.random.default_rng(seed)
    lines = [rng.integers(len(DE), size=rng.integers(1, 15)) for _ in range(count)]
    return tuple("".join(" ".join(words[i] for i in line) + "\n" for line in lines) for words in (DE, EN))  # type: ignore[return-value]


def write(directory: Path) -> Path:
    """A sound corpus of 300 and 60 pairs."""
    for stem, count, seed in (("train", 300, 0), ("valid", 60, 1)):
        for language, text in zip(("de", "en"), sentences(count, seed), strict=True):
            (directory / f"{stem}.{language}").write_text(text, encoding="utf-8")
    return directory


def encode(task: ParallelText, sentence: str) -> list[int]:
    """The subwords of one sentence, without an end mark."""
    return [int(i) for i in processor(task.prepared.vocabulary).encode(sentence)]


def decode(task: ParallelText, ids: list[int]) -> str:
    """The sentence up to the first end mark."""
    stop = ids.index(EOS) if EOS in ids else len(ids)
    return str(processor(task.prepared.vocabulary).decode([i for i in ids[:stop] if i not in (PAD, BOS)]))


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A corpus to change."""
    return write(tmp_path)


@pytest.fixture(scope="session")
def unchanged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same corpus, to read only."""
    return write(tmp_path_factory.mktemp("corpus"))


@pytest.fixture(scope="session")
def said() -> Callable[..., str]:
    """said(call, kind): the one line of the error that the call must raise."""

    def said(call: Callable[[], object], kind: type[StabkitError] = CorpusError) -> str:
        with pytest.raises(kind) as caught:
            call()
        message = str(caught.value)
        assert message.isprintable(), "one line, no control characters"
        return message

    return said
