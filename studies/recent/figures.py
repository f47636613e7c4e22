"""Three pictures of the study: the losses, both optimisers' losses against each other, the best rates."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from stabkit.figures.drawing import style
from stabkit.figures.picture import Note, Picture
from stabkit.words import short
from studies.numbers import with_sign
from studies.recent import dumbbells
from studies.recent.design import OPTIMIZERS
from studies.recent.sentences import deepest
from studies.recent.table import RecentCell, RecentTable
from studies.rows import OPTIMIZERS as NAMES
from studies.rungs import written

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

PAIRED = ("run", "method", "label", "depth", "optimizer", "rank", "loss")


def paired(table: RecentTable) -> pd.DataFrame:
    """One row a method and optimiser, at the greatest depth that is whole; ranks among methods under both."""
    depth = deepest(table)
    if depth is None:
        return pd.DataFrame(columns=list(PAIRED))
    cells = {optimizer: {cell.variant: cell for cell in table.of(optimizer, depth)} for optimizer in OPTIMIZERS}
    both = [name for name in table.variants if all(name in by for by in cells.values())]
    rows = [
        {
            "run": f"{optimizer} {name}",
            "method": by[name].paint,
            "label": by[name].label,
            "depth": depth,
            "optimizer": NAMES[optimizer],
            "rank": rank,
            "loss": best_loss(by[name]),
        }
        for optimizer, by in cells.items()
        for rank, name in enumerate(sorted(both, key=lambda name: best_loss(by[name])), 1)
    ]
    return pd.DataFrame(rows, columns=list(PAIRED))


def orders_title(table: RecentTable) -> str:
    """The rank correlation at that depth."""
    depth = deepest(table)
    found = None if depth is None else table.correlation(depth)
    return f"At {depth} layers the two orders correlate by {with_sign(found[0])}" if found else "Two orders"


def draw_paired(frame: pd.DataFrame) -> Figure:
    """A line a method from its rank under the one optimiser to that under the other."""
    with style.look():
        if frame.empty:
            return style.empty("No depth is searched through under both optimisers yet.")
        count = int(frame["rank"].max())
        tall = 0.24 * count + 0.5
        figure = Figure(figsize=(style.WIDTH, tall))
        axes = figure.add_axes((0.3, 0.15 / tall, 0.4, (tall - 0.45) / tall))
        first, second = (str(name) for name in dict.fromkeys(frame["optimizer"]))
        for _, rows in frame.groupby("label", sort=False):
            by = {row["optimizer"]: row for row in rows.to_dict("records")}
            left, right = by[first], by[second]
            hue, ranks = style.colour(left["method"]), (left["rank"], right["rank"])
            (line,) = axes.plot([0, 1], ranks, "o-", color=hue, linewidth=1.4, markersize=4, clip_on=False)
            style.mark(line, left["method"], f"{left['label']}: {left['loss']:.2f} and {right['loss']:.2f}", x="side")
            for row, x, side in ((left, -0.04, "right"), (right, 1.04, "left")):
                loss = f"{row['loss']:.2f}"
                text = f"{row['label']}  {loss}" if side == "right" else f"{loss}  {row['label']}"
                axes.annotate(text, (x, row["rank"]), ha=side, va="center", fontsize=8, annotation_clip=False)
        axes.set_ylim(count + 0.5, 0.2)
        axes.set_xlim(0, 1)
        axes.axis("off")
        for x, name in ((0, first), (1, second)):
            axes.annotate(name, (x, 0.1), ha="center", va="bottom", fontsize=9, annotation_clip=False)
        return figure


ORDERS: Picture[RecentTable] = Picture(
    name="recent_orders",
    short="The order under AdamW and under Muon",
    caption=CAPTION,
    see="Each method at its own best rate under either optimiser, the lowest loss on top.",
    columns=PAIRED,
    value="loss",
    select=paired,
    draw=draw_paired,
    title=orders_title,
    alt=lambda frame: (
        "Chart of the methods' ranks by validation loss under both optimisers. "
        + "; ".join(f"{r['optimizer']} {r['rank']}: {r['label']}, {r['loss']:.2f}" for r in frame.to_dict("records"))
    ),
    grid=False,
)
FIGURES: tuple[Picture[RecentTable], ...] = (LOSSES, ORDERS, RATES)
