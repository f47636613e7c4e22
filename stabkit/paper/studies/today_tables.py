"""The tables of the page of the table of 2026: the same for HTML and Markdown."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from stabkit import methods
from stabkit.figures.shared.words import short
from stabkit.figures.today.along import turned
from stabkit.figures.today.rates import words as limit_words
from stabkit.paper.studies.today import LAST, RATE, VERDICT
from stabkit.results.ladder import written
from stabkit.results.profile import LOST
from stabkit.results.today import BESIDE, Cell, Number, Today


@dataclass(frozen=True, slots=True)
class Table:
    """One table: (method key, its label, texts) a row."""

    caption: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, str, tuple[str, ...]], ...]


def tables(found: Today, cost: Costs) -> dict[str, list[Table]]:
    """{block: its tables}."""
    return {
        block: [
            _best(found, block, cost),
            _trains(found, block),
            _well(found, block),
            _links(found, block),
            _use(found, block),
        ]
        for block in found.blocks
        if any(one.block == block for one in found.cells)
    }


def _rows(
    found: Today, block: str, texts: Callable[[str, dict[int, Cell]], Sequence[str]]
) -> tuple[tuple[str, str, tuple[str, ...]], ...]:
    own = ((key, found.of(block, key)) for key in found.keys)
    return tuple((key, methods.label(key, {}), tuple(texts(key, cells))) for key, cells in own if cells)


def _depths(found: Today, block: str, has: Callable[[Cell], Any]) -> list[int]:
    return sorted({one.depth for one in found.cells if one.block == block and has(one)})


def _trains(found: Today, block: str) -> Table:
    ran, searched = (_depths(found, block, has) for has in (lambda one: one.outcomes, lambda one: one.limit))
    return Table(
        f"Who trains at {written(RATE)}; and the highest learning rate that trains within {LAST} updates, of rates a "
        f"factor 2 apart (one seed), with its loss after {VERDICT} in brackets, where the best constant predictor "
        f"loses {short(found.unigram, 3)}. Inside its layers Depth-μP has √(2/N) of it ({block} block)",
        (*(f"{n} layers" for n in ran), *(f"highest rate, {n} layers" for n in searched)),
        _rows(
            found,
            block,
            lambda key, cells: [
                *(fate(cells[n]) if n in cells else "–" for n in ran),
                *(_limit(cells[n], found) if n in cells else "–" for n in searched),
            ],
        ),
    )


def _limit(one: Cell, found: Today) -> str:
    """`0.256 (5.51)`: the highest rate that trains, and what it loses after equal updates."""
    rate = one.limit.passes if one.limit and one.limit.known else None
    loss = one.tried[rate][1] if rate is not None else math.inf
    return limit_words(one, found) + (f" ({short(loss, 3)})" if math.isfinite(loss) else "")


def _best(found: Today, block: str, cost: Costs) -> Table:
    ran = _depths(found, block, lambda one: one.best)
    return Table(
        f"Each method at its own best learning rate, of rates a factor 2 apart: its lowest validation loss after "
        f"{VERDICT} updates (one seed); and the time of a step over Pre-LN’s at 18 layers, in brackets 95 % over "
        f"rounds of one machine ({block} block)",
        (*(f"{n} layers" for n in ran), "time of a step ÷ Pre-LN’s"),
        _rows(
            found,
            block,
            lambda key, cells: [
                *(lowest_words(cells[n]) if n in cells else "–" for n in ran),
                told(cost.get((block, key)), 3),
            ],
        ),
    )


def lowest_words(one: Cell) -> str:
    """`4.71 at 8e-3`."""
    if one.best is None or not one.best.known:
        return "not yet"
    return f"{short(one.best.loss, 3)} at {written(one.best.rate)}"


def _well(found: Today, block: str) -> Table:
    ran = _depths(found, block, lambda one: one.loss)
    return Table(
        f"Validation loss after {VERDICT} updates at {written(RATE)}; then, seed by seed, less Pre-LN’s: below 0 is "
        f"better (in brackets 95 % over seeds; {block} block)",
        tuple(f"{n} layers" for n in ran),
        _rows(found, block, lambda key, cells: [_loss(key, cells[n]) if n in cells else "–" for n in ran]),
    )


def _loss(key: str, one: Cell) -> str:
    """`5.27, −0.04 (−0.06 to −0.01)`."""
    less = "" if key == BESIDE or one.beside is None else f", {told(one.beside, signed=True)}"
    return f"{told(_alone(one.loss), 3)}{less}"


def _links(found: Today, block: str) -> Table:
    ran = _depths(found, block, lambda one: one.gradient)
    return Table(
        f"What depth does at {written(RATE)}: the exponent in the depth of ‖ΔF‖, how far the first update moves the "
        "last layer’s output (in brackets 95 % of its line; saturated: beyond half of √(2d) at some depth, where it "
        f"can hardly grow and its exponent says nothing); the first over the last layer’s gradient norm after "
        f"{VERDICT} updates (95 % over seeds; {block} block)",
        ("‖ΔF‖ exponent", *(f"gradient, {n} layers" for n in ran)),
        _rows(
            found,
            block,
            lambda key, cells: [
                told(found.exponents.get((block, key)), signed=True)
                + (", saturated" if (block, key) in found.saturated else ""),
                *(_floored(cells[n].gradient) if n in cells else "–" for n in ran),
            ],
        ),
    )


def _use(found: Today, block: str) -> Table:
    ran = _depths(found, block, lambda one: one.cosine)
    return Table(
        f"Is the depth used? 1 − cosine between what enters a layer and what leaves it, mean over layers and tokens, "
        f"after {VERDICT} updates at {written(RATE)} (in brackets 95 % over seeds; {block} block)",
        tuple(f"{n} layers" for n in ran),
        _rows(found, block, lambda key, cells: [told(turned(cells[n])) if n in cells else "–" for n in ran]),
    )


Costs = dict[tuple[str, str], Number]
"""{(block, method): a step's time over Pre-LN's}."""


def fate(one: Cell) -> str:
    """`trains 5/5`; of several outcomes each; of one run the word alone."""
    count = sum(one.outcomes.values())
    if not count:
        return "–"
    ordered = sorted(one.outcomes.items(), key=lambda item: -item[1])
    return ", ".join(word if count == 1 else f"{word} {n}/{count}" for word, n in ordered)


def told(number: Number | None, digits: int = 2, *, signed: bool = False) -> str:
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
    return f"at most {short(LOST, 1)}" if number and number.value <= LOST * 1.001 else told(number)


def _alone(number: Number | None) -> Number | None:
    """Without its interval."""
    return None if number is None else Number(number.value)
