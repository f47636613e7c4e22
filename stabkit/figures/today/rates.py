"""Which rate does each method bear, and what does depth take of it? The highest that trains, a row a method."""

from __future__ import annotations

from collections.abc import Sequence

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
    "an edge: the lowest rate tried does not train (left), the highest does (right). Dotted: the rate of the "
    "table. A rate that trains is not yet one that trains well."
)
COLUMNS = ("run", "panel", "method", "label", "depth", "x", "passes", "fails", "known", "table", "text")


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
            "table": found.rate,
            "text": words(one, found),
        }
        for key in found.keys
        for one in sorted(found.cells, key=lambda one: (found.blocks.index(one.block), one.depth))
        if one.method == key and one.limit is not None
    ]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def height(one: Cell, found: Today) -> float:
    """The highest rate that trains, to order and to draw: 0 where none that was tried does, ∞ where all do; NaN while
    the search goes on."""
    if one.limit is None or not one.limit.known:
        return np.nan
    if one.limit.passes is None:
        return 0.0
    return one.limit.passes if one.limit.fails is not None else np.inf


def searched(one: Cell) -> bool:
    """Whether its limit is known."""
    return one.limit is not None and one.limit.known


def most(cells: Sequence[Cell], found: Today) -> list[Cell]:
    """Those that bear the highest rate."""
    highest = max(height(one, found) for one in cells)
    return [one for one in cells if height(one, found) == highest]


def words(one: Cell, found: Today) -> str:
    """`4e-3`; `none from 2.5e-4 on`; `0.512 or more`; `not yet` while the search goes on."""
    if one.limit is None:
        return "–"
    if not one.limit.known:
        return "not yet"
    if one.limit.passes is None:
        return f"none from {written(found.rungs[0])} on"
    above = one.limit.fails
    if above is None:
        return f"{written(one.limit.passes)} or more"
    return written(one.limit.passes) + (f", {written(above)} undecided" if one.tried[above][0] == "early" else "")


def title(found: Today) -> str:
    """Who bears most where it is deepest, block by block."""
    told = []
    for block in found.blocks:
        here = found.deepest(block, searched)
        if not here:
            continue
        best = most(here, found)
        verb = f"train{'s' * (len(best) == 1)} at the highest rate, {words(best[0], found)}"
        labels = several([one.label for one in best], len(here))
        told.append(f"At {here[0].depth} layers in the {block} block {labels} {verb}")
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
    lines = dict.fromkeys(frame["table"], "the table’s rate")
    return dumbbells.draw(frame, "highest rate that trains", (low, high), ticks, lines)
