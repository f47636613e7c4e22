"""What a probe found in a user's model, and what it noticed on the way."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import TypedDict

from stabkit.results.own.cell import Facts, ModelCell, sublayer_counts
from stabkit.words import listed, plain


class FoundJson(TypedDict):
    """What was found at one depth, in words."""

    depth: str
    model: str
    parameters: str
    stacks: str
    found: str
    kinds: str
    span: str


def anatomy(cells: Sequence[ModelCell]) -> list[FoundJson]:
    """What was found at each depth: stacks, sub-layers by kind."""
    rows: dict[int | None, FoundJson] = {}
    for cell in cells:
        row: FoundJson = {
            "depth": str(cell.facts.depth or "–"),
            "model": plain(cell.facts.model),
            "parameters": f"{cell.facts.parameters:,}",
            "stacks": ", ".join(cell.stacks),
            "found": plain(cell.facts.how),
            "kinds": kinds(cell.facts),
            "span": plain(f"{cell.facts.sublayers[0].both_names} … {cell.facts.sublayers[-1].both_names}"),
        }
        rows.setdefault(cell.facts.depth, row)
    return list(rows.values())


def kinds(facts: Facts) -> str:
    """`6 self, 6 ffn`."""
    return listed(*(f"{count} {kind}" for kind, count in Counter(one.kind for one in facts.sublayers).items()))


def notes(cells: Sequence[ModelCell]) -> list[str]:
    """What was found on the way, each once."""
    notes: dict[str, str] = {}
    for cell in reversed(cells):  # of notes that differ in their numbers alone that of the deepest
        for note in cell.facts.notes:
            notes.setdefault(re.sub(r"\d+", "", note), plain(note))
    batches = {(cell.facts.seed, cell.facts.batch) for cell in cells}
    if len(batches) > len({seed for seed, _ in batches}):
        notes["batch"] = (
            "the batch differs between depths of one seed: draw it before the model is built, "
            "or from its own random generator"
        )
    return [*notes.values(), *filter(None, [uneven(cells)])]


def uneven(cells: Sequence[ModelCell]) -> str:
    """How many sub-layers each depth has, where they do not follow it in a line; "" where they do."""
    pairs = sublayer_counts(cells)
    if len(pairs) < 3:
        return ""
    (a, few), (b, many) = pairs[0], pairs[-1]
    off = any(abs(n - few - (many - few) / (b - a) * (depth - a)) > 0.5 for depth, n in pairs)
    counts = ", ".join(f"{n} at {depth}" for depth, n in pairs)
    return f"the number of sub-layers is not linear in the depth: {counts}" if off else ""
