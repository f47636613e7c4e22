"""What the verdict is worth: counted on the judging part, beside what anybody could look at without a probe.

Every number here is of rows that no link, weight or limit was chosen on, by the coefficients that the package holds.
For hold-outs by group the fit is made again without the group, and judged on the group's rows of the judging part.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from stabkit.results.forecast.logistic import Array, Word
from stabkit.results.intervals import wilson
from stabkit.results.own import decided, rules
from stabkit.results.own.alarm import LOOKED_AT
from stabkit.results.own.cell import Broke
from stabkit.results.own.forecast import LOST, OwnCoefficients, ours
from stabkit.results.own.looks import FIRM, KEYS, LAST, TEN, Decision, Looks
from stabkit.results.own.measured import UPDATES
from stabkit.results.own.rules import CellNumbers, StackNumbers
from studies.forecast.scores import Bin, auc, auc_interval, reliability
from studies.own import looks
from studies.own.corpus import CorpusRow
from studies.own.fit import fitted, labels, part, probability, setting
from studies.own.models import scheme_of


def numbers(row: CorpusRow) -> CellNumbers | None:
    """What the command's rules read of a row; None where the probe had no result. A row is of one depth, so that no law
    in depth is known, and holds no unreached matrices; a test probes that no scheme is cut at four layers."""
    seen, case = row.measured, row.case
    if seen is None:
        return None
    scheme = scheme_of(case.shape)
    stack = StackNumbers(
        growth=seen.growth,
        room=seen.room,
        dilution=seen.dilution,
        normed=(scheme.final and not scheme.dyt) or norms(row) == "after the sum",  # DyT divides by nothing
        gradient=(seen.gradient_lowest, seen.gradient_highest),
    )
    lost = None if seen.finite else Broke(step=0, where="the probe")
    return CellNumbers(depth=case.shape.depth, seed=case.seed, stacks={"stack": stack}, updates=UPDATES, broke=lost)


def decision(row: CorpusRow, p: float | None, by: Looks, *, trained: bool, key: str = KEYS[0]) -> Decision:
    """What the command says, by its own function, of a model that is forecast to train with this probability; it is
    `trained` on where that does not decide, or not (`--quick`), by the rule of this `key`. Without a forecast a number
    that was lost is still a number that was lost."""
    cell = numbers(row)
    links = {} if cell is None else rules.rules([cell])
    p = p if "forecast" in key or p == LOST else None
    known = row.known(p, key) if trained else None
    lost = row.updates if trained and not math.isfinite(row.losses[-1]) else None
    return decided.decision(links, p, known, row.losses, by, lost=lost)


@dataclass(frozen=True)
class Counted:
    """Words against outcomes."""

    rows: Sequence[CorpusRow]
    p: Sequence[float | None]
    said: Sequence[Decision]

    @classmethod
    def of_rows(
        cls, rows: Sequence[CorpusRow], p: Sequence[float | None], by: Looks, *, trained: bool, key: str = KEYS[0]
    ) -> Counted:
        """By the command's own function."""
        return cls(
            rows, p, [decision(row, one, by, trained=trained, key=key) for row, one in zip(rows, p, strict=True)]
        )

    @property
    def words(self) -> list[Word]:
        return [one.word for one in self.said]

    def of(self, *wanted: Word) -> list[CorpusRow]:
        """Rows that were told one of these words."""
        return [row for row, word in zip(self.rows, self.words, strict=True) if word in wanted]

    @property
    def within(self) -> tuple[int, int]:
        """(decided, of those) that end within the last look."""
        ends = [one.firm for row, one in zip(self.rows, self.said, strict=True) if row.updates <= LAST]
        return sum(map(int, ends)), len(ends)

    def soon(self, most: int) -> tuple[int, int]:
        """(of those, decided) after so many updates at most."""
        firm = [one.updates for one in self.said if one.firm]
        return sum(1 for updates in firm if updates <= most), len(firm)

    def where(self, holds: Callable[[CorpusRow], bool]) -> Counted:
        """Of these rows alone."""
        kept = [one for one in zip(self.rows, self.p, self.said, strict=True) if holds(one[0])]
        return Counted([row for row, _, _ in kept], [p for _, p, _ in kept], [said_ for _, _, said_ in kept])

    @property
    def updates(self) -> float:
        """That a decision took, in the median."""
        return float(np.median([float(one.updates) for one in self.said if one.firm] or [math.nan]))

    def right(self, *wanted: Word, basis: str = "") -> tuple[int, int]:
        """(right, told) of these words: failed where it was to fail, else trained."""
        both = zip(self.rows, self.said, strict=True)
        told = [row for row, one in both if one.word in wanted and basis in ("", one.basis)]
        good = not {"fails", "probably fails"}.intersection(wanted)
        return sum(row.fails is not good for row in told), len(told)

    def counts(self) -> dict[str, tuple[int, int]]:
        """{what was told: (right, of)}; of what is undecided, how many trained."""
        found: dict[str, tuple[int, int]] = {}
        for row, one in zip(self.rows, self.said, strict=True):
            right, n = found.get(one.counted_as, (0, 0))
            found[one.counted_as] = right + (row.fails is (one.word in ("fails", "probably fails"))), n + 1
        return found

    @property
    def failing(self) -> int:
        return sum(row.fails for row in self.rows)

    @property
    def found(self) -> tuple[int, int]:
        """(failures told `fails`, or not told `trains`)."""
        missed = sum(row.fails for row in self.of("trains"))
        return self.right("fails")[0], self.failing - missed

    @property
    def decided(self) -> int:
        return len(self.of("fails", "trains"))

    @property
    def auc(self) -> tuple[float, float, float]:
        """(area, from, to) over rows that have a probability."""
        given = [(p, row) for p, row in zip(self.p, self.rows, strict=True) if p is not None]
        p, label = np.array([p for p, _ in given]), labels([row for _, row in given])
        return auc(p, label), *auc_interval(p, label)


def judged(
    rows: Sequence[CorpusRow], by: OwnCoefficients | None = None, *, trained: bool = True, key: str = KEYS[0]
) -> Counted:
    """The judging part's clear rows, by the package's coefficients."""
    own, coefficients = part(rows, judge=True), by or ours()
    p = [probability(row, coefficients.logistic, coefficients) for row in own]
    return Counted.of_rows(own, p, coefficients.looks, trained=trained, key=key)


def chosen(rows: Sequence[CorpusRow], key: str = KEYS[0]) -> Counted:
    """The cases to choose on, each by fits that have not seen its scheme: what the limits of `looks` were chosen by."""
    own, every = part(rows, judge=False), looks.forecasts(part(rows, judge=False))
    parts = list[Counted]()
    for seen, inside in looks.folds(own):
        ends = Looks(looks.fit(seen, every), {})
        p = [every[row.case.number] for row in inside]
        parts.append(Counted.of_rows(inside, p, ends, trained=True, key=key))
    return Counted(*([one for part_ in parts for one in getattr(part_, name)] for name in ("rows", "p", "said")))


def outlook(row: CorpusRow, by: Looks) -> Word | None:
    """What a watch says of a training by its losses alone, once; None where it says nothing."""
    for count in LOOKED_AT:
        p = by.probability(row.losses[: count // TEN], row.known(None, "guessed"))
        if count <= TEN * len(row.losses) and not FIRM[0] < p < FIRM[1]:
            return "trains" if p >= FIRM[1] else "fails"
    return None


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
    scheme = scheme_of(row.case.shape)
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
    found, every = [], looks.forecasts(ours_)
    for axis, of in GROUPS.items():
        for group in sorted({of(row) for row in theirs}):
            by = fitted([row for row in ours_ if of(row) != group])
            inside = [row for row in theirs if of(row) == group]
            p = [probability(row, by) for row in inside]
            ends = Looks(looks.fit([row for row in ours_ if of(row) != group], every), {})
            found.append(HeldOut(axis, group, Counted.of_rows(inside, p, ends, trained=True)))
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
