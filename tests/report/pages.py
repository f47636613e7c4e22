"""The page of runs, as a command writes it."""

from __future__ import annotations

from collections.abc import Sequence

from stabkit.report import html
from stabkit.report.summary import summarise
from stabkit.spec import RunSpec
from stabkit.storage.store import Run
from stabkit.storage.surfaces import Surface


def render(
    runs: Sequence[Run],
    *,
    command: str,
    failed: Sequence[tuple[RunSpec, str]] = (),
    surfaces: Sequence[Surface] = (),
    title: str = "",
) -> str:
    """Of these runs and surfaces, and of those without a result."""
    return html.render(summarise(runs, failed, surfaces), command=command, title=title)
