"""The sentences on the page of recent methods: the same for HTML, Markdown and JSON."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from scipy.stats import spearmanr

from stabkit import methods
from stabkit.claims.evidence import MARGIN, NEARLY
from stabkit.figures.shared.words import percent, several, short
from studies.forecast.heldout_methods import TRUSTED, HeldOutRuns
from studies.ladder import written
from studies.rows import StudyRow
from studies.today.design import DEEP, RATE
from studies.today.page_tables import lowest_words, with_sign
from studies.today.table import REFERENCE, MethodCell, MethodTable, Number

ALIKE = 0.7
"""Rank correlation from which on two orders are called nearly one."""


def answer(table: MethodTable) -> str:
    """The page's first sentence: which methods do not train at the table's rate at the greatest depth, and which have
    the lowest loss at the greatest depth that was searched, each at its own best rate."""
    ran, tuned = (
        {block: cells for block in table.blocks if (cells := table.deepest(block, has))}
        for has in (lambda cell: cell.outcomes, lambda cell: cell.best and cell.best.known)
    )
    if not ran or not tuned:
        return "No search is through yet."
    fates: dict[tuple[int, str], list[str]] = {}
    for block, cells in ran.items():
        lost, n = [cell.label for cell in cells if not cell.trains], len(cells)
        verb = f"do{'es' * (len(lost) == 1)} not train and the other {n - len(lost)} of {n} do"
        words = f"{several(lost, n)} {verb}" if lost else f"all {n} methods train"
        fates.setdefault((cells[0].depth, words), []).append(block)
    parts = [f"at {n} layers and {written(RATE)} {words}, {_where(some, ran)}" for (n, words), some in fates.items()]
    least: dict[tuple[int, str], list[str]] = {}
    for block, cells in tuned.items():
        top = [cell.label for cell in lowest(cells)]
        words = f"{several(top, len(cells))} lose{'s' * (len(top) == 1)} least"
        least.setdefault((cells[0].depth, words), []).append(block)
    for n in dict.fromkeys(depth for depth, _ in least):
        who = [f"{words} {_where(some, tuned)}" for (depth, words), some in least.items() if depth == n]
        parts.append(f"at {n} layers, each at its own best rate, {', '.join(who)}")
    words = "; ".join(parts)
    return f"{words[:1].upper()}{words[1:]} (one seed)."


def lowest(cells: Sequence[MethodCell]) -> list[MethodCell]:
    """Those whose loss at their own best rate lies within MARGIN of the lowest, lowest first."""
    known = sorted(((cell.best.loss, cell) for cell in cells if cell.best), key=lambda pair: pair[0])
    return [cell for loss, cell in known if loss <= known[0][0] + MARGIN]


def _where(some: Sequence[str], every: Collection[str]) -> str:
    """`in the llama block`; `in both blocks` of two."""
    return "in both blocks" if len(some) == len(every) == 2 else f"in the {' and '.join(some)} block"


def block_sentences(table: MethodTable) -> list[str]:
    """Block by block: the losses at the best rate, whether the table's rate orders the methods likewise, and whose
    loss at that rate is shown to be below Pre-LN's."""
    sentences = []
    for block in table.blocks:
        tuned = table.deepest(block, lambda cell: cell.best and cell.best.known)
        if not tuned:
            continue
        rates = {cell.method: f"{cell.label} ({lowest_words(cell)})" for cell in tuned}
        top = [rates[cell.method] for cell in lowest(tuned)]
        more = "" if REFERENCE in [cell.method for cell in lowest(tuned)] else f", more by {rates[REFERENCE]}"
        parts = [f"In the {block} block at {tuned[0].depth} layers least is lost by {several(top, len(tuned))}{more}"]
        parts += _order(tuned) + _below_reference(table, block)
        sentences.append("; ".join(parts) + ".")
    return sentences


def _order(cells: Sequence[MethodCell]) -> list[str]:
    """How far the order of the losses at the table's rate is that at the best rates: Spearman's ρ."""
    both = [(cell.best.loss, cell.loss.value) for cell in cells if cell.best and cell.loss]
    if len(both) < len(cells):
        return []
    rho = float(spearmanr(*zip(*both, strict=True)).statistic)
    return [
        f"the order at {written(RATE)} is {'nearly ' if rho >= ALIKE else 'not '}this one "
        f"(rank correlation {with_sign(rho)})"
    ]


def _below_reference(table: MethodTable, block: str) -> list[str]:
    """Whose loss at the table's rate is shown to be below Pre-LN's, by MARGIN and more, at the greatest depth that has
    several seeds."""
    shown = [
        (c, c.difference) for c in table.cells if c.block == block and c.difference and c.difference.high is not None
    ]
    depth = max((cell.depth for cell, _ in shown), default=0)
    here = [(cell, less) for cell, less in shown if cell.depth == depth and cell.method != REFERENCE]
    below = [cell.label for cell, less in here if (less.high or 0) < 0 and less.value <= -MARGIN]
    if not here:
        return []
    who = several(below, len(here)) if below else "no method"
    return [
        f"at {depth} layers and {written(RATE)} {who} {'are' if len(below) > 1 else 'is'} shown to be below Pre-LN by "
        f"{MARGIN:g} nats and more"
    ]


def depth_sentence(table: MethodTable) -> str:
    """Whose ‖ΔF‖ is shown to keep its size over depth, block by block, of those that are not saturated; nothing of a
    block whose deepest runs are not all in."""
    parts = []
    for block in table.blocks:
        if not any(cell.depth == DEEP[-1] for cell in table.deepest(block, lambda cell: cell.outcomes)):
            continue
        grows = {key: table.exponents[block, key] for key in table.keys if (block, key) not in table.saturated}
        flat = [methods.label(key, {}) for key, number in grows.items() if _flat(number)]
        words = several(flat, len(grows)) if flat else "none"
        parts.append(
            f"in the {block} block {len(table.keys) - len(grows)} of {len(table.keys)} methods’ first update at "
            f"{written(RATE)} saturates; of the others ‖ΔF‖ is shown to keep its size over depth for {words}"
        )
    words = "; ".join(parts)
    return f"{words[:1].upper()}{words[1:]}." if words else ""


def _flat(number: Number) -> bool:
    """Whether the whole interval lies within NEARLY of 0."""
    return None not in (number.low, number.high) and max(abs(number.low or 0), abs(number.high or 0)) <= NEARLY


def forecast_sentences(searched: HeldOutRuns, tabled: HeldOutRuns) -> list[str]:
    """The scores of the forecast on runs of methods and blocks that its fit has not seen."""
    if not searched.rows:
        return ["No run of the search has an outcome yet."]
    near = searched.within
    sentences = [
        f"The forecast as it stood, on the search’s {near.whole.n} runs at rates of its corpus: {_scored(near)}; on "
        f"the {near.part(_unseen).whole.n} of methods that it had never seen {_scored(near.part(_unseen))}"
    ]
    groups = near.of("method").items()
    if alike := [methods.label(key, {}) for key, runs in groups if runs.whole.trained == runs.whole.n]:
        sentences.append(
            f"Every run of {several(alike, len(groups))} at these rates trains: whether a failure of theirs "
            "would be told, they cannot say"
        )
    if tabled.rows:
        sentences.append(
            f"On the table’s {tabled.whole.n} runs, which have other seeds and one rate, {_scored(tabled)}"
        )
    return [f"{text}." for text in sentences]


def _unseen(row: StudyRow) -> bool:
    """Of a method that the corpus lacks."""
    return row.method not in methods.SETS["papers"]


def _scored(runs: HeldOutRuns) -> str:
    low, high = runs.skill_interval
    return (
        f"AUC {short(runs.whole.auc)}, Brier skill {short(runs.whole.skill)} "
        f"(95 % {with_sign(low)} to {with_sign(high)}), "
        f"{percent(runs.whole.accuracy)} of its words right"
    )


def given_sentence(abstains: Sequence[str]) -> str:
    """For which methods the package gives no forecast."""
    if not abstains:
        return ""
    names = several([methods.label(key, {}) for key in abstains], len(methods.KEYS))
    return f"No forecast is given for {names}, where its Brier skill was below {TRUSTED:g}."


def scores(searched: HeldOutRuns, tabled: HeldOutRuns) -> list[tuple[str, HeldOutRuns]]:
    """(whose, runs): of the search at the corpus’ rates, its blocks, its methods, and at all rates; of the table."""
    if not searched.rows or not tabled.rows:
        return []
    near = searched.within
    scored = [("the search, at rates of its corpus", near)]
    scored += [(f"its {block} block", runs) for block, runs in sorted(near.of("block").items())]
    scored += [("its methods that the corpus has", near.part(lambda row: not _unseen(row)))]
    scored += [("its methods that the corpus lacks", near.part(_unseen))]
    by = near.of("method")
    scored += [(methods.label(key, {}), by[key]) for key in methods.KEYS if key in by]
    return [*scored, ("the search, at all rates", searched), (f"the table, at {written(RATE)}", tabled)]
