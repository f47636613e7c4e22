"""The table `finding × variation` of docs/findings.md, from the rows of the study."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from stabkit.spec import RunSpec
from stabkit.storage.folder import write_file
from studies import ladder, study
from studies.findings.design import CELLS, DESIGN, DOCS, EXPERIMENTS, VARIATIONS
from studies.findings.judges import CHOOSING, JUDGES, FindingCell
from studies.findings.listed import Listed, read_list
from studies.findings.recorded import KEYS, TITLES, recorded
from studies.markdown import table_lines
from studies.rows import StudyRow
from studies.study import Study

FILE = DOCS / "findings.md"
NOT_YET = "not run yet"
Cells = Mapping[tuple[str, str], FindingCell | str]
"""{(finding, variation): what it says, or why there is nothing}."""


def cells(rows: Mapping[str, StudyRow], of: Mapping[str, Sequence[RunSpec]]) -> Cells:
    """The whole table; `of`: the runs of each command."""
    left = {experiment.key: experiment.left for experiment in EXPERIMENTS}
    table: dict[tuple[str, str], FindingCell | str] = {}
    for key, (experiment, judge) in JUDGES.items():
        for variation in VARIATIONS:
            lines = CELLS[experiment, variation.key]
            if variation.joined and lines:
                lines = (*CELLS[experiment, "stated"], *lines)
            runs_of = {spec.run_id for line in lines for spec in of[line]}
            mine = [rows[run_id] for run_id in sorted(runs_of) if run_id in rows]
            if variation.searched:
                whole = not any(searching(of[line], rows, DESIGN.searches[line]) for line in lines)
                mine = at_best(mine, searching_too=key in CHOOSING)
            else:
                whole = len(mine) == len(runs_of)
            table[key, variation.key] = judge(mine) if lines and whole else left[experiment].get(variation.key, NOT_YET)
    return table | recorded()


def searching(specs: Sequence[RunSpec], rows: Mapping[str, StudyRow], first: float) -> bool:
    """Whether a search is not over, or the seeds at its best rate are not."""
    return any(spec.run_id not in rows for spec in study.next_tried(specs, rows, first))


def at_best(rows: Sequence[StudyRow], *, searching_too: bool = False) -> list[StudyRow]:
    """Of a search the rows at the rate of the lowest loss of each method, of the seeds that chose nothing."""
    kept = list[StudyRow]()
    for name in dict.fromkeys((row.method, row.options, row.optimizer) for row in rows):
        mine = [row for row in rows if (row.method, row.options, row.optimizer) == name]
        first = min(row.seed for row in mine)
        losses = {row.rate: row.equal_loss for row in mine if row.seed == first}
        best = ladder.best(sorted(losses), losses)
        kept += [row for row in mine if best and row.rate == best.rate and (searching_too or row.seed != first)]
    return kept


def runs() -> dict[str, Sequence[RunSpec]]:
    """{command: its runs}."""
    requests, _ = study.requests(DESIGN, study.MULTI30K)
    return {line: request.specs for line, request in zip(DESIGN.commands, requests, strict=True)}


def survival(key: str, table: Cells) -> str:
    """`6 of 7 hold, 1 undecided`: of the cells that have an answer; of parts of the same runs no count."""
    if key in KEYS:
        return "parts of the same runs" if (key, "seeds") in table else "other runs"
    answers = [table[key, variation.key] for variation in VARIATIONS]
    words = [answer.word for answer in answers if isinstance(answer, FindingCell)]
    holds = sum(word.startswith("holds") for word in words)
    rest = [f"{words.count(word)} {word}" for word in dict.fromkeys(words) if not word.startswith("holds")]
    return ", ".join([f"{holds} of {len(words)} hold", *rest])


INTRODUCTION = """\
# What was found, tried to be broken

Every sentence that compares methods, again with one thing changed (on the synthetic task 400 updates stand for 250).
Experiments and variations (`studies/findings/design.py`) were written before the runs, the rules by which cells are
judged (`judges.py`) while they ran; a review changed rules after some cells were known: one seed alone is no verdict,
the seed that searched a rate is not compared (three others were added), every rival counts for "lowest". A row has
one rule in all its cells. "With two further seeds" judges them together with those as stated. Losses are of a
thousand validation sentences that judged no outcome and chose no rate, on the synthetic task of those that judge;
their intervals are 95 % over seeds and over draws of that text. Exponents are fitted from 6 to 50 layers, with 95 %
over seeds. Each best rate is searched with one seed, and three others are compared. Of the last rows nothing was
trained: the runs of earlier studies, and parts of them; their intervals come from drawing methods again.
"""


def render(table: Cells, listed: Listed) -> str:
    """The page in Markdown."""
    heads = ("", *(variation.head for variation in VARIATIONS))
    titles = {finding.tried: finding.short for finding in listed.findings if finding.tried}
    rows = [
        (
            f"**{titles.get(key, TITLES.get(key, key))}**: {survival(key, table)}",
            *(_cell(table, key, variation.key) for variation in VARIATIONS),
        )
        for key in (*JUDGES, *KEYS)
    ]
    commands = [f"- **{experiment.key}**: `stabkit {experiment.commands[0]}`" for experiment in EXPERIMENTS]
    untried = [f"- {finding.sentence} ({finding.untried})" for finding in listed.findings if finding.untried]
    parts = [
        INTRODUCTION,
        *table_lines(heads, rows),
        "",
        "The first command of each experiment; a variation changes one option of it:",
        "",
        *commands,
        "",
        "```console",
        "$ python -m studies findings --data ../shared/data/multi30k --source de --target en --rows docs/findings.csv",
        "```",
        "",
        "## Not tried",
        "",
        "These stand with the condition that they have, in one setting or on their own hold-out:",
        "",
        *untried,
    ]
    return "\n".join(parts) + "\n"


def _cell(table: Cells, key: str, variation: str) -> str:
    answer = table.get((key, variation), "–")
    return f"{answer.word}: {answer.numbers}" if isinstance(answer, FindingCell) else answer


def write(state: Study, path: Path, command: str) -> dict[str, Any]:
    """Write findings.md beside the rows; returns what the command prints."""
    table = cells({row.run_id: row for row in state.rows}, runs())
    file = state.path.with_name(FILE.name)
    write_file(file, render(table, read_list()).encode())
    answered = sum(isinstance(answer, FindingCell) for answer in table.values())
    return {
        "answer": f"{answered} of {len(table)} cells have an answer: {file}",
        "cells": {f"{key} {name}": _cell(table, key, name) for key, name in table},
        "missing": len(state.missing),
    }
