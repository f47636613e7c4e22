"""The page of the table of 2026."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from stabkit.paper.studies.study import Study


def write(study: Study, path: Path, command: str) -> dict[str, Any]:
    """Write the page; returns what it says, for `--json` and the terminal."""
    return {"answer": f"{len(study.rows)} runs are in, {len(study.missing)} are next."}
