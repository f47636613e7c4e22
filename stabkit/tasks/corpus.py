"""Parallel text in Moses-style files: found by name, read with every check, no line ever paired with the wrong one.

A directory holds `train.de` and `train.en`, `valid`, `val` or `dev` likewise; each plain or gzip-compressed
(`train.de.gz`). Where both stand, the plain one is read. Line i of one side translates line i of the other. Lines end
with "\\n" alone: everything that Unicode also calls a line end stays inside its sentence.

Nothing here loads torch or sentencepiece; `find` and `digest` are cheap enough for planning.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import re
import stat
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from stabkit.errors import CorpusError, UsageError

VALIDATION_STEMS = ("valid", "val", "dev")
LONGEST_LINE = 16_384
"""In bytes. A longer one is not a sentence, but a file that is not one sentence a line."""
MOST_LINES = 1_000_000
MOST_BYTES = 256 * 2**20
"""Of one file, decompressed. Every worker holds the text in memory; a gzip bomb unpacks to far more."""

Sides = tuple[Path, Path]
"""The source's and the target's file."""


@dataclass(frozen=True, slots=True)
class Corpus:
    """The files of one language pair."""

    directory: Path
    source: str
    target: str
    train: Sides
    validation: Sides


@dataclass(frozen=True, slots=True)
class Pairs:
    """Sentence i of `source` is translated by sentence i of `target`; neither is blank."""

    source: list[str]
    target: list[str]
    dropped: int
    """Pairs left out because a side was blank."""


def find(directory: Path, source: str, target: str) -> Corpus:
    """The corpus of a directory; looks at names and kinds of files only."""
    for language in (source, target):
        if not re.fullmatch(r"[A-Za-z0-9_-]{1,16}", language):
            raise UsageError(f"a language has 1 to 16 characters from A-Z a-z 0-9 _ -, such as 'de'; got {language!r}")
    if source == target:
        raise UsageError(f"source and target must be two languages, got {source!r} for both")
    try:
        names = sorted(os.listdir(directory))
    except FileNotFoundError:
        raise CorpusError(f"the corpus directory {shown(directory)} does not exist") from None
    except NotADirectoryError:
        raise CorpusError(f"{shown(directory)} is a file; give the directory that holds train.{source}") from None
    except (OSError, ValueError) as error:
        raise CorpusError(f"the corpus directory {shown(directory)} cannot be read: {_reason(error)}") from None
    if not (train := _sides(directory, names, ["train"], source, target)):
        raise _missing(directory, names, ["train"], source, target)
    if not (validation := _sides(directory, names, VALIDATION_STEMS, source, target)):
        raise _missing(directory, names, VALIDATION_STEMS, source, target)
    return Corpus(directory, source, target, train, validation)


def digest(corpus: Corpus) -> str:
    """sha256 over the text of training and validation, decompressed, each file with its role and size."""
    total = hashlib.sha256()
    for role, sides in (("train", corpus.train), ("validation", corpus.validation)):
        for side, path in zip(("source", "target"), sides, strict=True):
            text = _bytes(path)
            total.update(f"{role} {side} {len(text)}\n".encode())
            total.update(text)
    return total.hexdigest()


def read(sides: Sides) -> Pairs:
    """The aligned sentences of two files, without the pairs of which a side is blank."""
    source, target = (_lines(path) for path in sides)
    if len(source) != len(target):
        raise CorpusError(
            f"line i must translate line i, but {shown(sides[0])} has {len(source)} lines"
            f" and {shown(sides[1])} has {len(target)}"
        )
    kept = [(a, b) for a, b in zip(source, target, strict=True) if a.strip() and b.strip()]
    if not kept:
        what = "only pairs with an empty side" if source else "no line"
        raise CorpusError(f"nothing to read: {shown(sides[0])} and {shown(sides[1])} hold {what}")
    return Pairs([a for a, _ in kept], [b for _, b in kept], dropped=len(source) - len(kept))


def shown(path: Path) -> str:
    """The path as text that is safe in one line of a terminal."""
    text = str(path)
    return text if text.isprintable() else ascii(text)


def _sides(directory: Path, names: list[str], stems: Iterable[str], source: str, target: str) -> Sides | None:
    """The files of the first stem that has both languages."""
    for stem in stems:
        paths = [_either(directory, names, f"{stem}.{language}") for language in (source, target)]
        if paths[0] and paths[1]:
            return paths[0], paths[1]
    return None


def _either(directory: Path, names: list[str], name: str) -> Path | None:
    for candidate in (name, name + ".gz"):
        if candidate in names:
            _open(directory / candidate).close()
            return directory / candidate
    return None


def _missing(directory: Path, names: list[str], stems: Iterable[str], source: str, target: str) -> CorpusError:
    needed = " or ".join(f"{stem}.{source} with {stem}.{target}" for stem in stems)
    listed = ", ".join(ascii(name) for name in names[:12]) + (f" and {len(names) - 12} more" if len(names) > 12 else "")
    return CorpusError(f"needed {needed} (or .gz) in {shown(directory)}, found {listed or 'nothing'}")


def _open(path: Path) -> BinaryIO:
    """A regular file, or a link to one: opening a pipe would wait for its other end."""
    try:
        if stat.S_ISREG(path.stat().st_mode):
            return path.open("rb")
    except OSError as error:
        raise CorpusError(f"{shown(path)} cannot be read: {_reason(error)}") from None
    raise CorpusError(f"{shown(path)} is not a regular file")


def _bytes(path: Path) -> bytes:
    """The decompressed content, or an error that names the file."""
    pieces = []
    left = MOST_BYTES
    with _open(path) as raw:
        text = gzip.GzipFile(fileobj=raw) if path.suffix == ".gz" else raw
        try:
            while left >= 0 and (piece := text.read(2**20)):
                pieces.append(piece)
                left -= len(piece)
        except (gzip.BadGzipFile, zlib.error, EOFError) as error:
            raise CorpusError(f"{shown(path)} is not a valid gzip file: {error}") from None
        except OSError as error:
            raise CorpusError(f"{shown(path)} cannot be read: {_reason(error)}") from None
    if left < 0:
        raise CorpusError(f"{shown(path)} holds more than {MOST_BYTES // 2**20} MiB of text; give a smaller part of it")
    return b"".join(pieces)


def _lines(path: Path) -> list[str]:
    """The file's lines, each without its end ("\\n" or "\\r\\n"); strict UTF-8."""
    text = _bytes(path)
    count = text.count(b"\n") + (not text.endswith(b"\n") and text != b"")
    if count > MOST_LINES:
        raise CorpusError(f"{shown(path)} has {count} lines; at most {MOST_LINES} are read, give a part of it")
    try:
        decoded = text.decode("utf-8")
    except UnicodeDecodeError as error:
        number = text.count(b"\n", 0, error.start) + 1
        raise CorpusError(f"{shown(path)}:{number}: not UTF-8 (byte 0x{text[error.start]:02x})") from None
    lines = decoded.split("\n")[:count]
    for number, line in enumerate(lines, start=1):
        # A character has at most four bytes, so that most lines need not be encoded again.
        if 4 * len(line) > LONGEST_LINE and (size := len(line.encode())) > LONGEST_LINE:
            raise CorpusError(f"{shown(path)}:{number}: a line of {size} bytes, more than the {LONGEST_LINE} allowed")
    return [line.removesuffix("\r") for line in lines]


def _reason(error: OSError | ValueError) -> str:
    return getattr(error, "strerror", None) or str(error)
