"""The verdict matrix as a value: a row a method and condition, a column a depth. Pure; page and terminal both show it.

cell = what became of its runs (one word each, counted over seeds), ‖ΔF‖ at the reference step (median over
seeds), the lowest first/last decoder gradient ratio over the run (median likewise), and the runs themselves
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from stabkit.figures.shared.comparison import (
    GROUPS,
    condition_order,
    conditions,
    depth_rank,
    method_group,
    method_label,
    method_rank,
)
from stabkit.figures.shared.numbers import centre, lowest_ratio, outcome_word, reference_step, update_at
from stabkit.figures.shared.words import plain
from stabkit.results.outcome import AT_RISK
from stabkit.spec import RunSpec
from stabkit.storage.store import Run

OUTCOMES = ("diverged", "stuck", "failed", "early", "trains")
"""Worst first: a cell takes the colour of its worst run. `early` is a run too short to judge."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Cell:
    """All runs of one method, condition and depth."""

    outcomes: tuple[tuple[str, int], ...] = ()
    """(word, how many), worst first."""
    update: float = math.nan
    gradient_ratio: float = math.nan
    details: tuple[str, ...] = ()
    run_ids: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
    """Why its failed runs failed."""

    @property
    def total(self) -> int:
        return sum(count for _, count in self.outcomes)

    @property
    def worst(self) -> str:
        """The word that colours the cell; `missing` when the grid has no such run."""
        return self.outcomes[0][0] if self.outcomes else "missing"

    @property
    def at_risk(self) -> bool:
        """Whether one of its early runs shows a broken link."""
        return any(detail.startswith(AT_RISK) for detail in self.details)

    @property
    def words(self) -> str:
        """`trains`, `trains 3/3`, `diverged 1/3, trains 2/3`; `–` for none."""
        if self.total <= 1:
            return self.outcomes[0][0] if self.outcomes else "–"
        return ", ".join(f"{word} {count}/{self.total}" for word, count in self.outcomes)


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """One method under one condition; its cells stand in the order of the matrix's depths."""

    method: str
    label: str
    group: str
    condition: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Matrix:
    """Rows in table order within their group, depths from shallow to deep."""

    depths: tuple[str, ...]
    reference_step: int
    rows: tuple[Row, ...]

    @property
    def has_conditions(self) -> bool:
        return any(row.condition for row in self.rows)


def matrix(runs: Sequence[Run], failed: Sequence[tuple[RunSpec, str]] = ()) -> Matrix:
    """The verdicts of all runs, and of those that have none because they failed."""
    runs = list({run.run_id: run for run in runs}.values())
    specs = [run.spec for run in runs] + [spec for spec, _ in failed]
    texts = conditions(specs)
    order = condition_order(specs)
    step = reference_step(runs)
    depths = sorted({(depth_rank(spec), spec.depth) for spec in specs})
    rows = sorted(
        {
            (_group_rank(spec), method_rank(spec), order[text], spec.method, method_label(spec), text)
            for spec, text in zip(specs, texts, strict=True)
        }
    )
    held: dict[tuple[str, str, str], list[Run]] = {}
    lost: dict[tuple[str, str, str], list[str]] = {}
    for run, text in zip(runs, texts, strict=False):
        held.setdefault((method_label(run.spec), text, run.spec.depth), []).append(run)
    for (spec, reason), text in zip(failed, texts[len(runs) :], strict=True):
        lost.setdefault((method_label(spec), text, spec.depth), []).append(plain(reason))
    return Matrix(
        depths=tuple(depth for _, depth in depths),
        reference_step=step,
        rows=tuple(
            Row(
                method=key,
                label=label,
                group=GROUPS[group],
                condition=text,
                cells=tuple(
                    _cell(held.get((label, text, depth), []), lost.get((label, text, depth), []), step)
                    for _, depth in depths
                ),
            )
            for group, _, _, key, label, text in rows
        ),
    )


def _cell(runs: list[Run], reasons: list[str], step: int) -> Cell:
    runs = sorted(runs, key=lambda run: (run.spec.seed, run.run_id))
    counts = Counter(outcome_word(run) for run in runs)
    if reasons:
        counts["failed"] += len(reasons)
    return Cell(
        outcomes=tuple(sorted(counts.items(), key=lambda item: (badness(item[0]), item[0]))),
        update=centre(update_at(run, step) for run in runs),
        gradient_ratio=centre(map(lowest_ratio, runs)),
        details=tuple(plain(str(run.outcome.get("detail", ""))) for run in runs),
        run_ids=tuple(run.run_id for run in runs),
        reasons=tuple(reasons),
    )


def badness(word: str) -> int:
    return OUTCOMES.index(word) if word in OUTCOMES else len(OUTCOMES)


def _group_rank(spec: RunSpec) -> int:
    return GROUPS.index(method_group(spec))
