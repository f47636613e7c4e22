"""The page of runs, as a command writes it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from stabkit.claims import Finding
from stabkit.report import html
from stabkit.report.summary import summarise
from stabkit.results.run import Run
from stabkit.results.surface import Surface
from stabkit.spec import RunSpec


def render(
    runs: Sequence[Run],
    *,
    command: str,
    failed: Sequence[tuple[RunSpec, str]] = (),
    surfaces: Sequence[Surface] = (),
    claims: Sequence[Finding] | None = None,
    title: str = "",
) -> str:
    """Of these runs and surfaces, and of those without a result; with these claims instead of the runs' own."""
    summary = summarise(runs, failed, surfaces)
    summary = summary if claims is None else replace(summary, claims=tuple(claims))
    return html.render(summary, command=command, title=title)
