"""A watch's alarms on the corpus' trainings, by today's limits: what was recorded is read again, row by row.

A training that the design's watch recorded (`--keep`) is not trained again for another limit. The order of the rows is
that of the watch: of a step first what was read of activations, then what an update did, then losses and gradients.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

from stabkit.results.own.alarm import Alarms
from stabkit.results.own.cell import ModelCell
from stabkit.results.records import Table
from stabkit.storage.watched import WatchShelf

ORDER = ("stream", "update", "scores", "attention", "delta", "loss", "gradient")


def recorded(folder: Path) -> ModelCell | None:
    """What the watch of a case recorded; None where it recorded nothing."""
    shelf = WatchShelf(folder)
    ids = shelf.ids()
    return shelf.load(ids[-1]).cell if ids else None


def alarms(cell: ModelCell) -> dict[str, int]:
    """{link: the update of its first warning}."""
    looking = Alarms(cell.facts.sublayers, guess=cell.facts.guess)
    rows = [
        (int(step), ORDER.index(probe), probe, _row(table, i))
        for probe, table in cell.records.items()
        if probe in ORDER
        for i, step in enumerate(table.steps)
    ]
    for step, _, probe, row in sorted(rows, key=lambda one: one[:2]):
        missing = frozenset(name for name, value in row.items() if math.isnan(value)) if probe == "gradient" else ()
        looking.see(probe, step, row, frozenset(missing))
    return {link: alarm.step for link, alarm in looking.raised.items()}


def _row(table: Table, at: int) -> Mapping[str, float]:
    return dict(zip(table.sites, table.values[at].tolist(), strict=True))
