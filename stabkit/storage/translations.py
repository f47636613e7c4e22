"""Translations at rest, beside the runs: whole or absent. Never imports torch.

<out>/translations/<translation_id>/    spec.json translation.json environment.json manifest.json
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stabkit.errors import StabkitError
from stabkit.results import translation as specs
from stabkit.results.translation import TRANSLATION_VERSION, Score, TranslationSpec
from stabkit.storage import folder
from stabkit.storage.folder import CorruptFolder

FILES = ("spec.json", "translation.json", "environment.json")
TOKENIZERS = ("13a", "none")
LIMIT = 1_000_000_000
"""Bytes: two million sentences, as many as a corpus may have."""
KEYS = {"hypotheses", "references", "tokenize", "bleu", "signature", "length_ratio"}


@dataclass(frozen=True)
class Translation:
    """A finished translation of the held-out sentences: line i of the test files in `hypotheses` and `references`."""

    spec: TranslationSpec
    hypotheses: tuple[str, ...]
    references: tuple[str, ...]
    tokenize: str
    score: Score
    environment: Mapping[str, Any]


class TranslationShelf:
    """The translations under one output directory."""

    def __init__(self, out: Path) -> None:
        self.translations = out / "translations"

    def __contains__(self, translation_id: str) -> bool:
        return os.path.lexists(self.translations / translation_id)

    def ids(self, run_id: str = "") -> list[str]:
        """All translations, or those of a run, sorted."""
        if not self.translations.is_dir():
            return []
        names = [entry.name for entry in os.scandir(self.translations) if entry.name[0] != "."]
        return sorted(n for n in names if n.startswith(run_id) and os.path.isdir(self.translations / n))

    def load(self, translation_id: str) -> Translation:
        """One translation, every checksum verified; raises CorruptFolder, OldFolder."""
        path = self.translations / translation_id
        files, _ = folder.load(path, FILES, TRANSLATION_VERSION, {"translation.json": LIMIT})
        try:
            spec = specs.from_json(json.loads(files["spec.json"]))
            held, environment = json.loads(files["translation.json"]), json.loads(files["environment.json"])
            found = _sound(spec, held, environment)
        except StabkitError:
            raise
        except (ValueError, TypeError, KeyError, OverflowError, RecursionError, MemoryError) as error:
            raise CorruptFolder(f"{path}: not a translation of stabkit ({folder.first_line(error)})") from error
        if spec.translation_id != translation_id:
            raise CorruptFolder(f"{path}: its spec.json belongs to {spec.translation_id}")
        return found

    def of(self, run_id: str, digest: str) -> tuple[Translation, ...]:
        """Every sound translation by the weights of a run of this digest."""
        found = []
        for name in self.ids(f"{run_id}-beam"):
            try:
                one = self.load(name)
            except StabkitError:  # `runs verify` tells; the command that needs it translates again
                continue
            if one.spec.digest == digest:
                found.append(one)
        return tuple(found)

    def quarantine(self, translation_id: str) -> Path:
        """Move a folder that failed its check out of the way, keeping it; returns where it is now."""
        return folder.quarantine(self.translations, translation_id)

    def sweep_partial(self) -> None:
        """Delete what interrupted writers left half-assembled. For the lock's holder."""
        folder.sweep(folder.own(self.translations, ".partial"))

    def commit(self, found: Translation) -> None:
        """Put a translation on the shelf, whole or not at all."""
        held = {
            "hypotheses": found.hypotheses,
            "references": found.references,
            "tokenize": found.tokenize,
            "bleu": found.score.bleu,
            "signature": found.score.signature,
            "length_ratio": found.score.length_ratio,
        }
        files = {
            "spec.json": folder.to_json(found.spec.stored()),
            "translation.json": folder.to_json(held),
            "environment.json": folder.to_json(dict(found.environment)),
        }
        name = found.spec.translation_id
        partial = folder.own(self.translations, ".partial")
        folder.commit(self.translations / name, partial, files, TRANSLATION_VERSION, lambda: name in self)


def _sound(spec: TranslationSpec, held: Any, environment: Any) -> Translation:
    """A translation from JSON; raises ValueError for what is none."""
    if not isinstance(held, dict) or set(held) != KEYS or not isinstance(environment, dict):
        raise ValueError("its translation.json is not a translation")
    sides = held["hypotheses"], held["references"]
    if any(not isinstance(side, list) or any(not isinstance(line, str) for line in side) for side in sides):
        raise ValueError("its sentences are no texts")
    if len(sides[0]) != len(sides[1]) or not sides[0]:
        raise ValueError("its two sides differ in length, or are empty")
    if held["tokenize"] not in TOKENIZERS or not isinstance(held["signature"], str) or len(held["signature"]) > 200:
        raise ValueError("its BLEU has no signature")
    numbers = held["bleu"], held["length_ratio"]
    if any(type(n) not in (int, float) or not math.isfinite(n) or n < 0 for n in numbers):
        raise ValueError("its BLEU is no number")
    scored = Score(bleu=float(numbers[0]), signature=held["signature"], length_ratio=float(numbers[1]))
    return Translation(spec, tuple(sides[0]), tuple(sides[1]), held["tokenize"], scored, environment)
