"""Checks that the probed models do differ in depth, before any link is judged."""

from __future__ import annotations

from collections.abc import Sequence

from stabkit.errors import UsageError
from stabkit.results.own.cell import ModelCell


def refuse(cells: Sequence[ModelCell]) -> None:
    """Raises UsageError where nothing is finite before any update, or where depth changes nothing."""
    broken = [cell.facts for cell in cells if cell.facts.broke and not cell.facts.broke.step]
    if cells and len(broken) == len(cells):
        first = broken[0]
        raise UsageError(f"{first.factory}: a number is not finite before any update: {first.broke}")
    pairs = _counts(cells)
    for (shallow, few), (deep, many) in zip(pairs, pairs[1:], strict=False):
        if many <= few:
            raise UsageError(
                f"{cells[0].facts.factory}: at depth {deep} the model has {many} sub-layers, at depth {shallow} {few}; "
                "the factory must build as many layers as it is asked for"
            )


def uneven(cells: Sequence[ModelCell]) -> str:
    """How many sub-layers each depth has, where they do not follow it in a line; "" where they do."""
    pairs = _counts(cells)
    if len(pairs) < 3:
        return ""
    (a, few), (b, many) = pairs[0], pairs[-1]
    off = any(abs(n - few - (many - few) / (b - a) * (depth - a)) > 0.5 for depth, n in pairs)
    return (
        f"the number of sub-layers is not linear in the depth: {', '.join(f'{n} at {depth}' for depth, n in pairs)}"
        if off
        else ""
    )


def _counts(cells: Sequence[ModelCell]) -> list[tuple[int, int]]:
    """(depth, sub-layers), the shallowest first."""
    return sorted({c.facts.depth: len(c.facts.sublayers) for c in cells if c.facts.depth is not None}.items())
