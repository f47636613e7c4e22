"""Stored translations. Never imports torch.

<out>/translations/<translation_id>/    spec.json translation.json environment.json manifest.json
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stabkit.errors import StoreError
from stabkit.results import translation as specs
from stabkit.results.run import Run
from stabkit.results.translation import TRANSLATION_VERSION, Score, TranslationSpec
from stabkit.storage import folder
from stabkit.storage.shelf import FolderKind, Shelf, check_name

FILES = {"spec.json": folder.SMALL, "translation.json": folder.LARGEST, "environment.json": folder.SMALL}
"""translation.json holds two million sentences at most, as many as a corpus may have."""
TOKENIZERS = ("13a", "none")
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


def parse(path: Path, files: Mapping[str, bytes], digest: str) -> Translation:
    """A translation of the bytes of its files."""
    spec = specs.from_json(json.loads(files["spec.json"]))
    body, environment = json.loads(files["translation.json"]), json.loads(files["environment.json"])
    if not isinstance(body, dict) or set(body) != KEYS or not isinstance(environment, dict):
        raise ValueError("its translation.json is not a translation")
    sides = body["hypotheses"], body["references"]
    if any(not isinstance(side, list) or any(not isinstance(line, str) for line in side) for side in sides):
        raise ValueError("its sentences are not strings")
    if len(sides[0]) != len(sides[1]) or not sides[0]:
        raise ValueError("its two sides differ in length, or are empty")
    if body["tokenize"] not in TOKENIZERS or not isinstance(body["signature"], str) or len(body["signature"]) > 200:
        raise ValueError("its BLEU has no signature")
    numbers = body["bleu"], body["length_ratio"]
    if any(type(n) not in (int, float) or not math.isfinite(n) or n < 0 for n in numbers):
        raise ValueError("its BLEU is not a number")
    check_name(path, spec.translation_id)
    score = Score(bleu=float(numbers[0]), signature=body["signature"], length_ratio=float(numbers[1]))
    return Translation(spec, tuple(sides[0]), tuple(sides[1]), body["tokenize"], score, environment)


def to_files(translation: Translation) -> dict[str, bytes]:
    """The bytes of a translation's files, by name."""
    body = {
        "hypotheses": translation.hypotheses,
        "references": translation.references,
        "tokenize": translation.tokenize,
        "bleu": translation.score.bleu,
        "signature": translation.score.signature,
        "length_ratio": translation.score.length_ratio,
    }
    return {
        "spec.json": folder.to_json(translation.spec.stored()),
        "translation.json": folder.to_json(body),
        "environment.json": folder.to_json(dict(translation.environment)),
    }


TRANSLATION = FolderKind(
    folder="translations", noun="a translation", files=FILES, version=TRANSLATION_VERSION, parse=parse
)


def of_run(run: Run) -> tuple[Translation, ...]:
    """What a run made of the held-out sentences, a search each: every sound translation by its weights."""
    shelf, translations = Shelf(TRANSLATION, run.path.parent.parent), []
    for name in shelf.ids(f"{run.run_id}-beam"):
        try:
            translation = shelf.load(name)
        except StoreError:  # `runs verify` reports it; the command that needs it translates again
            continue
        if translation.spec.digest == run.digest:
            translations.append(translation)
    return tuple(translations)
