"""The table `finding × variation` of docs/findings.md, from the rows of the study."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from stabkit.spec import RunSpec
from stabkit.storage.folder import write_file
from studies import ladder, study
from studies.findings.design import CELLS, DESIGN, DOCS, EXPERIMENTS, VARIATIONS
from studies.findings.judges import JUDGES, FindingCell
from studies.findings.listed import Listed, listed
from studies.findings.recorded import FILLED, RECORDED
from studies.markdown import table_lines
from studies.rows import StudyRow
from studies.study import Study

FILE = DOCS / "findings.md"
TEXT = {"data": "../shared/data/multi30k", "source": "de", "target": "en"}
NOT_YET = "not run yet"
Cells = Mapping[tuple[str, str], FindingCell | str]
"""{(finding, variation): what it says, or why there is nothing}."""


def cells(rows: Mapping[str, StudyRow], of: Mapping[str, Sequence[RunSpec]]) -> Cells:
    """The whole table; `of`: the runs of each command."""
    left = {experiment.key: experiment.left for experiment in EXPERIMENTS}
    found: dict[tuple[str, str], FindingCell | str] = {}
    for key, (experiment, judge) in JUDGES.items():
        for variation in VARIATIONS:
            lines = CELLS[experiment, variation.key]
            if variation.joined and lines:
                lines = (*CELLS[experiment, "stated"], *lines)
            ids = {spec.run_id for line in lines for spec in of[line]}
            mine = [rows[run_id] for run_id in sorted(ids) if run_id in rows]
            if variation.searched:
                whole = not any(missing(of[line], rows, DESIGN.searches[line]) for line in lines)
                mine = at_best(mine)
            else:
                whole = len(mine) == len(ids)
            said = judge(mine) if lines and whole else None
            found[key, variation.key] = said or left[experiment].get(variation.key, NOT_YET)
    found |= {(key, name): said for key, by in RECORDED.items() for name, said in by().items()}
    return found | {place: say() for place, say in FILLED.items()}


def missing(specs: Sequence[RunSpec], rows: Mapping[str, StudyRow], first: float) -> bool:
    """Whether a search is not over."""
    return any(spec.run_id not in rows for spec in study.next_tried(specs, rows, first))


def at_best(rows: Sequence[StudyRow]) -> list[StudyRow]:
    """Of a search the rows at the rate of the lowest loss of each method, by its first seed, as the search has it."""
    kept = list[StudyRow]()
    for name in dict.fromkeys((row.method, row.options) for row in rows):
        mine = [row for row in rows if (row.method, row.options) == name]
        first = [row for row in mine if row.seed == min(row.seed for row in mine)]
        best = ladder.best(sorted({row.rate for row in first}), {row.rate: row.equal_loss for row in first})
        kept += [row for row in mine if best and row.rate == best.rate]
    return kept


def runs() -> dict[str, Sequence[RunSpec]]:
    """{command: its runs}."""
    requests, _ = study.requests(DESIGN, TEXT)
    return {line: request.specs for line, request in zip(DESIGN.commands, requests, strict=True)}


def survival(key: str, found: Cells) -> str:
    """`6 of 7 hold, 1 undecided`: of the cells that have an answer."""
    words = [found[key, variation.key] for variation in VARIATIONS if (key, variation.key) in found]
    said = [cell.word for cell in words if isinstance(cell, FindingCell)]
    parts = [f"{said.count(word)} {word}" for word in ("falls", "in part", "undecided") if word in said]
    return ", ".join([f"{said.count('holds')} of {len(said)} hold", *parts])


def render(found: Cells, sentences: Listed) -> str:
    """The page in Markdown."""
    heads = ("", *(variation.head for variation in VARIATIONS))
    by = {one.tried: one for one in sentences.findings if one.tried}
    rows = [
        (
            f"**{by[key].short if key in by else key}**: {survival(key, found)}",
            *(_cell(found, key, v.key) for v in VARIATIONS),
        )
        for key in (*JUDGES, *RECORDED)
    ]
    commands = [
        f"- **{experiment.key}**: `stabkit {line}`" for experiment in EXPERIMENTS for line in experiment.commands[:1]
    ]
    untried = [f"- {one.sentence} ({one.untried})" for one in sentences.findings if one.untried]
    return "\n".join(
        [
            "# What was found, tried to be broken",
            "",
            "Every sentence that compares methods, again with one thing changed: the design "
            "(`studies/findings/design.py`) was written before the runs, each cell is judged by the rule of the first "
            "(`judges.py`). Losses are of validation text that judged no outcome and chose no rate; intervals are 95 % "
            "over seeds and over draws of that text.",
            "",
            *table_lines(heads, rows),
            "",
            "The first command of each experiment; a variation changes one option of it:",
            "",
            *commands,
            "",
            "```console",
            "$ python -m studies findings --data ../shared/data/multi30k --source de --target en "
            "--rows docs/findings.csv",
            "```",
            "",
            "## Not tried",
            "",
            "These stand with the condition that they have, in one setting or on their own hold-out:",
            "",
            *untried,
            "",
        ]
    )


def _cell(found: Cells, key: str, variation: str) -> str:
    said = found.get((key, variation), "–")
    return f"{said.word}: {said.numbers}" if isinstance(said, FindingCell) else said


def write(state: Study, path: Path, command: str) -> dict[str, Any]:
    """Write docs/findings.md; returns what the command prints."""
    rows = {row.run_id: row for row in state.rows}
    found = cells(rows, runs())
    text = render(found, listed())
    write_file(FILE, text.encode())
    filled = sum(isinstance(said, FindingCell) for said in found.values())
    words = {f"{key} {name}": _cell(found, key, name) for key, name in found}
    return {
        "answer": f"{filled} of {len(found)} cells have an answer; {FILE}",
        "cells": words,
        "missing": len(state.missing),
    }
