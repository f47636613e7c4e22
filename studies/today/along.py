"""What depth does to a method: three pictures of a cell's numbers, a row a method; the last two at the table's rate.

least      the loss at the method's own best rate
gradient   the gradient that reaches the first layer, of the last one's
use        1 − cos between neighbouring states: how far a layer turns what it is given
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pandas as pd

from stabkit.figures.picture import Note, Picture
from stabkit.figures.shared.words import short as short_number
from stabkit.results.profile import LOST
from studies.today import dumbbells
from studies.today.table import MethodCell, MethodTable, Number

COLUMNS = ("run", "panel", "method", "label", "depth", "x", "low", "high")


def along_depth(
    *,
    name: str,
    short: str,
    caption: str,
    see: str,
    read: tuple[Note, ...],
    of: Callable[[MethodCell], Number | None],
    axis: str,
    limits: tuple[float, float],
    ticks: Sequence[float],
    lines: Mapping[float, str],
    extreme: str,
    tell: Callable[[float], str] = short_number,
) -> Picture[MethodTable]:
    """One number of the cells as a picture; `extreme` is what the lowest is called: `the least gradient`."""

    def select(table: MethodTable) -> pd.DataFrame:
        """One row a cell that has the number."""
        rows = []
        for key in table.keys:
            for cell in sorted(table.cells, key=lambda cell: (table.blocks.index(cell.block), cell.depth)):
                number = of(cell) if cell.method == key else None
                if number is not None:
                    rows.append(
                        {
                            "run": f"{cell.block} {cell.method} {cell.depth}",
                            "panel": f"{cell.block} block",
                            "method": cell.method,
                            "label": cell.label,
                            "depth": cell.depth,
                            "x": number.value,
                            "low": np.nan if number.low is None else number.low,
                            "high": np.nan if number.high is None else number.high,
                        }
                    )
        return pd.DataFrame(rows, columns=list(COLUMNS))

    def title(table: MethodTable) -> str:
        """Whose is lowest where it is deepest, block by block."""
        held: dict[str, list[str]] = {}
        for block in table.blocks:
            values = [(number.value, cell) for cell in table.deepest(block, of) if (number := of(cell))]
            if values:
                value, lowest = min(values, key=lambda pair: pair[0])
                words = f"at {lowest.depth} layers in the {block} block {tell(value)}"
                held.setdefault(lowest.label, []).append(words)
        parts = [f"{label} has {extreme}: {', '.join(words)}" for label, words in held.items()]
        return "; ".join(parts) or short

    def alt(frame: pd.DataFrame) -> str:
        parts = []
        for (panel, label), rows in frame.groupby(["panel", "label"], sort=False):
            values = ", ".join(f"{row['depth']}: {tell(row['x'])}" for row in rows.to_dict("records"))
            parts.append(f"{label}, {panel}: {values}")
        return f"Chart of the {axis} by method and depth. {'; '.join(parts)}."

    return Picture(
        name=name,
        short=short,
        caption=caption,
        see=see,
        read=read,
        columns=COLUMNS,
        value="x",
        select=select,
        draw=lambda frame: dumbbells.draw(frame, axis, limits, ticks, lines),
        title=title,
        alt=alt,
    )


def turned(cell: MethodCell) -> Number | None:
    """1 − cos, its interval the other way round."""
    if cell.cosine is None:
        return None
    low, high = (None if end is None else 1 - end for end in (cell.cosine.high, cell.cosine.low))
    return Number(1 - cell.cosine.value, low, high)


LEAST = along_depth(
    name="today_loss",
    short="Loss at its own best rate",
    caption="Not drawn in the papers: every method under one base initialisation, one data order and one seed.",
    see=(
        "The lowest validation loss after equal updates over the rates of the search, a factor 2 apart and without "
        "warm-up: what a method gains once its own rate is found."
    ),
    read=(Note("One seed: of two that lie close together the order may be chance."),),
    of=lambda cell: Number(cell.best.loss) if cell.best and cell.best.known else None,
    axis="lowest validation loss",
    limits=(4.6, 6.2),
    ticks=(5, 5.5, 6),
    lines={},
    extreme="the lowest loss",
    tell=lambda value: short_number(value, 3),
)
GRADIENT = along_depth(
    name="today_gradient",
    short="Gradient at the bottom",
    caption="The link of DeepNet §2 that decides, for methods that it does not know.",
    see=(
        "First over last layer’s gradient norm after equal updates at the table’s rate; bars are 95 % over seeds, "
        "where there are several."
    ),
    read=(Note("A triangle at the left edge: less than that."),),
    of=lambda cell: cell.gradient,
    axis="first over last layer’s gradient norm",
    limits=(1e-3, 1e2),
    ticks=(1e-3, 1e-2, 0.1, 1, 10, 100),
    lines={1.0: "even"},
    extreme="the least gradient at the bottom",
    tell=lambda value: f"at most {short_number(LOST, 1)}" if value <= LOST * 1.001 else short_number(value),
)
USE = along_depth(
    name="today_use",
    short="What a layer does",
    caption="Is the depth used? A layer that only passes on what it is given turns it by nothing.",
    see=(
        "1 − cos between what enters a layer and what leaves it, mean over layers and tokens, after equal updates at "
        "the table’s rate; bars are 95 % over seeds, where there are several."
    ),
    read=(
        Note("Whether layers that turn less are worth less, the losses say. Of a run that is stuck it says little."),
    ),
    of=turned,
    axis="1 − cosine of neighbouring states",
    limits=(3e-4, 1.0),
    ticks=(1e-3, 1e-2, 0.1, 1),
    lines={},
    extreme="the layers that do least",
)
