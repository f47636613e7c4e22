"""What an older probe said of the judging part: docs/own_before.csv, a word a row, by a checkout of 6c266e7. The code
that asked it is at commit 686db662 (`studies/own/older.py`)."""

from __future__ import annotations

import csv
from pathlib import Path


def read(path: Path) -> dict[int, str]:
    """{number: word}."""
    with path.open(newline="", encoding="utf-8") as file:
        return {int(own["number"]): own["word"] for own in csv.DictReader(file)}
