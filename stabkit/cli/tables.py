"""The tables and sentences that a command ends with in the terminal: verdicts, slopes, roughness; then the sentence
that answers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.text import Text

from stabkit.cli import console
from stabkit.report.html import counted
from stabkit.results.run import Run
from stabkit.wording import legend
from stabkit.words import listed, short

if TYPE_CHECKING:
    from stabkit.report.summary import Summary
    from stabkit.results.matrix import VerdictCell

COLOURS: Mapping[str, str] = {"trains": "green", "stuck": "red", "diverged": "bold red", "failed": "magenta"}


def slopes(runs: Sequence[Run]) -> None:
    """The slopes of single SGD steps: a row a method, ranked at each depth, the two papers' methods compared."""
    from stabkit.results import slope
    from stabkit.wording.slope import title

    frame = slope.frame(runs)
    means = slope.table(frame)
    for condition, group in means.groupby("condition", sort=False):
        depths = list(group["depth"].unique())
        rows = [
            (label, *(_slope_cell(mine[mine["depth"] == depth]) for depth in depths))
            for label, mine in group.groupby("label", sort=False)
        ]
        head = listed("‖ΔF‖/η of one SGD step, and its rank (1: smallest change)", str(condition))
        console.table(head, ("", *depths), rows)
        console.say()
    if frame.empty:
        return
    console.paragraph(title(runs) + ".")


def _slope_cell(group: Any) -> str:
    """`29  (2)`, of several seeds with the least and the greatest under it."""
    if group.empty:
        return ""
    row = group.iloc[0]
    spread = f"\n{short(row['least'])} to {short(row['greatest'])}" if row["greatest"] > row["least"] else ""
    return f"{short(row['slope'])}  ({row['rank']}){spread}"


def verdict(summary: Summary) -> None:
    """The verdict matrix: outcome or forecast, ‖ΔF‖ at the reference step, what is known; not of single steps."""
    if all(run.spec.single_step for run in summary.runs) and summary.runs:
        return
    verdicts = summary.matrix
    rows = [
        (
            row.label,
            *((row.condition.text,) if verdicts.has_conditions else ()),
            *(Text("\n".join(filter(None, _lines(cell))), _colour(cell)) for cell in row.cells),
        )
        for row in verdicts.rows
    ]
    head = ("", *(("condition",) if verdicts.has_conditions else ()), *verdicts.depths)
    forecast = any(cell.forecast for row in verdicts.rows for cell in row.cells)
    what = "Outcome, or forecast with the probability that it trains" if forecast else "Outcome"
    where = "" if verdicts.block == "classic" else f", in the block {verdicts.block}"
    told = [f"‖ΔF‖ after {verdicts.reference_step} updates"] * any("‖ΔF‖" in str(cell) for row in rows for cell in row)
    if any(math.isfinite(cell.loss) for row in verdicts.rows for cell in row.cells):
        told.append(f"validation loss (unigram {verdicts.unigram:.2f})" if verdicts.unigram else "validation loss")
    console.table(f"{' and '.join([what, *told])}{where}", head, rows)


def _lines(cell: VerdictCell) -> list[str]:
    """What a cell says, a line each; empty ones are left out."""
    said = f"{legend.word_of(cell)} {legend.probability(cell)}".rstrip()
    told = math.isfinite(cell.update) and not cell.saturated and not math.isfinite(cell.loss)
    update = f"‖ΔF‖ {short(cell.update)}" if told else ""
    loss = f"loss {cell.loss:.2f}" if math.isfinite(cell.loss) else ""
    return [said, update, loss, *legend.notes(cell), *legend.chained(cell)]


def last(summary: Summary, page: Path, following: str) -> None:
    """What stays on the screen: the sentence that answers, how the papers' claims come out, the page, the next command
    worth typing."""
    console.say()
    if said := summary.answer or summary.instead:
        console.paragraph(said)
    several = len({run.spec.seed for run in summary.runs}) > 1
    if several and (counts := counted(summary.claims)):
        console.paragraph(f"The papers' central claims, on these runs: {counts}; the page lists each.")
    console.say(f"report: {page}")
    if following:
        console.say(f"next: {following}")


def _colour(cell: VerdictCell) -> str:
    """A cell's colour, by its outcome; a broken link of what is undecided is a warning."""
    if cell.at_risk or any(row.risks for row in cell.chained):
        return "yellow"
    return "" if cell.forecast or cell.worst is None else COLOURS.get(cell.worst, "")
