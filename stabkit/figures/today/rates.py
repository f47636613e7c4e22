"""Which rate does each method bear, and what does depth take of it? The highest that trains, a row a method."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from stabkit.figures.drawing import dumbbells
from stabkit.figures.shared.words import several
from stabkit.results.ladder import written
from stabkit.results.today import Cell, Today

NAME = "today_rates"
SHORT = "Rates that train"
INDEX: str | None = None
VALUE = "x"
CAPTION = "Not drawn in the papers: every method under one base initialisation, one data order and one seed."
READ = (
    "The highest rate that trains within some hundred updates without warm-up; twice as much does not. A triangle at "
    "an edge: the lowest rate tried does not train (left), the highest does (right). Dotted: the rate of the table."
)
COLUMNS = ("run", "panel", "method", "label", "depth", "x", "passes", "fails", "known", "text")


def select(found: Today) -> pd.DataFrame:
    """One row a cell that was searched."""
    rows = [
        {
            "run": f"{one.block} {one.method} {one.depth}",
            "panel": f"{one.block} block",
            "method": one.method,
            "label": one.label,
            "depth": one.depth,
            "x": height(one, found),
            "passes": one.limit.passes if one.limit.passes is not None else np.nan,
            "fails": one.limit.fails if one.limit.fails is not None else np.nan,
            "known": one.limit.known,
            "text": words(one, found),
        }
        for key in found.keys
        for one in sorted(found.cells, key=lambda one: (found.blocks.index(one.block), one.depth))
        if one.method == key and one.limit is not None
    ]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def height(one: Cell, found: Today) -> float:
    """The highest rate that trains, to order and to draw: below every rung where none does, above where all do; NaN
    while the search goes on."""
    if one.limit is None or not one.limit.known:
        return np.nan
    if one.limit.passes is None:
        return found.rungs[0] / 2
    return one.limit.passes if one.limit.fails is not None else 2 * found.rungs[-1]


def words(one: Cell, found: Today) -> str:
    """`4e-3`; `none from 2.5e-4 on`; `0.512 or more`; `not yet` while the search goes on."""
    if one.limit is None:
        return "–"
    if not one.limit.known:
        return "not yet"
    if one.limit.passes is None:
        return f"none from {written(found.rungs[0])} on"
    return f"{written(one.limit.passes)}{' or more' if one.limit.fails is None else ''}"


def title(found: Today) -> str:
    """Who bears most where it is deepest, block by block."""
    frame = select(found)
    frame = frame[frame["x"].notna()]
    told = []
    for panel, own in frame.groupby("panel", sort=False):
        whole = own.groupby("depth")["label"].count() == len(found.keys)
        if not whole.any():
            continue
        here = own[own["depth"] == whole[whole].index.max()]
        best = list(here.loc[here["x"] == here["x"].max(), "label"])
        most, last = float(here["x"].max()), found.rungs[-1]
        much = f"more than {written(last)}" if most > last else written(most)
        where = f"At {here['depth'].iloc[0]} layers in the {panel}"
        verb = f"bear{'s' * (len(best) == 1)} {'most, ' * (len(here) > 1)}{much}"
        told.append(f"{where} {several(best, len(here))} {verb}")
    return "; ".join(told[:1] + [one[0].lower() + one[1:] for one in told[1:]]) or "Rates that train"


def alt(frame: pd.DataFrame) -> str:
    """What the picture shows, for those who do not see it."""
    parts = []
    for (panel, label), own in frame[frame["x"].notna()].groupby(["panel", "label"], sort=False):
        values = ", ".join(f"{row['depth']}: {row['text']}" for row in own.to_dict("records"))
        parts.append(f"{label}, {panel}: {values}")
    return f"Chart of the highest rate that trains by method and depth. {'; '.join(parts)}."


def draw(frame: pd.DataFrame) -> Figure:
    """A panel a block."""
    ends = (frame["passes"].min(), frame["fails"].max()) if len(frame) else (1e-3, 1e-1)
    low, high = (float(np.nan_to_num(end, nan=default)) for end, default in zip(ends, (2.5e-4, 0.5), strict=True))
    ticks = [tick for tick in (3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 0.1, 0.3) if low / 2 <= tick <= high * 2]
    return dumbbells.draw(frame, "highest rate that trains", (low, high), ticks, {1e-3: "the table’s rate"})
