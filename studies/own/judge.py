"""What the verdict is worth: counted on the judging part, beside what anybody could look at without a probe.

Every number here is of rows that no link, weight or limit was chosen on, by the coefficients that the package holds.
For hold-outs by group the fit is made again without the group, and judged on the group's rows of the judging part.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from stabkit.results.forecast import logistic
from stabkit.results.forecast.logistic import Array
from stabkit.results.intervals import wilson
from stabkit.results.own import rules
from stabkit.results.own.cell import Broke
from stabkit.results.own.forecast import OwnCoefficients, ours
from stabkit.results.own.measured import UPDATES
from stabkit.results.own.rules import CellNumbers, StackNumbers, Word
from studies.forecast.scores import Bin, auc, auc_interval, reliability
from studies.own.corpus import CorpusRow
from studies.own.fit import fitted, labels, part, probability, setting
from studies.own.models import SCHEMES


def numbers(row: CorpusRow) -> CellNumbers | None:
    """What the command's rules read of a row; None where the probe had no result. A row is of one depth, so that no law
    in depth is known, and holds no unreached matrices; a test probes that no scheme is cut at four layers."""
    seen, case = row.measured, row.case
    if seen is None:
        return None
    scheme = SCHEMES[case.shape.scheme]
    stack = StackNumbers(
        growth=seen.growth,
        room=seen.room,
        dilution=seen.dilution,
        normed=(scheme.final and not scheme.dyt) or norms(row) == "after the sum",  # DyT divides by nothing
        gradient=(seen.gradient_lowest, seen.gradient_highest),
    )
    lost = None if seen.finite else Broke(step=0, where="the probe")
    return CellNumbers(depth=case.shape.depth, seed=case.seed, stacks={"stack": stack}, updates=UPDATES, broke=lost)


def word_of(row: CorpusRow, p: float | None) -> Word:
    """The word of the command, by its own rules, of a model that is forecast to train with this probability."""
    cell = numbers(row)
    return rules.word(logistic.word(p), {} if cell is None else rules.rules([cell]))


@dataclass(frozen=True)
class Counted:
    """Words against outcomes."""

    rows: Sequence[CorpusRow]
    p: Sequence[float | None]

    @property
    def words(self) -> list[Word]:
        return [word_of(row, p) for row, p in zip(self.rows, self.p, strict=True)]

    def of(self, *wanted: Word) -> list[CorpusRow]:
        """Rows that were told one of these words."""
        return [row for row, word in zip(self.rows, self.words, strict=True) if word in wanted]

    @property
    def failing(self) -> int:
        return sum(row.fails for row in self.rows)

    @property
    def stuck_right(self) -> tuple[int, int]:
        """(right, told) of `likely stuck`."""
        rows = self.of("likely stuck")
        return sum(row.fails for row in rows), len(rows)

    @property
    def trains_right(self) -> tuple[int, int]:
        """(right, told) of `likely trains`."""
        rows = self.of("likely trains")
        return sum(not row.fails for row in rows), len(rows)

    @property
    def found(self) -> tuple[int, int]:
        """(failures told `likely stuck`, or `open` too)."""
        return self.stuck_right[0], sum(row.fails for row in self.of("likely stuck", "open"))

    @property
    def decided(self) -> int:
        return len(self.of("likely stuck", "likely trains"))

    @property
    def auc(self) -> tuple[float, float, float]:
        """(area, from, to) over rows that have a probability."""
        given = [(p, row) for p, row in zip(self.p, self.rows, strict=True) if p is not None]
        p, label = np.array([p for p, _ in given]), labels([row for _, row in given])
        return auc(p, label), *auc_interval(p, label)


def judged(rows: Sequence[CorpusRow], by: OwnCoefficients | None = None) -> Counted:
    """The judging part's clear rows, by the package's coefficients."""
    own = part(rows, judge=True)
    coefficients = by or ours()
    return Counted(own, [probability(row, coefficients.logistic, coefficients) for row in own])


LEARNT, SOON = 0.8, 10
"""Of the level of frequencies, and in tens of updates: a failure whose training loss was below it by then had learnt,
and lost it later."""


def late(row: CorpusRow) -> bool:
    """Whether a failure comes after the model had begun to learn: sixteen updates cannot see it."""
    return row.fails and min(row.losses[:SOON], default=math.inf) < LEARNT * row.level


def share(right: int, of: int) -> str:
    """`0.95 (57 of 60; 0.86 to 0.98)`."""
    if not of:
        return "– (0 of 0)"
    low, high = wilson(right / of, of)
    return f"{right / of:.2f} ({right} of {of}; {low:.2f} to {high:.2f})"


BASELINES: dict[str, Callable[[CorpusRow], float]] = {
    "rate × depth": lambda row: -math.log(setting(row).rate * row.case.shape.depth),
    "rate": lambda row: -math.log(setting(row).rate),
    "loss after 16 updates ÷ level": lambda row: -_last(row) / row.level,
    "loss after 50 updates ÷ level": lambda row: (
        -_number(row.losses[4] if len(row.losses) > 4 else math.inf) / row.level
    ),
    "gradient ratio before any update": lambda row: -abs(math.log(max(_of(row, "gradient_start"), 1e-30))),
    "gradient ratio, lowest of 16": lambda row: -abs(math.log(max(_of(row, "gradient_lowest"), 1e-30))),
}
"""{name: a number of a row, more is better}."""


def _number(value: float) -> float:
    return value if math.isfinite(value) else 1e9


def _last(row: CorpusRow) -> float:
    return _number(row.measured.loss_last) if row.measured is not None else 1e9


def _of(row: CorpusRow, name: str) -> float:
    value = getattr(row.measured, name) if row.measured is not None else math.nan
    return float(value) if math.isfinite(value) else 1e-30


def norms(row: CorpusRow) -> str:
    """The kind of norm of a scheme: where norms stand."""
    scheme = SCHEMES[row.case.shape.scheme]
    if scheme.early:
        return "mixed"
    if scheme.after:
        return "after the sum"
    if scheme.branch:
        return "on the branch"
    return "before the branch" if scheme.before or scheme.dyt else "none"


GROUPS: dict[str, Callable[[CorpusRow], str]] = {
    "kind of norm": norms,
    "initialisation": lambda row: row.case.shape.init,
    "optimiser": lambda row: row.case.optimizer,
    "width": lambda row: str(row.case.shape.width),
    "depth": lambda row: (
        "4 to 8" if row.case.shape.depth <= 8 else "12, 16" if row.case.shape.depth <= 16 else "24 to 48"
    ),
    "task": lambda row: row.case.task,
    "warm-up": lambda row: str(row.case.warmup),
}


@dataclass(frozen=True)
class HeldOut:
    """One group, by a fit that has seen none of it."""

    axis: str
    group: str
    counted: Counted


def held_out(rows: Sequence[CorpusRow]) -> list[HeldOut]:
    """Every group of every axis: fitted on the fitting part without it, judged on the judging part's rows of it. The
    links were chosen with all of them there; how unlike the others a group is is not asked."""
    ours_, theirs = part(rows, judge=False), part(rows, judge=True)
    found = []
    for axis, of in GROUPS.items():
        for group in sorted({of(row) for row in theirs}):
            by = fitted([row for row in ours_ if of(row) != group])
            inside = [row for row in theirs if of(row) == group]
            found.append(HeldOut(axis, group, Counted(inside, [probability(row, by) for row in inside])))
    return found


def baselines(rows: Sequence[CorpusRow]) -> dict[str, tuple[float, float, float]]:
    """{name: (area, from, to)} on the judging part."""
    own = part(rows, judge=True)
    label = labels(own)
    found = {}
    for name, of in BASELINES.items():
        p: Array = np.array([of(row) for row in own])
        found[name] = (auc(p, label), *auc_interval(p, label))
    return found


def calibration(counted: Counted) -> list[Bin]:
    """Said and true in five bins; those that hold a model."""
    given = [(p, row) for p, row in zip(counted.p, counted.rows, strict=True) if p is not None]
    p, label = np.array([p for p, _ in given]), labels([row for _, row in given])
    return [own for own in reliability(p, label, np.arange(len(given))) if own.n]
