"""The page of the methods of 2026 under both optimisers, as HTML and as Markdown, and its content as values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from stabkit import methods
from stabkit.claims.base import ORDER, Finding
from stabkit.claims.evidence import MARGIN
from stabkit.claims.verdict import judge
from stabkit.figures.drawing import style
from stabkit.methods.blocks import BLOCKS
from stabkit.methods.count import parameters
from stabkit.methods.recent import OUT
from stabkit.report.cards import card
from stabkit.report.frame import shell, template
from stabkit.spec import ModelConfig
from stabkit.storage.folder import write_file
from stabkit.words import plain
from studies import row_run
from studies.markdown import finding_lines, table_lines
from studies.numbers import with_interval
from studies.recent import design, sentences
from studies.recent.claims import CLAIMS
from studies.recent.costs import FILE, StepCost, costs
from studies.recent.figures import FIGURES, cell_words
from studies.recent.table import RecentCell, RecentTable
from studies.rows import OPTIMIZERS as NAMES
from studies.rows import digest
from studies.rungs import written
from studies.study import Study

MODEL = ModelConfig(encoder_layers=0, decoder_layers=50, **BLOCKS["llama"])
VOCAB = 2000


class RecentRows(NamedTuple):
    """A table of the page: what it says, its heads, and (method, label, cells) a row."""

    caption: str
    heads: tuple[str, ...]
    rows: list[tuple[str, str, list[str]]]
    of: str = "method"


def of(study: Study) -> RecentTable:
    """The table of a study as far as it has come."""
    return RecentTable(study.rows, (*design.KEYS, *design.STARTS))


class MatrixCell(NamedTuple):
    """A method under an optimiser at a depth, in colour."""

    tint: str
    """The outcome at the rate that all searches begin at, which is the cell's class."""
    loss: str
    rate: str
    lowest: bool
    """Whether no other's loss is lower by more than MARGIN there."""


def matrix(table: RecentTable) -> list[tuple[str, str, list[MatrixCell]]]:
    """(method, label, cells by optimiser and depth) a row, in the order of the last column that is whole."""
    cells = {(cell.optimizer, cell.depth, cell.variant): cell for cell in table.cells}
    heads = [(optimizer, depth) for optimizer in design.OPTIMIZERS for depth in table.depths]
    least = {(cell.optimizer, cell.depth, cell.variant) for head in heads for cell in sentences.lowest(table.of(*head))}
    labels = {cell.variant: (cell.paint, cell.label) for cell in table.cells}

    def shown(place: tuple[str, int, str]) -> MatrixCell:
        cell = cells.get(place)
        if cell is None or not cell.known or cell.best is None:
            return MatrixCell("missing", "–", "", False)
        return MatrixCell(cell.first or "missing", f"{cell.best.loss:.2f}", written(cell.best.rate), place in least)

    return [(*labels[name], [shown((*head, name)) for head in heads]) for name in table.variants if name in labels]


def tables(table: RecentTable, costs: Sequence[StepCost]) -> list[RecentRows]:
    """The matrix first; then what the seeds that chose nothing lose; sizes and costs."""
    cells = {(cell.optimizer, cell.depth, cell.variant): cell for cell in table.cells}
    labels = {cell.variant: (cell.paint, cell.label) for cell in table.cells}

    def rows_of(caption: str, depths: Sequence[int], say: Any) -> RecentRows:
        heads = [(optimizer, depth) for optimizer in design.OPTIMIZERS for depth in depths]
        rows = [
            (*labels[name], [say(cells[(*head, name)]) if (*head, name) in cells else "–" for head in heads])
            for name in table.variants
            if name in labels
        ]
        return RecentRows(caption, tuple(f"{NAMES[optimizer]}, {depth} layers" for optimizer, depth in heads), rows)

    return [
        rows_of(
            f"The lowest validation loss after {design.UPDATES} updates and the rate that it is at, of rates a factor "
            "2 apart, by search with one seed; –: no such runs, or none with a loss",
            table.depths,
            cell_words,
        ),
        rows_of(
            "Validation loss at that rate over three seeds that have chosen nothing, in brackets 95 %; then, seed by "
            "seed, less Pre-LN’s at its own best rate",
            design.SEEDED,
            _seeds,
        ),
        RecentRows(
            "Trained numbers at 50 layers, over Pre-LN’s: what a wiring trains is a large part of so narrow a model; "
            "the time of a step at 18 layers over Pre-LN’s, and of its second implementation, the path in Python, "
            "over it",
            ("trained numbers", "of Pre-LN’s", "time of a step", "in Python"),
            sizes(table, {cost.name: cost for cost in costs if cost.kind == "method"}),
        ),
        *([_optimizers(costs)] if costs else []),
    ]


def _optimizers(costs: Sequence[StepCost]) -> RecentRows:
    return RecentRows(
        "The time of a step of Pre-LN at 18 layers over Adam’s, by optimiser, and of torch’s own update over ours",
        ("time of a step", "torch’s update"),
        [("", cost.name, _cost(cost)) for cost in costs if cost.kind == "optimizer"],
        of="optimiser",
    )


def _cost(cost: StepCost | None) -> list[str]:
    return ["–", "–"] if cost is None else [with_interval(cost.ratio, 3), with_interval(cost.second)]


def sizes(table: RecentTable, cost: Mapping[str, StepCost]) -> list[tuple[str, str, list[str]]]:
    """Of every method at 50 layers of the study's model; a step's time does not depend on where mHC starts."""
    rows = []
    for name, paint in {cell.variant: cell.paint for cell in table.cells}.items():
        key, options = methods.parse(name)
        count, plain = (parameters(methods.build(*of), MODEL, VOCAB) for of in ((key, options), ("pre-ln", {})))
        rows.append((paint, methods.label(key, options), [f"{count:,}", f"{count / plain:.3f}", *_cost(cost.get(key))]))
    return rows


def _seeds(cell: RecentCell) -> str:
    if cell.loss is None:
        return "–"
    less = f"; {with_interval(cell.less, signed=True)}" if cell.less else ""
    return f"{with_interval(cell.loss, 3)}{less}"


def findings(study: Study) -> list[Finding]:
    """The claims of these methods, judged on the runs of the seeds that followed, each method at its own best rate:
    the rates, one a cell, are taken as one, or no two methods could be compared. Those that hold first."""
    rows = row_run.runs(study, lambda spec: spec.seed != design.SEARCHING)
    runs = [replace(run, spec=replace(run.spec, train=replace(run.spec.train, lr=1.0))) for run in rows]
    return sorted((judge(claim, runs) for claim in CLAIMS), key=lambda finding: ORDER.index(finding.verdict))


def write(study: Study, path: Path, command: str) -> dict[str, Any]:
    """Write the page; returns its content, for `--json` and the terminal."""
    table, cost = of(study), costs(study.path.with_name(FILE))
    write_file(path, render(study, table, cost, command).encode())
    write_file(path.with_suffix(".md"), markdown(study, table, cost).encode())
    return {
        "answer": sentences.answer(table),
        "sentences": sentences.paragraphs(table),
        "rows": str(study.path),
        "missing": len(study.missing),
        "table": [_json(cell) for cell in table.cells],
        "correlations": [
            {"depth": depth, "value": found[0], "methods": found[1]}
            for depth in table.depths
            if (found := table.correlation(depth))
        ],
        "claims": [{"id": f.claim.key, "verdict": f.verdict, "measured": f.measured} for f in findings(study)],
    }


def _json(cell: RecentCell) -> dict[str, Any]:
    numbers = {name: number and number.to_json() for name, number in (("loss", cell.loss), ("less", cell.less))}
    return {**asdict(cell), **numbers, "label": cell.label}


@np.errstate(all="ignore")
def render(study: Study, table: RecentTable, cost: Sequence[StepCost], command: str) -> str:
    """The page as one HTML file."""
    return template(Path(__file__).with_name("page.html.j2")).render(
        **shell(study.design.title, command, [sentences.in_short(table), sentences.answer(table)])
        | {"elsewhere": ""},  # it needs its text
        swatch=style.colour,
        sentences=sentences.paragraphs(table),
        optimizers=[NAMES[optimizer] for optimizer in design.OPTIMIZERS],
        depths=table.depths,
        matrix=matrix(table),
        signs={"stuck": "■ ", "diverged": "✕ "} | dict.fromkeys(("trains", "early", "missing"), ""),
        first_rate=written(design.FIRST),
        margin=f"{MARGIN:g}",
        tables=tables(table, cost),
        out=OUT.values(),
        cards=[card(figure, figure.select(table), table) for figure in FIGURES],
        judged=findings(study),
        scaled=study.design.scaled,
        updates=design.UPDATES,
        commands=[plain(line) for line in study.commands],
        rows=plain(str(study.path)),
        count=len(study.rows),
        digest=digest(study.rows),
        missing=len(study.missing),
        failed=[(plain(spec.run_id), plain(reason)) for spec, reason in study.failed],
        switches=[],
        group_switches=[],
        lit=(),
    )


def markdown(study: Study, table: RecentTable, cost: Sequence[StepCost]) -> str:
    """The same as a page of `docs/`."""
    lines = [
        f"# {study.design.title}",
        "",
        "Written by `python3 dev.py evidence recent` from its rows, [2026.csv](2026.csv), as a page with pictures "
        "([reports/2026.html](../reports/2026.html)) and as this file; no number here is typed by hand.",
        "",
        sentences.answer(table),
    ]
    if study.missing:
        lines += ["", f"**Not whole yet**: {len(study.missing)} runs are next, and more may follow."]
    lines += [f"\n{text}" for text in sentences.paragraphs(table)]
    lines += ["", study.design.scaled[:1].upper() + study.design.scaled[1:]]
    for shown in tables(table, cost):
        lines += ["", f"{shown.caption}.", ""]
        lines += table_lines((shown.of, *shown.heads), [(label, *texts) for _, label, texts in shown.rows])
    lines += ["", "## What the papers say of their own methods", ""]
    lines += finding_lines(findings(study))
    lines += ["", "## Not here yet", ""]
    lines += [f"- {one.label}: `{one.formula}`. It needs {one.needs} ({one.source})." for one in OUT.values()]
    return "\n".join(lines) + "\n"
