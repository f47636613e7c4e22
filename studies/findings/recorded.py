"""Findings that rows of earlier studies decide: nothing is trained for them. Their variations are parts of the same
runs, and other studies' runs, which were made for other questions.

A method's runs are not independent, so that intervals come from drawing methods again, not runs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache, cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from stabkit.results.forecast.links import FITTED, RunSetting
from stabkit.results.forecast.logistic import log
from studies.findings.judges import FindingCell, Word, same_order
from studies.forecast.scores import auc, resampled
from studies.numbers import with_sign
from studies.recent.design import SEARCHING
from studies.rows import StudyRow, from_csv

DOCS = Path(__file__).parents[2] / "docs"
RESAMPLES = 200
HARDLY = 0.7
"""The AUC up to which a number hardly separates which methods train."""
SLOW, FAST = 2e-3, 8e-3
"""Rates at most and at least."""
CHOSEN = 10
"""The corpus' slices up to which links were chosen."""
HIGHEST = 0.033
"""The corpus' highest rate, and a tenth more."""
Wanted = Callable[[StudyRow], bool]
Cell = FindingCell | str


@cache
def _labelled(name: str) -> tuple[StudyRow, ...]:
    return tuple(row for row in from_csv(DOCS / name) if row.labelled and not row.warmup)


class _Areas:
    """The areas under the curve of the gradient and of the first update, over some rows."""

    def __init__(self, rows: Sequence[StudyRow]) -> None:
        self.gradient = np.array([_gradient(row) for row in rows])
        self.update = np.array([_update(row) for row in rows])
        self.trains = np.array([row.trains for row in rows])
        self.method = [row.method for row in rows]

    def over(self, i: NDArray[np.intp]) -> tuple[float, float]:
        """Over all pairs of these runs."""
        return auc(self.gradient[i], self.trains[i]), auc(self.update[i], self.trains[i])

    def within(self, methods: NDArray[np.intp]) -> tuple[float, float]:
        """Over pairs of runs of one method, of these methods."""
        pairs, gradient, update = self._pairs[methods].T
        if not pairs.sum():
            return math.nan, math.nan
        return float(gradient @ pairs / pairs.sum()), float(update @ pairs / pairs.sum())

    @cached_property
    def by_method(self) -> list[NDArray[np.intp]]:
        """The runs of each method."""
        return [np.flatnonzero([name == key for name in self.method]) for key in dict.fromkeys(self.method)]

    @cached_property
    def _pairs(self) -> NDArray[np.float64]:
        """(pairs of a run that trains and one that does not, area of the gradient, of the first update) a method."""
        rows = []
        for i in self.by_method:
            good = int(self.trains[i].sum())
            pairs = good * (len(i) - good)
            rows.append((pairs, *self.over(i)) if pairs else (0, 0.0, 0.0))
        return np.array(rows, dtype=float)

    def interval(self, score: Callable[[NDArray[np.intp]], float]) -> tuple[float, float]:
        """95 % over draws of methods, whose numbers `score` takes."""
        return resampled(len(self.by_method), score, RESAMPLES)

    def over_methods(self, methods: NDArray[np.intp]) -> tuple[float, float]:
        """Over all pairs of runs of these methods."""
        return self.over(np.concatenate([self.by_method[k] for k in methods]))

    @property
    def counts(self) -> str:
        """`455 runs of 12 methods, of 9 some fail`."""
        failing = {name for name, trains in zip(self.method, self.trains, strict=True) if not trains}
        return f"{len(self.method)} runs of {len(set(self.method))} methods, of {len(failing)} some fail"


def _gradient(row: StudyRow) -> float:
    """As the forecast reads it."""
    return FITTED[0].of(row.measured, RunSetting(row.rate, row.hidden)) if row.measured else math.nan


def _update(row: StudyRow) -> float:
    return -log(row.measured.update_first) if row.measured else math.nan


def _over(rows: Sequence[StudyRow]) -> Cell:
    """Over methods the gradient separates which runs train, and the first update hardly."""
    areas = _Areas(rows)
    everything = np.arange(len(rows))
    gradient, update = areas.over(everything)
    low, high = areas.interval(lambda methods: float(np.subtract(*areas.over_methods(methods))))
    word: Word = "falls" if high < 0 else "undecided" if low <= 0 else "holds" if update <= HARDLY else "in part"
    apart = f"apart by {with_sign(gradient - update)} ({with_sign(low)} to {with_sign(high)})"
    return FindingCell(word, f"gradient {gradient:.2f}, first update {update:.2f}, {apart}; {areas.counts}")


def _within(rows: Sequence[StudyRow]) -> Cell:
    """Within a method both separate which runs train."""
    areas = _Areas(rows)
    gradient, update = areas.within(np.arange(len(areas.by_method)))
    if math.isnan(gradient):
        return "no method has runs of both outcomes"
    low, high = areas.interval(lambda methods: min(areas.within(methods)))
    word: Word = "holds" if low > 0.5 else "falls" if high < 0.5 else "undecided"
    return FindingCell(word, f"gradient {gradient:.2f}, first update {update:.2f}; {areas.counts}")


PARTS: Mapping[str, Wanted] = {
    "stated": lambda row: True,
    "seeds": lambda row: row.seed > CHOSEN,
    "lower": lambda row: row.rate <= SLOW,
    "higher": lambda row: row.rate >= FAST,
    "synthetic": lambda row: row.task == "synthetic",
}
"""Of the corpus, of width 64 and without the default grid; its later slices have other seeds."""
LEFT = {
    "best": "rates of both outcomes are what it is about",
    "batch": "every run of the corpora has 256 tokens a batch",
    "longer": "runs are trained to a verdict, up to 800 updates",
}
ELSEWHERE: Mapping[str, tuple[str, Wanted]] = {
    "gradient-newer-methods": ("later.csv", lambda row: True),
    "gradient-newer-slower": ("later.csv", lambda row: row.rate <= HIGHEST),
    "gradient-adamw": ("2026.csv", lambda row: row.optimizer == "adamw"),
    "gradient-muon": ("2026.csv", lambda row: row.optimizer == "muon"),
}
"""{finding: the rows that it is asked of}."""
TITLES = {
    "gradient-newer-methods": "the same of newer methods, Adam, rates to 0.5",
    "gradient-newer-slower": "the same of newer methods, Adam, rates to 0.032",
    "gradient-adamw": "the same of recent methods, AdamW",
    "gradient-muon": "the same of recent methods, Muon",
}


def _corpus(wanted: Wanted) -> list[StudyRow]:
    return [row for row in _labelled("forecast.csv") if row.hidden == 64 and row.seed and wanted(row)]


def _varied(of: Callable[[Sequence[StudyRow]], Cell]) -> dict[str, Cell]:
    return {name: of(_corpus(wanted)) for name, wanted in PARTS.items()} | LEFT


def recorded() -> dict[tuple[str, str], Cell]:
    """{(finding, variation): what rows of earlier studies say}."""
    cells: dict[tuple[str, str], Cell] = {}
    cells |= {("gradient-over-methods", name): cell for name, cell in _varied(_over).items()}
    for key, (file, wanted) in ELSEWHERE.items():
        cells[key, "stated"] = _over([row for row in _labelled(file) if wanted(row)])
    cells |= {("both-within-a-method", name): cell for name, cell in _varied(_within).items()}
    by_others = [row for row in from_csv(DOCS / "2026.csv") if row.depth == 50 and row.seed != SEARCHING]
    return cells | {("order", "seeds"): same_order(by_others)}


KEYS = ("gradient-over-methods", *ELSEWHERE, "both-within-a-method")
"""The findings that are decided so, in the order of the table."""
