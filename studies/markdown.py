"""What the pages of studies in `docs/` are written of: tables in Markdown."""

from __future__ import annotations

from collections.abc import Sequence


def table_lines(heads: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
    """The lines of a table."""
    return [
        f"| {' | '.join(heads)} |",
        "|" + "---|" * len(heads),
        *(f"| {' | '.join(map(str, row))} |" for row in rows),
    ]
