"""The tables on the page of recent methods: the same for HTML and Markdown."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from stabkit import methods
from stabkit.figures.shared.words import short
from stabkit.results.profile import LOST
from studies.ladder import written
from studies.today.along import turned
from studies.today.design import LAST, RATE, VERDICT
from studies.today.rates import words as limit_words
from studies.today.table import REFERENCE, MethodCell, MethodTable, Number


@dataclass(frozen=True, slots=True)
class PageTable:
    """One table: (method key, its label, texts) a row."""

    caption: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, str, tuple[str, ...]], ...]


def tables(table: MethodTable, cost: Costs) -> dict[str, list[PageTable]]:
    """{block: its tables}."""
    return {
        block: [
            _best(table, block, cost),
            _trains(table, block),
            _well(table, block),
            _links(table, block),
            _use(table, block),
        ]
        for block in table.blocks
        if any(cell.block == block for cell in table.cells)
    }


def _rows(
    table: MethodTable, block: str, texts: Callable[[str, dict[int, MethodCell]], Sequence[str]]
) -> tuple[tuple[str, str, tuple[str, ...]], ...]:
    rows = ((key, table.of(block, key)) for key in table.keys)
    return tuple((key, methods.label(key, {}), tuple(texts(key, cells))) for key, cells in rows if cells)


def _depths(table: MethodTable, block: str, has: Callable[[MethodCell], Any]) -> list[int]:
    return sorted({cell.depth for cell in table.cells if cell.block == block and has(cell)})


def _trains(table: MethodTable, block: str) -> PageTable:
    ran, searched = (_depths(table, block, has) for has in (lambda cell: cell.outcomes, lambda cell: cell.limit))
    return PageTable(
        f"Who trains at {written(RATE)}; and the highest learning rate that trains within {LAST} updates, of rates a "
        f"factor 2 apart (one seed), with its loss after {VERDICT} in brackets, where the best constant predictor "
        f"loses {short(table.unigram, 3)}. Inside its layers Depth-μP has √(2/N) of it ({block} block)",
        (*(f"{n} layers" for n in ran), *(f"highest rate, {n} layers" for n in searched)),
        _rows(
            table,
            block,
            lambda key, cells: [
                *(fate(cells[n]) if n in cells else "–" for n in ran),
                *(_limit(cells[n], table) if n in cells else "–" for n in searched),
            ],
        ),
    )


def _limit(cell: MethodCell, table: MethodTable) -> str:
    """`0.256 (5.51)`: the highest rate that trains, and what it loses after equal updates."""
    rate = cell.limit.passes if cell.limit and cell.limit.known else None
    loss = cell.tried[rate][1] if rate is not None else math.inf
    return limit_words(cell, table) + (f" ({short(loss, 3)})" if math.isfinite(loss) else "")


def _best(table: MethodTable, block: str, cost: Costs) -> PageTable:
    ran = _depths(table, block, lambda cell: cell.best)
    return PageTable(
        f"Each method at its own best learning rate, of rates a factor 2 apart: its lowest validation loss after "
        f"{VERDICT} updates (one seed); and the time of a step over Pre-LN’s at 18 layers, in brackets 95 % over "
        f"rounds of one machine ({block} block)",
        (*(f"{n} layers" for n in ran), "time of a step ÷ Pre-LN’s"),
        _rows(
            table,
            block,
            lambda key, cells: [
                *(lowest_words(cells[n]) if n in cells else "–" for n in ran),
                with_interval(cost.get((block, key)), 3),
            ],
        ),
    )


def lowest_words(cell: MethodCell) -> str:
    """`4.71 at 8e-3`."""
    if cell.best is None or not cell.best.known:
        return "not yet"
    return f"{short(cell.best.loss, 3)} at {written(cell.best.rate)}"


def _well(table: MethodTable, block: str) -> PageTable:
    ran = _depths(table, block, lambda cell: cell.loss)
    return PageTable(
        f"Validation loss after {VERDICT} updates at {written(RATE)}; then, seed by seed, less Pre-LN’s: below 0 is "
        f"better (in brackets 95 % over seeds; {block} block)",
        tuple(f"{n} layers" for n in ran),
        _rows(table, block, lambda key, cells: [_loss(key, cells[n]) if n in cells else "–" for n in ran]),
    )


def _loss(key: str, cell: MethodCell) -> str:
    """`5.27, −0.04 (−0.06 to −0.01)`."""
    less = "" if key == REFERENCE or cell.difference is None else f", {with_interval(cell.difference, signed=True)}"
    return f"{with_interval(_alone(cell.loss), 3)}{less}"


def _links(table: MethodTable, block: str) -> PageTable:
    ran = _depths(table, block, lambda cell: cell.gradient)
    return PageTable(
        f"What depth does at {written(RATE)}: the exponent in the depth of ‖ΔF‖, how far the first update moves the "
        "last layer’s output (in brackets 95 % of its line; saturated: beyond half of √(2d) at some depth, where it "
        f"can hardly grow and its exponent says nothing); the first over the last layer’s gradient norm after "
        f"{VERDICT} updates (95 % over seeds; {block} block)",
        ("‖ΔF‖ exponent", *(f"gradient, {n} layers" for n in ran)),
        _rows(
            table,
            block,
            lambda key, cells: [
                with_interval(table.exponents.get((block, key)), signed=True)
                + (", saturated" if (block, key) in table.saturated else ""),
                *(_floored(cells[n].gradient) if n in cells else "–" for n in ran),
            ],
        ),
    )


def _use(table: MethodTable, block: str) -> PageTable:
    ran = _depths(table, block, lambda cell: cell.cosine)
    return PageTable(
        f"Is the depth used? 1 − cosine between what enters a layer and what leaves it, mean over layers and tokens, "
        f"after {VERDICT} updates at {written(RATE)} (in brackets 95 % over seeds; {block} block)",
        tuple(f"{n} layers" for n in ran),
        _rows(table, block, lambda key, cells: [with_interval(turned(cells[n])) if n in cells else "–" for n in ran]),
    )


Costs = dict[tuple[str, str], Number]
"""{(block, method): a step's time over Pre-LN's}."""


def fate(cell: MethodCell) -> str:
    """`trains 5/5`; of several outcomes each; of one run the word alone."""
    count = sum(cell.outcomes.values())
    if not count:
        return "–"
    ordered = sorted(cell.outcomes.items(), key=lambda item: -item[1])
    return ", ".join(word if count == 1 else f"{word} {n}/{count}" for word, n in ordered)


def with_interval(number: Number | None, digits: int = 2, *, signed: bool = False) -> str:
    """`0.94 (0.92 to 0.96)`; one seed's number alone; – for none."""
    if number is None:
        return "–"

    def write(value: float) -> str:
        return with_sign(value) if signed else short(value, digits)

    if number.low is None or number.high is None:
        return write(number.value)
    return f"{write(number.value)} ({write(number.low)} to {write(number.high)})"


def with_sign(value: float) -> str:
    """`−0.04`, `+0.10`."""
    return f"{value:+.2f}".replace("-", "−")


def _floored(number: Number | None) -> str:
    """A gradient ratio; at the floor, where it was cut, `at most 10⁻¹²`."""
    return f"at most {short(LOST, 1)}" if number and number.value <= LOST * 1.001 else with_interval(number)


def _alone(number: Number | None) -> Number | None:
    """Without its interval."""
    return None if number is None else Number(number.value)
