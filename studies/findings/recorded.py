"""Findings that rows of earlier studies decide: nothing is trained for them, and what those studies vary is what is
varied here."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from stabkit.results.forecast.logistic import TINY, log
from studies.findings.judges import FindingCell, Word, same_order
from studies.forecast.scores import auc, auc_within, resampled
from studies.recent.design import SEARCHING
from studies.rows import StudyRow, from_csv

DOCS = Path(__file__).parents[2] / "docs"
RESAMPLES = 200
SLOW, FAST = 2e-3, 8e-3
"""Rates at most and at least."""


@cache
def _corpus(name: str) -> tuple[StudyRow, ...]:
    rows = from_csv(DOCS / name)
    return tuple(row for row in rows if row.labelled and not row.warmup)


def _gradient(row: StudyRow) -> float:
    return log(row.measured.gradient_lowest) if row.measured else math.nan


def _update(row: StudyRow) -> float:
    return -log(row.measured.update_first, TINY) if row.measured else math.nan


def _parts(name: str, wanted: Callable[[StudyRow], bool]) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[str]]:
    rows = [row for row in _corpus(name) if wanted(row)]
    return (
        np.array([_gradient(row) for row in rows]),
        np.array([_update(row) for row in rows]),
        np.array([row.trains for row in rows]),
        [row.method for row in rows],
    )


def _over(name: str, wanted: Callable[[StudyRow], bool]) -> FindingCell | str:
    """Over methods: the gradient's AUC less the first update's."""
    gradient, update, label, _ = _parts(name, wanted)
    if label.all() or not label.any():
        return "all of its runs end alike"
    low, high = resampled(len(label), lambda i: auc(gradient[i], label[i]) - auc(update[i], label[i]), RESAMPLES)
    word: Word = "holds" if low > 0 else "falls" if high < 0 else "undecided"
    return FindingCell(
        word, f"gradient {auc(gradient, label):.2f}, first update {auc(update, label):.2f}, {len(label)} runs"
    )


def _within(name: str, wanted: Callable[[StudyRow], bool]) -> FindingCell | str:
    """Within a method: the first update's AUC over pairs of runs of one method, above a guess."""
    gradient, update, label, methods = _parts(name, wanted)
    if math.isnan(auc_within(update, label, methods)):
        return "no method has runs of both outcomes"

    def both(i: NDArray[np.intp]) -> float:
        names = [methods[j] for j in i]
        return min(auc_within(update[i], label[i], names), auc_within(gradient[i], label[i], names))

    low, high = resampled(len(label), both, RESAMPLES)
    word: Word = "holds" if low > 0.5 else "falls" if high < 0.5 else "undecided"
    areas = auc_within(gradient, label, methods), auc_within(update, label, methods)
    return FindingCell(word, f"gradient {areas[0]:.2f}, first update {areas[1]:.2f}")


Where = tuple[str, Callable[[StudyRow], bool]]
"""(a file of rows, which of them)."""
CHOSEN = 10
"""The corpus' slices up to which links were chosen."""
HIGHEST = 0.033
"""The corpus' highest rate, and a tenth more."""
BY_VARIATION: Mapping[str, Where] = {
    "stated": ("forecast.csv", lambda row: row.seed != 0 and row.hidden == 64),
    "seeds": ("forecast.csv", lambda row: row.seed > CHOSEN and row.hidden == 64),
    "lower": ("forecast.csv", lambda row: row.rate <= SLOW and row.hidden == 64),
    "higher": ("forecast.csv", lambda row: row.rate >= FAST and row.hidden == 64),
    "synthetic": ("forecast.csv", lambda row: row.task == "synthetic"),
}
"""Of the corpus; further seeds are those of later slices."""
LEFT = {
    "best": "rates of both outcomes are what it is about",
    "batch": "every run of the corpora has 256 tokens a batch",
    "longer": "runs are trained to a verdict, up to 800 updates",
}
NEWER: Where = ("later.csv", lambda row: row.rate <= HIGHEST)
ADAMW: Where = ("2026.csv", lambda row: row.optimizer == "adamw")
MUON: Where = ("2026.csv", lambda row: row.optimizer == "muon")
Judge = Callable[[str, Callable[[StudyRow], bool]], FindingCell | str]
CellsOf = Callable[[], dict[str, FindingCell | str]]


def _varied(of: Judge) -> CellsOf:
    return lambda: {name: of(*where) for name, where in BY_VARIATION.items()} | LEFT


def _once(of: Judge, where: Where) -> CellsOf:
    return lambda: {"stated": of(*where)}


RECORDED: Mapping[str, CellsOf] = {
    "gradient-over-methods": _varied(_over),
    "gradient-newer-methods": _once(_over, NEWER),
    "gradient-adamw": _once(_over, ADAMW),
    "gradient-muon": _once(_over, MUON),
    "both-within-a-method": _varied(_within),
}
"""{finding: its cells by variation}."""


def _order_by_other_seeds() -> FindingCell | str:
    """At 50 layers, by the three seeds that followed each search."""
    rows = [row for row in from_csv(DOCS / "2026.csv") if row.depth == 50 and row.seed != SEARCHING]
    return same_order(rows) or "too few methods"


FILLED: Mapping[tuple[str, str], Callable[[], FindingCell | str]] = {("order", "seeds"): _order_by_other_seeds}
"""{(finding, variation): what earlier rows say of it}, of findings that are tried by training."""
