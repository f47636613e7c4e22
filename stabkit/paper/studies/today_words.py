"""What the page of the table of 2026 says, in sentences: the same for HTML, Markdown and JSON."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from stabkit import methods
from stabkit.claims.evidence import MARGIN
from stabkit.claims.exponents import NEARLY
from stabkit.figures.shared.words import percent, several, short
from stabkit.paper.studies.today import DEEP, RATE
from stabkit.paper.studies.today_tables import lowest_words, with_sign
from stabkit.results.forecast.newcomers import TRUSTED, Newcomers
from stabkit.results.forecast.rows import Row
from stabkit.results.ladder import written
from stabkit.results.today import BESIDE, Cell, Number, Today

ALIKE = 0.7
"""Rank correlation from which on two orders are called nearly one."""


def answer(found: Today) -> str:
    """The page's one sentence: who does not train at the table's rate at the greatest depth, and who loses least at the
    greatest depth that was searched, each at its own best rate."""
    ran, tuned = (
        {block: own for block in found.blocks if (own := found.deepest(block, has))}
        for has in (lambda one: one.outcomes, lambda one: one.best and one.best.known)
    )
    if not ran or not tuned:
        return "No search is through yet."
    fates: dict[tuple[int, str], list[str]] = {}
    for block, own in ran.items():
        lost = [one.label for one in own if not one.trains]
        verb = f"do{'es' * (len(lost) == 1)} not train and the other {len(own) - len(lost)} of {len(own)} do"
        words = f"{several(lost, len(own))} {verb}" if lost else f"all {len(own)} methods train"
        fates.setdefault((own[0].depth, words), []).append(block)
    parts = [f"at {n} layers and {written(RATE)} {words}, {_where(own, ran)}" for (n, words), own in fates.items()]
    least: dict[tuple[int, str], list[str]] = {}
    for block, own in tuned.items():
        top = [one.label for one in lowest(own)]
        words = f"{several(top, len(own))} lose{'s' * (len(top) == 1)} least"
        least.setdefault((own[0].depth, words), []).append(block)
    for n in dict.fromkeys(depth for depth, _ in least):
        who = [f"{words} {_where(own, tuned)}" for (depth, words), own in least.items() if depth == n]
        parts.append(f"at {n} layers, each at its own best rate, {', '.join(who)}")
    words = "; ".join(parts)
    return f"{words[:1].upper()}{words[1:]} (one seed)."


def lowest(cells: Sequence[Cell]) -> list[Cell]:
    """Those whose loss at their own best rate lies within MARGIN of the lowest, lowest first."""
    known = sorted(((one.best.loss, one) for one in cells if one.best), key=lambda pair: pair[0])
    return [one for loss, one in known if loss <= known[0][0] + MARGIN]


def _where(some: Sequence[str], every: Collection[str]) -> str:
    """`in the llama block`; `in both blocks` of two."""
    return "in both blocks" if len(some) == len(every) == 2 else f"in the {' and '.join(some)} block"


def block_sentences(found: Today) -> list[str]:
    """Block by block: what is lost at the best rate, whether the table's rate orders the methods likewise, and whose
    loss at that rate is shown to be below Pre-LN's."""
    said = []
    for block in found.blocks:
        tuned = found.deepest(block, lambda one: one.best and one.best.known)
        if not tuned:
            continue
        rates = {one.method: f"{one.label} ({lowest_words(one)})" for one in tuned}
        top = [rates[one.method] for one in lowest(tuned)]
        beside = "" if BESIDE in [one.method for one in lowest(tuned)] else f", more by {rates[BESIDE]}"
        parts = [f"In the {block} block at {tuned[0].depth} layers least is lost by {several(top, len(tuned))}{beside}"]
        parts += _order(tuned) + _beside(found, block)
        said.append("; ".join(parts) + ".")
    return said


def _order(cells: Sequence[Cell]) -> list[str]:
    """How far the order of the losses at the table's rate is that at the best rates: Spearman's ρ."""
    both = [(one.best.loss, one.loss.value) for one in cells if one.best and one.loss]
    if len(both) < len(cells):
        return []
    ranks = [np.argsort(np.argsort(values)) for values in zip(*both, strict=True)]
    rho = float(np.asarray(np.corrcoef(ranks))[0, 1])
    return [
        f"the order at {written(RATE)} is {'nearly ' if rho >= ALIKE else 'not '}this one "
        f"(rank correlation {with_sign(rho)})"
    ]


def _beside(found: Today, block: str) -> list[str]:
    """Whose loss at the table's rate is shown to be below Pre-LN's, by MARGIN and more, at the greatest depth that has
    several seeds."""
    own = [one for one in found.cells if one.block == block and one.beside and one.beside.high is not None]
    depth = max((one.depth for one in own), default=0)
    here = [one for one in own if one.depth == depth and one.method != BESIDE]
    less = [one.label for one in here if one.beside and (one.beside.high or 0) < 0 and one.beside.value <= -MARGIN]
    if not here:
        return []
    who = several(less, len(here)) if less else "no method"
    return [
        f"at {depth} layers and {written(RATE)} {who} {'are' if len(less) > 1 else 'is'} shown to be below Pre-LN by "
        f"{MARGIN:g} nats and more"
    ]


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


def forecast_sentences(searched: Newcomers, tabled: Newcomers) -> list[str]:
    """How the forecast did on runs that it had never seen the like of."""
    if not searched.rows:
        return ["No run of the search has an outcome yet."]
    near = searched.within
    said = [
        f"The forecast as it stood, on the search’s {near.whole.n} runs at rates of its corpus: {_scored(near)}; on "
        f"the {near.part(_unseen).whole.n} of methods that it had never seen {_scored(near.part(_unseen))}"
    ]
    if alike := [methods.label(key, {}) for key, one in near.of("method").items() if one.whole.trained == one.whole.n]:
        said.append(
            f"Every run of {several(alike, len(near.of('method')))} at these rates trains: whether a failure of theirs "
            "would be told, they cannot say"
        )
    if tabled.rows:
        said.append(f"On the table’s {tabled.whole.n} runs, which have other seeds and one rate, {_scored(tabled)}")
    return [f"{text}." for text in said]


def _unseen(row: Row) -> bool:
    """Of a method that the corpus lacks."""
    return row.method not in methods.SETS["papers"]


def _scored(own: Newcomers) -> str:
    low, high = own.skill_interval
    return (
        f"AUC {short(own.whole.auc)}, Brier skill {short(own.whole.skill)} "
        f"(95 % {with_sign(low)} to {with_sign(high)}), "
        f"{percent(own.whole.accuracy)} of its words right"
    )


def given_sentence(abstains: Sequence[str]) -> str:
    """For which methods the package gives no forecast."""
    if not abstains:
        return ""
    names = several([methods.label(key, {}) for key in abstains], len(methods.KEYS))
    return f"No forecast is given for {names}, where its Brier skill was below {TRUSTED:g}."


def scores(searched: Newcomers, tabled: Newcomers) -> list[tuple[str, Newcomers]]:
    """(whose, runs): of the search at the corpus’ rates, its blocks, its methods, and at all rates; of the table."""
    if not searched.rows or not tabled.rows:
        return []
    near = searched.within
    found = [("the search, at rates of its corpus", near)]
    found += [(f"its {block} block", one) for block, one in sorted(near.of("block").items())]
    found += [("its methods that the corpus has", near.part(lambda row: not _unseen(row)))]
    found += [("its methods that the corpus lacks", near.part(_unseen))]
    by = near.of("method")
    found += [(methods.label(key, {}), by[key]) for key in methods.KEYS if key in by]
    return [*found, ("the search, at all rates", searched), (f"the table, at {written(RATE)}", tabled)]
