"""Which rate does each method tolerate, and what does depth take of it? The highest that trains, a row a method."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from stabkit.figures.picture import Note, Picture
from stabkit.figures.shared.words import several
from studies.ladder import written
from studies.today import dumbbells
from studies.today.table import MethodCell, MethodTable

COLUMNS = ("run", "panel", "method", "label", "depth", "x", "passes", "fails", "known", "table", "text")


def select(table: MethodTable) -> pd.DataFrame:
    """One row a cell that was searched."""
    rows = [
        {
            "run": f"{cell.block} {cell.method} {cell.depth}",
            "panel": f"{cell.block} block",
            "method": cell.method,
            "label": cell.label,
            "depth": cell.depth,
            "x": height(cell, table),
            "passes": cell.limit.passes if cell.limit.passes is not None else np.nan,
            "fails": cell.limit.fails if cell.limit.fails is not None else np.nan,
            "known": cell.limit.known,
            "table": table.rate,
            "text": words(cell, table),
        }
        for key in table.keys
        for cell in sorted(table.cells, key=lambda cell: (table.blocks.index(cell.block), cell.depth))
        if cell.method == key and cell.limit is not None
    ]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def height(cell: MethodCell, table: MethodTable) -> float:
    """The highest rate that trains, to order and to draw: 0 where none that was tried does, ∞ where all do; NaN while
    the search goes on."""
    if cell.limit is None or not cell.limit.known:
        return np.nan
    if cell.limit.passes is None:
        return 0.0
    return cell.limit.passes if cell.limit.fails is not None else np.inf


def searched(cell: MethodCell) -> bool:
    """Whether its limit is known."""
    return cell.limit is not None and cell.limit.known


def most(cells: Sequence[MethodCell], table: MethodTable) -> list[MethodCell]:
    """Those that tolerate the highest rate."""
    highest = max(height(cell, table) for cell in cells)
    return [cell for cell in cells if height(cell, table) == highest]


def words(cell: MethodCell, table: MethodTable) -> str:
    """`4e-3`; `none from 2.5e-4 on`; `0.512 or more`; `not yet` while the search goes on."""
    if cell.limit is None:
        return "–"
    if not cell.limit.known:
        return "not yet"
    if cell.limit.passes is None:
        return f"none from {written(table.rungs[0])} on"
    above = cell.limit.fails
    if above is None:
        return f"{written(cell.limit.passes)} or more"
    return written(cell.limit.passes) + (f", {written(above)} undecided" if cell.tried[above][0] == "early" else "")


def title(table: MethodTable) -> str:
    """Which methods tolerate most where it is deepest, block by block."""
    parts = []
    for block in table.blocks:
        here = table.deepest(block, searched)
        if not here:
            continue
        best = most(here, table)
        verb = f"train{'s' * (len(best) == 1)} at the highest rate, {words(best[0], table)}"
        labels = several([cell.label for cell in best], len(here))
        parts.append(f"At {here[0].depth} layers in the {block} block {labels} {verb}")
    return "; ".join(parts[:1] + [text[0].lower() + text[1:] for text in parts[1:]]) or "Rates that train"


def alt(frame: pd.DataFrame) -> str:
    """What the picture shows, for those who do not see it."""
    parts = []
    for (panel, label), rows in frame[frame["x"].notna()].groupby(["panel", "label"], sort=False):
        values = ", ".join(f"{row['depth']}: {row['text']}" for row in rows.to_dict("records"))
        parts.append(f"{label}, {panel}: {values}")
    return f"Chart of the highest rate that trains by method and depth. {'; '.join(parts)}."


def draw(frame: pd.DataFrame) -> Figure:
    """A panel a block."""
    ends = (frame["passes"].min(), frame["fails"].max()) if len(frame) else (1e-3, 1e-1)
    low, high = (float(np.nan_to_num(end, nan=default)) for end, default in zip(ends, (2.5e-4, 0.5), strict=True))
    ticks = [tick for tick in (3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 0.1, 0.3) if low / 2 <= tick <= high * 2]
    lines = dict.fromkeys(frame["table"], "the table’s rate")
    return dumbbells.draw(frame, "highest rate that trains", (low, high), ticks, lines)


PICTURE: Picture[MethodTable] = Picture(
    name="today_rates",
    short="Rates that train",
    caption="Not drawn in the papers: every method under one base initialisation, one data order and one seed.",
    see="The highest rate that trains within some hundred updates without warm-up; twice as much does not.",
    read=(
        Note(
            "A triangle at an edge: the lowest rate tried does not train (left), the highest does (right). Dotted: the "
            "rate of the table. A rate that trains is not yet one that trains well."
        ),
    ),
    columns=COLUMNS,
    value="x",
    select=select,
    draw=draw,
    title=title,
    alt=alt,
)
