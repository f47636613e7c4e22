"""The older probe on the judging part: docs/own_before.csv, a word a row, by a checkout of it (`older.py`)."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np

from stabkit.own.probe.learnable import Pictures, Words
from studies.own.corpus import CorpusRow
from studies.own.design import IMAGES, LENGTH, ROWS, Case
from studies.own.training import letters

HERE = Path(__file__).parent
STEP = 1
"""Whose batch it is."""


def read(path: Path) -> dict[int, str]:
    """{number: word}."""
    if not path.exists():
        return {}
    with path.open(newline="", encoding="utf-8") as file:
        return {int(own["number"]): own["word"] for own in csv.DictReader(file)}


def run(path: Path, rows: Sequence[CorpusRow], data: Path, checkout: Path, workers: int) -> None:
    """Every row of the judging part that has no word; a row is written when its word is there."""
    words = read(path)
    wanted = [row.case for row in rows if row.case.judge and row.case.number not in words]
    with tempfile.TemporaryDirectory() as folder:
        jobs = [_job(case, data, Path(folder)) for case in wanted]
        asked = [sys.executable, str(HERE / "older.py"), str(HERE / "models.py"), str(HERE / "steppers.py")]
        started = [
            subprocess.Popen(asked, cwd=checkout, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            for _ in range(workers)
        ]
        for i, process in enumerate(started):
            assert process.stdin is not None
            process.stdin.write("".join(json.dumps(job) + "\n" for job in jobs[i::workers]))
            process.stdin.close()
        for process in started:
            assert process.stdout is not None
            for line in process.stdout:
                said = json.loads(line)
                words[int(said["number"])] = str(said["word"])
                _write(path, words)
            process.wait()


def _write(path: Path, words: Mapping[int, str]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("number", "word"))
        writer.writerows(sorted(words.items()))


def _job(case: Case, data: Path, folder: Path) -> dict[str, object]:
    file = folder / f"{case.number}.npz"
    np.savez(file, **_batch(case, data))  # type: ignore[arg-type]  # numpy types the keywords as bool
    return {"number": case.number, "name": case.name, "shape": asdict(case.shape), "optimizer": case.optimizer,
            "rate": case.rate, "seed": case.seed, "batch": str(file)}  # fmt: skip


def _batch(case: Case, data: Path) -> dict[str, np.ndarray]:
    """`given` to the model and `wanted` of it; which of an encoder's tokens are `hidden`."""
    if case.task == "images":
        images, labels = Pictures(case.shape.words, (3, case.shape.size, case.shape.size), 0).batch(IMAGES, STEP)
        return {"given": images.numpy(), "wanted": labels.numpy()}
    words = Words(case.shape.words, 0)
    tokens = letters(data).batch((ROWS, LENGTH), STEP) if case.task == "text" else words.batch((ROWS, LENGTH), STEP)
    if case.task != "masked":
        return {"given": tokens.numpy(), "wanted": tokens.numpy()}
    hidden = words.hidden(tokens, STEP)
    return {"given": tokens.masked_fill(hidden, words.mask).numpy(), "wanted": tokens[hidden].numpy(),
            "hidden": hidden.numpy()}  # fmt: skip
