"""Three pictures of the study: the losses, both optimisers' losses against each other, the best rates."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from stabkit.figures.drawing import style
from stabkit.figures.picture import Note, Picture
from stabkit.figures.shared.words import short
from studies.ladder import written
from studies.recent import dumbbells
from studies.recent.design import OPTIMIZERS
from studies.recent.sentences import answer, deepest
from studies.recent.table import RecentCell, RecentTable
from studies.rows import OPTIMIZERS as NAMES

COLUMNS = ("run", "panel", "method", "label", "depth", "x", "low", "high", "text")
CAPTION = "Not drawn in the papers: every method under one base initialisation and one data order."


def rows(table: RecentTable, of: Callable[[RecentCell], float], say: Callable[[RecentCell], str]) -> pd.DataFrame:
    """One row a cell whose search is over."""
    held = [
        {
            "run": f"{cell.optimizer} {cell.variant} {cell.depth}",
            "panel": NAMES[cell.optimizer],
            "method": cell.paint,
            "label": cell.label,
            "depth": cell.depth,
            "x": of(cell),
            "low": np.nan,
            "high": np.nan,
            "text": say(cell),
        }
        for name in table.variants
        for cell in table.cells
        if cell.variant == name and cell.known
    ]
    return pd.DataFrame(held, columns=list(COLUMNS))


def best_loss(cell: RecentCell) -> float:
    return cell.best.loss if cell.best else np.nan


def best_rate(cell: RecentCell) -> float:
    return cell.best.rate if cell.best else np.nan


def cell_words(cell: RecentCell) -> str:
    """`5.02 at 4e-3`; `not yet` while the search goes on; `–` where every rate tried diverged."""
    if cell.best is None:
        return "none has a loss" if cell.searched else "not yet"
    return f"{short(cell.best.loss, 3)} at {written(cell.best.rate)}" if cell.searched else "not yet"


def by_depth(
    name: str,
    head: str,
    axis: str,
    see: str,
    of: Callable[[RecentCell], float],
    limits: tuple[float, float],
    ticks: Sequence[float],
) -> Picture[RecentTable]:
    """A panel an optimiser, a row a method, a point a depth."""

    def alt(frame: pd.DataFrame) -> str:
        parts = []
        for (panel, label), some in frame.groupby(["panel", "label"], sort=False):
            parts.append(
                f"{label}, {panel}: " + ", ".join(f"{r['depth']}: {short(r['x'], 3)}" for r in some.to_dict("records"))
            )
        return f"Chart of the {axis} by method, optimiser and depth. {'; '.join(parts)}."

    return Picture(
        name=name,
        short=head,
        caption=CAPTION,
        see=see,
        read=(Note("One seed: of two that lie close together the order may be chance; the tables have more seeds."),),
        columns=COLUMNS,
        value="x",
        select=lambda table: rows(table, of, cell_words),
        draw=lambda frame: dumbbells.draw(frame, axis, limits, ticks, {}),
        title=lambda table: head,
        alt=alt,
    )


LOSSES = by_depth(
    "recent_loss",
    "Loss at the best rate, under AdamW and Muon",
    "lowest validation loss",
    "The lowest validation loss after 250 updates over rates a factor 2 apart, without warm-up.",
    best_loss,
    (4.4, 6.2),
    (4.5, 5, 5.5, 6),
)
RATES = by_depth(
    "recent_rate",
    "The best rate over depth",
    "rate of the lowest loss",
    "Where the points of a row lie apart, a rate that was tuned at one depth is not the best at another.",
    best_rate,
    (2.5e-4, 0.512),
    (1e-3, 1e-2, 0.1),
)

PAIRED = ("run", "method", "label", "depth", "adamw", "muon")


def paired(table: RecentTable) -> pd.DataFrame:
    """One row a method, at the greatest depth that is whole."""
    depth = deepest(table)
    if depth is None:
        return pd.DataFrame(columns=list(PAIRED))
    first, second = ({cell.variant: cell for cell in table.of(optimizer, depth)} for optimizer in OPTIMIZERS)
    held = [
        {
            "run": name,
            "method": first[name].paint,
            "label": first[name].label,
            "depth": depth,
            "adamw": best_loss(first[name]),
            "muon": best_loss(second[name]),
        }
        for name in table.variants
        if name in first and name in second
    ]
    return pd.DataFrame(held, columns=list(PAIRED))


def draw_paired(frame: pd.DataFrame) -> Figure:
    """A mark a method; on the dotted line both lose the same."""
    with style.look():
        if frame.empty:
            return style.empty("No depth is searched through under both optimisers yet.")
        figure, (axes,) = style.panels(1, 1, 4.2)
        low, high = (float(edge(frame[["adamw", "muon"]].to_numpy())) for edge in (np.min, np.max))
        axes.plot([low, high], [low, high], **dumbbells.LINE)
        for row in frame.to_dict("records"):
            (mark,) = axes.plot([row["adamw"]], [row["muon"]], linestyle="", **style.dotted(row["method"]))
            style.mark(mark, row["method"], f"{row['label']}: {row['adamw']:.2f} and {row['muon']:.2f}", x="AdamW")
            axes.annotate(
                row["label"], (row["adamw"], row["muon"]), xytext=(4, 2), textcoords="offset points", fontsize=7
            )
        axes.set_xlabel("validation loss under AdamW")
        axes.set_ylabel("under Muon")
        return figure


ORDERS: Picture[RecentTable] = Picture(
    name="recent_orders",
    short="AdamW against Muon",
    caption=CAPTION,
    see="Each method at its own best rate under either optimiser; below the dotted line Muon loses less.",
    columns=PAIRED,
    value="muon",
    select=paired,
    draw=draw_paired,
    title=answer,
    alt=lambda frame: (
        "Chart of the validation loss under Muon against AdamW. "
        + "; ".join(f"{r['label']}: {r['adamw']:.2f}, {r['muon']:.2f}" for r in frame.to_dict("records"))
    ),
)
FIGURES: tuple[Picture[RecentTable], ...] = (LOSSES, ORDERS, RATES)
