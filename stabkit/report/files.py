"""The files that a command leaves beside its runs: its page, and every figure for those who ask for them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from stabkit.results.run import Run
from stabkit.spec import RunSpec
from stabkit.storage.folder import write_file

if TYPE_CHECKING:
    from stabkit.report.summary import Summary
    from stabkit.results.surface import Surface


MOST_DEPTHS, MOST_METHODS = 4, 3
"""That a page's name holds."""


def page_name(command: str, specs: Sequence[RunSpec], surfaces: Sequence[Surface] = ()) -> str:
    """`sweep-6L-18L-post-ln-deepnorm-1f3a.html`: a command's page by its grid; the digits tell apart what else differs
    in its runs and surfaces."""
    deep = sorted(specs, key=lambda spec: spec.model.encoder_layers + spec.model.decoder_layers)
    depths = list(dict.fromkeys(_depth(spec) for spec in deep))
    methods = list(dict.fromkeys(spec.method for spec in specs))
    if len(depths) > MOST_DEPTHS:
        depths = [depths[0], "to", depths[-1]]
    grid = [*depths, *(methods if len(methods) <= MOST_METHODS else [f"{len(methods)}-methods"])]
    names = [*(spec.run_id for spec in specs), *sorted(surface.surface_id for surface in surfaces)]
    digits = hashlib.sha256("\n".join(names).encode()).hexdigest()[:4]
    return "-".join([command, *(re.sub(r"[^A-Za-z0-9]+", "-", word) for word in grid), digits]) + ".html"


def _depth(spec: RunSpec) -> str:
    """`18L` of equal stacks, else both."""
    n, m = spec.model.encoder_layers, spec.model.decoder_layers
    return f"{n}L" if n == m else spec.depth


def write_page(summary: Summary, path: Path, command: str, *, all_figures: bool = True) -> Path:
    """Render a page into a file, replaced whole."""
    from stabkit.report.html import render

    write_file(path, render(summary, command=command, all_figures=all_figures).encode())
    return path


def write_pictures(runs: Sequence[Run], folder: Path) -> int:
    """Every figure of which these runs have anything as NAME.svg, .png, .pdf and .csv; returns how many."""
    import numpy as np

    from stabkit.figures.catalogue import FIGURES
    from stabkit.figures.drawing import svg
    from stabkit.figures.probes import recorded
    from stabkit.report import order

    figures = [*FIGURES, *recorded.of_runs(runs)]
    count = 0
    for figure in figures:
        with np.errstate(all="ignore"):  # as on the page
            frame = figure.select(order.source(figure, runs))
            if frame.empty:
                continue
            drawn = figure.drawn(frame)
        count += 1
        for kind in ("svg", "png", "pdf"):
            svg.save(drawn, folder / f"{figure.name}.{kind}")
        write_file(folder / f"{figure.name}.csv", frame.to_csv(index=False).encode())
    return count
