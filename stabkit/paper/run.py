"""Items run one after the other within a budget, the page rewritten after each.

Everything that an item leaves is in the store before the next begins, so that a command that was interrupted goes on
where it stopped, and the page can be rewritten at any time.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from stabkit import words
from stabkit.errors import StabkitError
from stabkit.paper import plan as plans
from stabkit.paper.item import Item
from stabkit.paper.items import ITEMS
from stabkit.paper.part import Part
from stabkit.paper.plan import Asked, Piece, Step
from stabkit.results import surface
from stabkit.results.run import Run
from stabkit.results.surface import Surface
from stabkit.running import cost, execute
from stabkit.spec import RunSpec
from stabkit.storage.shelf import Shelf
from stabkit.storage.store import Store
from stabkit.storage.surfaces import SURFACE


class ItemListener(execute.Listener, Protocol):
    """Who is told which item is running."""

    def begins(self, item: Item) -> None:
        """Its first command is about to run."""

    def stopped(self, item: Item, why: StabkitError) -> None:
        """It was not run to its end."""


def run_all(
    steps: Sequence[Step],
    asked: Mapping[str, tuple[Asked, Part]],
    refused: Sequence[Part],
    store: Store,
    path: Path,
    command: str,
    listener: ItemListener,
    *,
    limit: float | None,
    retry_failed: bool,
) -> tuple[list[Part], list[Step]]:
    """Run the steps that fit; returns all parts, the refused among them, and the steps that the budget left out.

    An item that no longer fits, by how long the runs so far really took, is left out too; the first is always run.
    """
    begin = time.monotonic()
    parts, beyond = list(refused), [step for step in steps if not step.fits]
    pending = [step for step in steps if step.fits]
    while pending:
        step = pending.pop(0)
        left = None if limit is None else limit - (time.monotonic() - begin)
        if len(parts) > len(refused) and left is not None:
            pace = cost.pace([one for part in parts for one in part.runs])
            if plans.seconds(step.asked, stored_pieces(store, asked.values()), pace) > left:
                beyond.append(step)
                continue
        listener.begins(step.asked.item)
        parts.append(run_one(step.asked, asked[step.asked.item.key][1], store, listener, retry_failed=retry_failed))
        write_page(parts, [*pending, *beyond], path, command)  # whole at any moment, should this be the last
    write_page(parts, beyond, path, command)
    return parts, beyond


def stored_pieces(store: Store, asked: Iterable[tuple[Asked, Part]]) -> set[Piece]:
    """What the store has of these items' work: runs by their ids; surfaces, whose ids are known only when their runs
    are there, by how these begin."""
    runs, surfaces = set(store.ids()), Shelf(SURFACE, store.out).ids()

    def there(piece: Piece) -> bool:
        if piece.kind == "run":
            return piece.run in runs
        return any(name.startswith(surface.prefix(piece.run)) for name in surfaces)

    return {piece for request, _ in asked for piece in request.work if there(piece)}


def run_one(asked: Asked, part: Part, store: Store, listener: ItemListener, *, retry_failed: bool) -> Part:
    """Run an item's commands; what one leaves the others do not train again. What goes wrong ends the item alone."""
    runs: dict[str, Run] = {}
    failed: list[tuple[RunSpec, str]] = []
    surfaces: list[Surface] = []
    stopped = ""
    for request in asked.requests:
        try:
            done = execute.run(request, store, listener, retry_failed=retry_failed)
        except StabkitError as error:
            listener.stopped(asked.item, error)
            stopped = str(error)
            break
        runs |= {one.run_id: one for one in done.runs}
        failed += done.failed
        surfaces += done.surfaces
    return dataclasses.replace(
        part, runs=tuple(runs.values()), failed=tuple(failed), surfaces=tuple(surfaces), stopped=stopped
    )


def write_page(parts: Sequence[Part], beyond: Sequence[Step], path: Path, command: str) -> None:
    """The page of all parts, and where it is an index theirs."""
    from stabkit.paper.page import write  # matplotlib

    ordered = sorted(parts, key=lambda part: ITEMS.index(part.item))
    left = [(step.asked.item, words.duration(step.seconds)) for step in beyond]
    write(ordered, left, path, command)
