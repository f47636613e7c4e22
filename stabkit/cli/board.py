"""The table of a sweep as its runs end, above the bars of a terminal; and what a run is called while it trains."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from rich.console import Console, ConsoleOptions, RenderResult

from stabkit.cli import console
from stabkit.report.verdict import legend
from stabkit.report.verdict.matrix import matrix
from stabkit.results.conditions import conditions, depth_rank, method_label
from stabkit.results.forecast.model import WARMUP
from stabkit.results.run import Run
from stabkit.running.executors.base import Lost
from stabkit.spec import RunSpec
from stabkit.words import listed

if TYPE_CHECKING:
    from stabkit.results.forecast.model import Forecast

BELOW = 8
"""Lines of the terminal that the bars take."""


def names(specs: Sequence[RunSpec]) -> Mapping[str, str]:
    """{run id: `DeepNorm 100L-100L seed 2, no warm-up`}: each run by what sets it apart from the others."""
    return {
        spec.run_id: listed(f"{method_label(spec)} {spec.depth} seed {spec.seed}", condition.text)
        for spec, condition in zip(specs, conditions(specs), strict=True)
    }


def forecast(run: Run) -> str:
    """`likely trains 0.97`, `open 0.40`; "" where there is none, or a warm-up hides it, as half of a default grid."""
    said: Forecast | None = run.forecast if run.outcome.word == "early" else None
    if said is None or WARMUP in said.axes:
        return ""
    return f"{said.word} {legend.sure(said.p_trains)}" if said.p_trains is not None else said.word


class Board:
    """A row a method and condition, a column a depth; a cell says what its runs say that have ended."""

    def __init__(self, specs: Sequence[RunSpec], ready: Iterable[Run]) -> None:
        self.rows = {
            spec.run_id: (method_label(spec), condition.text)
            for spec, condition in zip(specs, conditions(specs), strict=True)
        }
        self.depths = [depth for _, depth in sorted({(depth_rank(spec), spec.depth) for spec in specs})]
        self._ended: dict[tuple[tuple[str, str], str], list[Run]] = {}
        self._texts: dict[tuple[tuple[str, str], str], str] = {}
        for run in ready:
            self.ended(run.spec, run)

    def ended(self, spec: RunSpec, ending: Run | Lost) -> None:
        """One more run has ended."""
        place = self.rows[spec.run_id], spec.depth
        if isinstance(ending, Lost):
            self._texts[place] = "failed"
            return
        runs = self._ended.setdefault(place, [])
        runs.append(ending)
        ((cell,),) = (row.cells for row in matrix(runs).rows)
        self._texts[place] = f"{legend.said(cell)} {legend.probability(cell)}".rstrip()

    def __rich_console__(self, screen: Console, options: ConsoleOptions) -> RenderResult:
        """Nothing where the terminal is too low for it."""
        rows = list(dict.fromkeys(self.rows.values()))
        if not self._texts or len(rows) + BELOW > options.size.height:
            return
        told = any(condition for _, condition in rows)
        head = ("", *(("condition",) if told else ()), *self.depths)
        table = [
            (
                label,
                *((condition,) if told else ()),
                *(self._texts.get(((label, condition), n), "…") for n in self.depths),
            )
            for label, condition in rows
        ]
        yield console.grid(head, table, options.max_width)
