"""What one row of the table of curves holds, and the picture that a row makes.

A row holds its texts, what a run contributes to the frame, and how the frame is drawn: as `drawing/curves.py` draws,
small multiples of lines or marks. Rows stand in the folder of their subject: `chain/step_curves.py`,
`chain/layer_curves.py`, `ablation/curves.py`, `depth/curves.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from stabkit.figures.drawing import curves, style
from stabkit.figures.drawing.curves import Curves
from stabkit.figures.picture import Picture, RunPicture
from stabkit.results.conditions import FACTS, Shown, shown
from stabkit.results.once import once
from stabkit.results.run import Run

Rows = Iterable[dict[str, Any]]


def curves_of(
    *,
    columns: tuple[str, ...],
    rows: Callable[[Shown], Rows] = lambda placed: (),
    frame: Callable[[Sequence[Run]], pd.DataFrame] | None = None,
    title: Callable[[Sequence[Run], pd.DataFrame], str],
    what: Callable[[pd.DataFrame], Curves],
    of: Callable[[Sequence[Run]], Sequence[Run]] = lambda runs: runs,
    ordered: Callable[[pd.DataFrame], pd.DataFrame] = curves.by_depth,
    arranged: Callable[[pd.DataFrame], pd.DataFrame] = lambda frame: frame,
    too_short: Callable[[pd.DataFrame], str] = lambda frame: "",
    **texts: Any,
) -> RunPicture:
    """A picture of curves, with these other fields of a Picture. Its frame is that of `frame`, with these `columns`;
    without one it has FACTS and `columns`, filled by the `rows` of each run `of` those there are, and is `ordered`. It
    is drawn as `arranged`, unless it is `too_short` for a curve."""

    @once
    def select(runs: Sequence[Run]) -> pd.DataFrame:
        if frame is not None:
            return frame(runs)
        table = [{**placed.facts(), **row} for placed in shown(of(runs)) for row in rows(placed)]
        return ordered(pd.DataFrame(table, columns=[*FACTS, *columns]))

    def draw(drawn: pd.DataFrame) -> Figure | None:
        if reason := too_short(drawn):
            return style.empty(reason)
        return curves.draw(arranged(drawn), what(drawn))

    return Picture(
        columns=columns if frame else (*FACTS, *columns),
        select=select,
        draw=draw,
        title=lambda runs: title(runs, select(runs)),
        **texts,
    )


by_step = partial(Curves, x="step", x_name="step", x_note=" (updates done)")
