"""What the study's rows say, with its n: the same for the page and the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from stabkit.claims.evidence import MARGIN
from stabkit.words import several
from studies.numbers import with_sign
from studies.recent.design import OPTIMIZERS
from studies.recent.table import RecentCell, RecentTable
from studies.rows import OPTIMIZERS as NAMES

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
        parts.append(f" Under {NAMES[optimizer]} {several(best, len(table.variants))} {verb} the lowest loss.")
    return (
        f"At {depth} layers, each method at its own best rate, the order under Muon is {verdict} as under AdamW. The "
        f"rank correlation is {with_sign(rho)} ({count} methods, one seed).{''.join(parts)}"
    )


def paragraphs(table: RecentTable) -> list[str]:
    """What follows: where no rate tried has a loss."""
    cells = [cell for optimizer in OPTIMIZERS for depth in table.depths for cell in table.lost(optimizer, depth)]
    names = [f"{cell.label} ({NAMES[cell.optimizer]}, {cell.depth} layers)" for cell in cells]
    return [f"No rate tried has a loss: {', '.join(names)}."] if names else []
