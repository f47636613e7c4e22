"""Encoded parallel text, one folder for each digest of a task. Never imports torch.

<out>/texts/<digest>/    vocabulary.model text.npz manifest.json
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stabkit.results.records import unpacked
from stabkit.storage import folder
from stabkit.storage.shelf import FolderKind
from stabkit.tasks.encoded import Encoded, Prepared
from stabkit.tasks.text import VERSION

FILES = {"vocabulary.model": 16_000_000, "text.npz": 2 * folder.LARGEST}
"""Of a million pairs of thirty subwords a side text.npz takes a quarter of a billion bytes."""
SIDES = ("train", "validation")
PARTS = ("source", "source_start", "target", "target_start", "lengths")
COUNTS = ("dropped", "left_out")


def parse(path: Path, files: Mapping[str, bytes], digest: str, *, vocab: int | None) -> Prepared:
    """An encoded text, of a vocabulary of this size (None: of any), of the bytes of its files."""
    data = files["text.npz"]
    arrays = unpacked(data, len(data))  # it is written as it is
    train, validation = (_encoded(arrays, side, vocab) for side in SIDES)
    counts = {name: int(arrays[name]) for name in COUNTS}
    return Prepared(vocabulary=files["vocabulary.model"], train=train, validation=validation, **counts)


def to_files(prepared: Prepared) -> dict[str, bytes]:
    """The bytes of an encoded text's files, by name."""
    out = io.BytesIO()
    arrays: dict[str, Any] = {name: np.array(getattr(prepared, name)) for name in COUNTS}
    for side in SIDES:
        for part in PARTS:
            arrays[f"{side}.{part}"] = getattr(getattr(prepared, side), part).astype(np.int32)
    np.savez(out, **arrays)
    return {"vocabulary.model": prepared.vocabulary, "text.npz": out.getvalue()}


def kind(vocab: int | None) -> FolderKind[Prepared]:
    """The texts of a vocabulary of this size: no token may point beyond it."""
    return FolderKind(
        folder="texts", noun="an encoded text", files=FILES, version=VERSION, parse=partial(parse, vocab=vocab)
    )


def _encoded(arrays: dict[str, NDArray[Any]], side: str, vocab: int | None) -> Encoded:
    """One side's arrays, every index within what it points into."""
    stored = {part: arrays[f"{side}.{part}"] for part in PARTS}
    if any(array.dtype != np.int32 or array.ndim != 1 for array in stored.values()):
        raise ValueError("an array is not a list of whole numbers")
    whole = {part: array.astype(np.int64) for part, array in stored.items()}
    pairs = len(whole["lengths"])
    for language in ("source", "target"):
        tokens, start = whole[language], whole[f"{language}_start"]
        sound = len(start) == pairs + 1 and start[0] == 0 and start[-1] == len(tokens) and (np.diff(start) > 0).all()
        if not sound or not pairs or tokens.min() < 0 or (vocab is not None and tokens.max() >= vocab):
            raise ValueError(f"{side}.{language} has no sentences")
    longest = np.maximum(np.diff(whole["source_start"]), np.diff(whole["target_start"])) + 1
    if not np.array_equal(whole["lengths"], longest):
        raise ValueError(f"the lengths of {side} do not match its sentences")
    return Encoded(**whole)
