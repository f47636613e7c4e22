"""What the pages of `docs/evidence/` are written of: tables in Markdown, and in CSV beside them."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path


def table_lines(heads: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
    """The lines of a table."""
    return [
        f"| {' | '.join(heads)} |",
        "|" + "---|" * len(heads),
        *(f"| {' | '.join(map(str, row))} |" for row in rows),
    ]


def csv_text(heads: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """The same table as a file."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([heads, *rows])
    return text.getvalue()


def csv_rows(path: Path) -> list[dict[str, str]]:
    """Of such a file."""
    return list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))
