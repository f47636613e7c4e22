"""What the page of the table of 2026 says, in sentences and tables: the same for HTML, Markdown and JSON."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

from stabkit import methods
from stabkit.claims.exponents import NEARLY
from stabkit.figures.shared.words import percent, several, short
from stabkit.figures.today.rates import most, searched
from stabkit.figures.today.rates import words as limit_words
from stabkit.paper.studies.today import DEEP, RATE, VERDICT
from stabkit.results.forecast.newcomers import TRUSTED, Newcomers
from stabkit.results.forecast.scores import Scores
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
        block: [_trains(found, block), _well(found, block, cost), _links(found, block)]
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
        f"Who trains at {written(RATE)}, and the highest rate that trains, of which twice does not (one seed; of "
        f"Depth-μP’s rate its layers have √(2/N); {block} block)",
        (*(f"{n} layers" for n in ran), *(f"rate at {n}" for n in searched)),
        _rows(
            found,
            block,
            lambda key, cells: [
                *(fate(cells[n]) if n in cells else "–" for n in ran),
                *(limit_words(cells[n], found) if n in cells else "–" for n in searched),
            ],
        ),
    )


def _well(found: Today, block: str, cost: Costs) -> Table:
    ran = _depths(found, block, lambda one: one.loss)
    return Table(
        f"Validation loss after {VERDICT} updates at {written(RATE)}, and seed by seed less Pre-LN’s, in brackets 95 % "
        f"over seeds; what a step costs at 18 layers, in brackets 95 % over rounds ({block} block)",
        (
            *(f"{n} layers" for n in ran),
            *(f"less Pre-LN’s, {n}" for n in ran),
            "a step, of Pre-LN’s",
        ),
        _rows(
            found,
            block,
            lambda key, cells: [
                *(told(_alone(cells[n].loss), 3) if n in cells else "–" for n in ran),
                *(told(cells[n].beside, signed=True) if n in cells and key != BESIDE else "–" for n in ran),
                told(cost.get((block, key)), 3),
            ],
        ),
    )


def _links(found: Today, block: str) -> Table:
    ran = _depths(found, block, lambda one: one.gradient)
    return Table(
        f"What depth does at {written(RATE)}: exponent of ‖ΔF‖ after update 1 in the depth, in brackets 95 % of its "
        f"line; first over last layer’s gradient and cosine of neighbouring states after {VERDICT} updates, in "
        f"brackets 95 % over seeds ({block} block)",
        ("‖ΔF‖ exponent", *(f"gradient, {n}" for n in ran), *(f"cosine, {n}" for n in ran)),
        _rows(
            found,
            block,
            lambda key, cells: [
                told(found.exponents.get((block, key)), signed=True)
                + (", saturated" if (block, key) in found.saturated else ""),
                *(_floored(cells[n].gradient) if n in cells else "–" for n in ran),
                *(told(cells[n].cosine, 3) if n in cells else "–" for n in ran),
            ],
        ),
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
        return f"{value:+.2f}".replace("-", "−") if signed else short(value, digits)

    if number.low is None or number.high is None:
        return write(number.value)
    return f"{write(number.value)} ({write(number.low)} to {write(number.high)})"


def _floored(number: Number | None) -> str:
    """A gradient ratio; at the floor, where it was cut, `at most 10⁻¹²`."""
    return f"at most {short(LOST, 1)}" if number and number.value <= LOST * 1.001 else told(number)


def _alone(number: Number | None) -> Number | None:
    """Without its interval."""
    return None if number is None else Number(number.value)


def answer(found: Today) -> str:
    """The page's one sentence: who does not train at the table's rate at the greatest depth, and who bears the highest
    rate in every block at the greatest depth that was searched."""
    ran, known = (
        {block: own for block in found.blocks if (own := found.deepest(block, has))}
        for has in (lambda one: one.outcomes, searched)
    )
    if not ran or not known:
        return "No search is through yet."
    lost: dict[tuple[int, str], list[str]] = {}
    for block, own in ran.items():
        names = [one.label for one in own if not one.trains]
        verb = f"do{'es' * (len(names) == 1)} not train and the other {len(own) - len(names)} of {len(own)} do"
        words = f"{several(names, len(own))} {verb}" if names else f"all {len(own)} methods train"
        lost.setdefault((own[0].depth, words), []).append(block)
    parts = [
        f"at {depth} layers and {written(RATE)} {words}, {_where(own, ran)}" for (depth, words), own in lost.items()
    ]
    best = [{one.label for one in most(own, found)} for own in known.values()]
    top = [methods.label(key, {}) for key in found.keys if all(methods.label(key, {}) in own for own in best)]
    if top:
        depth = min(own[0].depth for own in known.values())
        verb = f"bear{'s' * (len(top) == 1)} the highest rate"
        parts.append(f"{several(top, len(found.keys))} {verb} at {depth} layers, {_where(list(known), known)}")
    words = "; ".join(parts)
    return f"{words[:1].upper()}{words[1:]}."


def _where(some: Sequence[str], every: Collection[str]) -> str:
    """`in the llama block`; `in both blocks` of two."""
    return "in both blocks" if len(some) == len(every) == 2 else f"in the {' and '.join(some)} block"


def block_sentences(found: Today) -> list[str]:
    """The same block by block: which rate is borne, and whose loss is shown to be below Pre-LN's."""
    told = []
    for block in found.blocks:
        here = found.deepest(block, searched)
        if not here:
            continue
        top = most(here, found)
        parts = [
            f"In the {block} block at {here[0].depth} layers {several([one.label for one in top], len(here))} "
            f"bear{'s' * (len(top) == 1)} the highest rate, {limit_words(top[0], found)} (one seed)"
        ]
        told.append("; ".join([*parts, *_beside(found, block)]) + ".")
    return told


def _beside(found: Today, block: str) -> list[str]:
    """Whose loss at the table's rate is shown to be below Pre-LN's, at the greatest depth that has several seeds."""
    own = [one for one in found.cells if one.block == block and one.beside and one.beside.high is not None]
    depth = max((one.depth for one in own), default=0)
    here = [one for one in own if one.depth == depth and one.method != BESIDE]
    less = [one.label for one in here if one.beside and (one.beside.high or 0) < 0]
    if not here:
        return []
    who = several(less, len(here)) if less else "no method"
    verb = "are" if len(less) > 1 else "is"
    return [f"at {depth} layers and {written(RATE)} {who} {verb} shown to lose less than Pre-LN"]


def depth_sentence(found: Today) -> str:
    """Whose ‖ΔF‖ is shown to keep its size over depth, block by block, of those that are not saturated; nothing of a
    block whose deepest runs are not all in."""
    told = []
    for block in found.blocks:
        if not any(one.depth == DEEP[-1] for one in found.deepest(block, lambda one: one.outcomes)):
            continue
        own = {key: found.exponents[block, key] for key in found.keys if (block, key) not in found.saturated}
        flat = [methods.label(key, {}) for key, number in own.items() if _flat(number)]
        words = several(flat, len(own)) if flat else "none"
        told.append(
            f"in the {block} block {len(found.keys) - len(own)} of {len(found.keys)} methods’ first update at "
            f"{written(RATE)} saturates; of the others ‖ΔF‖ is shown to keep its size over depth for {words}"
        )
    words = "; ".join(told)
    return f"{words[:1].upper()}{words[1:]}." if words else ""


def _flat(number: Number) -> bool:
    """Whether the whole interval lies within NEARLY of 0."""
    return None not in (number.low, number.high) and max(abs(number.low or 0), abs(number.high or 0)) <= NEARLY


def forecast_sentence(own: Newcomers) -> str:
    """How the forecast did on runs that it had never seen the like of."""
    if not own.rows:
        return "No run of the search has an outcome yet."
    near, far = own.within.whole, own.whole
    words = [
        f"On the search’s {near.n} runs at rates of its corpus the forecast as it stood has an AUC of "
        f"{short(near.auc)} and a Brier skill of {short(near.skill)}, and {percent(near.accuracy)} of its words "
        "are right",
        f"with the rates beyond, which its corpus lacks, these would be {short(far.auc)} and {short(far.skill)}",
    ]
    by = own.within.of("method")
    if alike := [methods.label(key, {}) for key, one in by.items() if one.trained == one.n]:
        words.append(
            f"of {several(alike, len(by))} every run at the corpus’ rates trains: whether a failure of theirs would be "
            "told, these runs cannot say"
        )
    return "; ".join(words) + "."


def given_sentence(abstains: Sequence[str]) -> str:
    """For which methods the package gives no forecast."""
    if not abstains:
        return ""
    names = several([methods.label(key, {}) for key in abstains], len(methods.KEYS))
    return f"No forecast is given for {names}, where its Brier skill was below {TRUSTED:g}."


def scores(own: Newcomers, tabled: Newcomers) -> list[tuple[str, Scores, float]]:
    """(whose, scores, skill): of the search at the corpus’ rates, by block, by method, and at all; of the table."""
    if not own.rows or not tabled.rows:
        return []
    near = own.within
    found = [("rates of its corpus", near.whole)]
    found += [(f"there, the {block} block", one) for block, one in sorted(near.of("block").items())]
    by = near.of("method")
    found += [(f"there, {methods.label(key, {})}", by[key]) for key in methods.KEYS if key in by]
    whole = [("all rates", own.whole), (f"the table’s runs, at {written(RATE)}", tabled.whole)]
    return [(name, one, near.skill(one)) for name, one in found] + [(name, one, one.skill) for name, one in whole]
