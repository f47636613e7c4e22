"""The files that a command leaves beside its runs: its page, and every figure for those who ask for them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from stabkit.spec import RunSpec
from stabkit.storage.folder import write_file
from stabkit.storage.store import Run

if TYPE_CHECKING:
    from stabkit.claims import Finding
    from stabkit.storage.surfaces import Surface


def page_name(specs: Sequence[RunSpec], surfaces: Sequence[Surface] = (), kind: str = "landscape") -> str:
    """The name of a command's page: it belongs to its grid, and to its surfaces where it drew any (`kind`)."""
    names = [*(spec.run_id for spec in specs), *sorted(surface.surface_id for surface in surfaces)]
    return f"{kind if surfaces else 'sweep'}-{hashlib.sha256(chr(10).join(names).encode()).hexdigest()[:8]}.html"


def write_page(
    runs: Sequence[Run],
    failed: Sequence[tuple[RunSpec, str]],
    claimed: Sequence[Finding],
    path: Path,
    command: str,
    surfaces: Sequence[Surface] = (),
) -> Path:
    """Render a page into a file, replaced whole."""
    from stabkit.report.html import render

    page = render(runs, command=command, failed=failed, claimed=claimed, surfaces=surfaces)
    write_file(path, page.encode())
    return path


def write_pictures(runs: Sequence[Run], folder: Path) -> int:
    """Every figure as NAME.svg, .png, .pdf and .csv; returns how many figures."""
    import numpy as np

    from stabkit.figures import FIGURES, Picture
    from stabkit.figures.drawing import svg
    from stabkit.figures.probes import recorded
    from stabkit.report import cards

    figures: list[Picture] = [*FIGURES, *recorded.of_runs(runs)]
    for figure in figures:
        with np.errstate(all="ignore"):  # as on the page
            frame = figure.select(cards.source(figure, runs))
            drawn = figure.draw(frame)
        for kind in ("svg", "png", "pdf"):
            svg.save(drawn, folder / f"{figure.NAME}.{kind}")
        write_file(folder / f"{figure.NAME}.csv", frame.to_csv(index=False).encode())
    return len(figures)
