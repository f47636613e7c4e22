"""What the study's rows say, with its n: the same for the page and the terminal."""

from __future__ import annotations

import math
from collections.abc import Sequence

from stabkit.claims.evidence import MARGIN
from stabkit.words import several, short
from studies.numbers import with_interval, with_sign
from studies.recent.design import OPTIMIZERS, SEEDED, STARTS
from studies.recent.table import RecentCell, RecentTable
from studies.rows import OPTIMIZERS as NAMES
from studies.rungs import written

MHC = "mhc"
ALIKE = 0.7
"""Rank correlation from which on two orders are called nearly one."""


def lowest(cells: Sequence[RecentCell]) -> list[RecentCell]:
    """Those within MARGIN of the lowest loss, lowest first."""
    ordered = sorted(((cell.best.loss, cell) for cell in cells if cell.best), key=lambda pair: pair[0])
    return [cell for loss, cell in ordered if loss <= ordered[0][0] + MARGIN]


def deepest(table: RecentTable) -> int | None:
    """The greatest depth at which both optimisers' searches are over."""
    whole = [n for n in table.depths if all(table.of(optimizer, n) for optimizer in OPTIMIZERS)]
    return max(whole, default=None)


def answer(table: RecentTable) -> str:
    """The page's first sentence: whether the optimisers order the methods alike."""
    depth = deepest(table)
    found = None if depth is None else table.correlation(depth)
    if depth is None or found is None:
        return "No depth is searched through under both optimisers yet."
    rho, count = found
    verdict = "nearly the same" if rho >= ALIKE else "not the same"
    parts = []
    for optimizer in OPTIMIZERS:
        best = [cell.label for cell in lowest(table.of(optimizer, depth))]
        verb = "has" if len(best) == 1 else "have"
        parts.append(f"under {NAMES[optimizer]} {several(best, len(table.variants))} {verb} the lowest loss")
    return (
        f"At {depth} layers, each method at its own best rate, the order under Muon is {verdict} as under AdamW (rank "
        f"correlation {with_sign(rho)}, {count} methods, one seed): {'; '.join(parts)}."
    )


def paragraphs(table: RecentTable) -> list[str]:
    """What follows."""
    return [text for text in (*orders(table), *shown(table), *starts(table), gains(table), *without(table)) if text]


def without(table: RecentTable) -> list[str]:
    """Where no rate tried has a loss."""
    cells = [cell for optimizer in OPTIMIZERS for depth in table.depths for cell in table.lost(optimizer, depth)]
    names = [f"{cell.label} ({NAMES[cell.optimizer]}, {cell.depth} layers)" for cell in cells]
    return [f"No rate tried has a loss: {', '.join(names)}."] if names else []


def orders(table: RecentTable) -> list[str]:
    """The rank correlation at every depth that is whole."""
    found = {n: table.correlation(n) for n in table.depths}
    told = [f"{with_sign(pair[0])} at {n} layers" for n, pair in found.items() if pair]
    return [f"Rank correlation of the two orders: {', '.join(told)}."] if len(told) > 1 else []


def shown(table: RecentTable) -> list[str]:
    """Whose loss is shown to be below Pre-LN's, by the seeds that chose no rate."""
    told = []
    for depth in SEEDED:
        for optimizer in OPTIMIZERS:
            cells = [
                cell for cell in table.of(optimizer, depth, whole=False) if cell.less and not math.isnan(cell.less.high)
            ]
            if not cells:
                continue
            below = [cell.label for cell in cells if cell.less and cell.less.high <= -MARGIN]
            names = several(below, len(cells)) if below else f"none of {len(cells)}"
            told.append(f"under {NAMES[optimizer]} at {depth} layers {names}")
    if not told:
        return []
    return [f"Shown to lose less than Pre-LN by {MARGIN:g} nats and more (three seeds, 95 %): {'; '.join(told)}."]


def starts(table: RecentTable) -> list[str]:
    """mHC's three starts beside each other, by the seeds; what they cannot say."""
    told = []
    for optimizer in OPTIMIZERS:
        for depth in SEEDED:
            cells = [cell for cell in table.of(optimizer, depth, whole=False) if cell.variant in (MHC, *STARTS)]
            if len(cells) == 1 + len(STARTS) and all(cell.loss and not math.isnan(cell.loss.high) for cell in cells):
                parts = [
                    f"{_start(cell)} {with_interval(cell.loss, 3)} at {written(cell.best.rate)}"
                    for cell in cells
                    if cell.best
                ]
                told.append(f"under {NAMES[optimizer]} at {depth} layers {', '.join(parts)}")
    more = (
        " What these runs cannot say: whether a start that is behind after so few updates is behind in the end; and "
        "how mHC does where its map, here a third of the model, is a small part of it."
    )
    return [f"mHC by its start (three seeds, 95 %): {'; '.join(told)}.{more}"] if told else []


def _start(cell: RecentCell) -> str:
    return cell.variant.partition("=")[2] or "uniform"


def gains(table: RecentTable) -> str:
    """The largest gain of the mixings at the best rates."""
    found: dict[str, RecentCell] = {}
    for cell in table.cells:
        if cell.mixing != 1.0 and (cell.label not in found or cell.mixing > found[cell.label].mixing):
            found[cell.label] = cell
    told = [
        f"{label} {short(cell.mixing, 3)} ({NAMES[cell.optimizer]}, {cell.depth} layers)"
        for label, cell in found.items()
    ]
    return f"The largest gain of the product of mixings, at the best rates: {', '.join(told)}." if told else ""
