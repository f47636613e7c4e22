"""The surfaces that a reader turns: their data, and plotly.js packed once into the page.

plotly.min.js is 4.8 MB; gzipped and in base64 it is 1.9 MB. The page unpacks it when a reader wants to turn one,
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
import pandas as pd

from stabkit.figures.shared.surfaces import Landscape
from stabkit.figures.surfaces import landscape, surface3d


@cache
def plotly() -> tuple[str, str]:
    """(plotly.min.js gzipped in base64, the base64 sha256 of its text); ("", "") without the extra `papers`: the
    surfaces are drawn, and do not turn."""
    try:
        text = (files("plotly") / "package_data" / "plotly.min.js").read_text(encoding="utf-8")
    except ModuleNotFoundError:
        return "", ""
    data = text.encode()
    packed = base64.b64encode(gzip.compress(data, 9, mtime=0)).decode()
    return packed, base64.b64encode(hashlib.sha256(data).digest()).decode()


def rows(drawn: Landscape) -> list[dict[str, Any]]:
    """The rows of the picture `surface3d`, in its order: their surfaces on one scale; `log` where decades matter."""
    frame = landscape.select(drawn)
    return [
        {"name": name, "surfaces": own, **_scale(own)}
        for name, group in surface3d.rows(frame)
        for own in ([_surface(str(label), rows) for label, rows in group.groupby("label", sort=False)],)
    ]


def _surface(label: str, rows: pd.DataFrame) -> dict[str, Any]:
    table = landscape.grid(rows)
    return {
        "label": label,
        "a": [float(f"{value:.6g}") for value in table.columns],
        "b": [float(f"{value:.6g}") for value in table.index],
        "loss": [[_plain(value) for value in row] for row in table.to_numpy(float).tolist()],
    }


def _plain(value: float) -> float | None:
    return float(f"{value:.5g}") if np.isfinite(value) else None


def _scale(surfaces: list[dict[str, Any]]) -> dict[str, Any]:
    """The shared scale of a row: least and greatest loss, and whether it is logarithmic."""
    values = [value for surface in surfaces for row in surface["loss"] for value in row if value is not None]
    low, high = (min(values), max(values)) if values else (0.0, 1.0)
    return {"low": low, "high": high, "log": bool(low > 0 and high / low > 10)}
