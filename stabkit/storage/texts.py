"""Encoded texts at rest, beside the runs: whole or absent, one for each digest of a task. Never imports torch.

<out>/texts/<digest>/    vocabulary.model text.npz manifest.json
"""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stabkit.storage import folder
from stabkit.storage.folder import CorruptFolder
from stabkit.tasks.encoded import Encoded, Prepared
from stabkit.tasks.text import VERSION

FILES = ("vocabulary.model", "text.npz")
LIMIT = 2_000_000_000
"""Bytes of text.npz; a million pairs of thirty subwords a side take a quarter of a billion."""
SIDES = ("train", "validation")
PARTS = ("source", "source_start", "target", "target_start", "lengths")
COUNTS = ("dropped", "left_out")


class TextShelf:
    """The encoded texts under one output directory."""

    def __init__(self, out: Path) -> None:
        self.texts = out / "texts"

    def __contains__(self, digest: str) -> bool:
        return os.path.lexists(self.texts / digest)

    def load(self, digest: str, vocab: int) -> Prepared:
        """What was kept under a task's digest, every checksum verified; raises CorruptFolder, OldFolder."""
        path = self.texts / digest
        files, _ = folder.load(path, FILES, VERSION, {"text.npz": LIMIT})
        try:
            with np.load(io.BytesIO(files["text.npz"]), allow_pickle=False) as held:
                arrays = {name: held[name] for name in held.files}
            train, validation = (_encoded(arrays, side, vocab) for side in SIDES)
            counts = {name: int(arrays[name]) for name in COUNTS}
        except Exception as error:  # zip, npy header and memory errors alike: a file that is not ours
            raise CorruptFolder(f"{path}: not an encoded text ({folder.first_line(error)})") from error
        return Prepared(vocabulary=files["vocabulary.model"], train=train, validation=validation, **counts)

    def commit(self, digest: str, prepared: Prepared) -> None:
        """Keep what was made under a task's digest, whole or not at all."""
        out = io.BytesIO()
        arrays: dict[str, Any] = {name: np.array(getattr(prepared, name)) for name in COUNTS}
        for side in SIDES:
            for part in PARTS:
                arrays[f"{side}.{part}"] = getattr(getattr(prepared, side), part).astype(np.int32)
        np.savez(out, **arrays)
        files = {"vocabulary.model": prepared.vocabulary, "text.npz": out.getvalue()}
        partial = folder.own(self.texts, ".partial")
        folder.commit(self.texts / digest, partial, files, VERSION, lambda: digest in self)

    def quarantine(self, digest: str) -> Path:
        """Move a folder that failed its check out of the way, keeping it; returns where it is now."""
        return folder.quarantine(self.texts, digest)

    def sweep_partial(self) -> None:
        """Delete what interrupted writers left half-assembled. For the lock's holder."""
        folder.sweep(folder.own(self.texts, ".partial"))


def _encoded(arrays: dict[str, NDArray[Any]], side: str, vocab: int) -> Encoded:
    """One side's arrays, every index within what it points into."""
    found = {part: arrays[f"{side}.{part}"] for part in PARTS}
    if any(array.dtype != np.int32 or array.ndim != 1 for array in found.values()):
        raise ValueError("an array is not a row of whole numbers")
    whole = {part: array.astype(np.int64) for part, array in found.items()}
    pairs = len(whole["lengths"])
    for language in ("source", "target"):
        tokens, start = whole[language], whole[f"{language}_start"]
        sound = len(start) == pairs + 1 and start[0] == 0 and start[-1] == len(tokens) and (np.diff(start) > 0).all()
        if not sound or not pairs or tokens.min() < 0 or tokens.max() >= vocab:
            raise ValueError(f"the sentences of {side}.{language} are none")
    longest = np.maximum(np.diff(whole["source_start"]), np.diff(whole["target_start"])) + 1
    if not np.array_equal(whole["lengths"], longest):
        raise ValueError(f"the lengths of {side} are not those of its sentences")
    return Encoded(**whole)
