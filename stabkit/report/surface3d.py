"""The surfaces that a reader turns: their data, and plotly.js packed once into the page.

plotly.min.js is 4.8 MB; gzipped and in base64 it is 1.9 MB. The page unpacks it when the first surface comes into view,
as an inline script whose hash the page's policy names: nothing is fetched.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from stabkit.figures.shared.surfaces import Landscape
from stabkit.figures.shared.words import listed


@cache
def plotly() -> tuple[str, str]:
    """(plotly.min.js gzipped in base64, the base64 sha256 of its text)."""
    text = (files("plotly") / "package_data" / "plotly.min.js").read_text(encoding="utf-8")
    data = text.encode()
    packed = base64.b64encode(gzip.compress(data, 9, mtime=0)).decode()
    return packed, base64.b64encode(hashlib.sha256(data).digest()).decode()


def rows(drawn: Landscape) -> list[dict[str, Any]]:
    """One row a depth and seed: its surfaces under the papers' ruler, on one scale; `log` where decades matter."""
    by_row: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for seen in drawn.seen():
        spec = seen.surface.spec
        if seen.ruler.papers and min(len(spec.a), len(spec.b)) > 1:
            place = seen.shown.run.spec.depth, seen.shown.run.spec.seed
            by_row.setdefault(place, []).append(
                {
                    "label": seen.shown.label,
                    "method": seen.shown.run.spec.method,
                    "a": [float(f"{value:.6g}") for value in spec.a],
                    "b": [float(f"{value:.6g}") for value in spec.b],
                    "loss": [[_plain(value) for value in row] for row in seen.surface.loss.tolist()],
                }
            )
    many = len({seed for _, seed in by_row}) > 1
    return [
        {"name": listed(depth, f"seed {seed}" if many else ""), "surfaces": own, **_scale(own)}
        for (depth, seed), own in by_row.items()
    ]


def _plain(value: float) -> float | None:
    return float(f"{value:.5g}") if np.isfinite(value) else None


def _scale(surfaces: list[dict[str, Any]]) -> dict[str, Any]:
    """The shared scale of a row: least and greatest loss, and whether it is logarithmic."""
    values = [value for surface in surfaces for row in surface["loss"] for value in row if value is not None]
    low, high = (min(values), max(values)) if values else (0.0, 1.0)
    return {"low": low, "high": high, "log": bool(low > 0 and high / low > 10)}
