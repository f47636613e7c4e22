"""What the pages of studies in `docs/` are written of: tables in Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from stabkit.claims.base import Finding


def table_lines(heads: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
    """The lines of a table."""
    return [
        f"| {' | '.join(heads)} |",
        "|" + "---|" * len(heads),
        *(f"| {' | '.join(map(str, row))} |" for row in rows),
    ]


def finding_lines(findings: Sequence[Finding]) -> list[str]:
    """The lines of a table of findings: verdict, sentence with its source, what was measured."""
    said = [(f.verdict, f"{f.claim.sentence} ({f.claim.source})", _measured(f)) for f in findings]
    return table_lines(("verdict", "the paper says", "measured"), said)


def _measured(finding: Finding) -> str:
    text = " ".join(filter(None, (finding.measured, f"({finding.reason})" if finding.reason else "")))
    return text.replace("|", "\\|")
