"""The page of the methods of 2026 under both optimisers, docs/evidence/2026.md, and its content as values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from stabkit import methods
from stabkit.methods.blocks import BLOCKS
from stabkit.methods.count import parameters
from stabkit.methods.recent import OUT
from stabkit.spec import ModelConfig
from stabkit.storage.folder import write_file
from stabkit.words import short
from studies.markdown import table_lines
from studies.numbers import with_interval
from studies.recent import design, sentences
from studies.recent.costs import FILE, StepCost, costs
from studies.recent.table import RecentCell, RecentTable
from studies.rows import OPTIMIZERS as NAMES
from studies.rungs import written
from studies.study import Study

MODEL = ModelConfig(encoder_layers=0, decoder_layers=50, **BLOCKS["llama"])
VOCAB = 2000
SUFFIX = ".md"
SIGNS = {"stuck": "■ ", "diverged": "✕ "}
"""Of what became of a method at the rate that all searches begin at."""
CLAIMS = (
    "Sixteen claims of these papers were judged on these rows. Their code, `studies/recent/claims.py`, and the table "
    "of verdicts stand at commit `d3c19747a09c`."
)


class RecentRows(NamedTuple):
    """A table of the page: what it says, its heads, and (method, cells) a row."""

    caption: str
    heads: tuple[str, ...]
    rows: list[tuple[str, list[str]]]
    of: str = "method"


def of(study: Study) -> RecentTable:
    """The table of a study as far as it has come."""
    return RecentTable(study.rows, (*design.KEYS, *design.STARTS))


def cell_words(cell: RecentCell) -> str:
    """`5.02 at 4e-3`; `not yet` while the search goes on; `none has a loss` where every rate tried diverged."""
    if not cell.searched:
        return "not yet"
    found = f"{short(cell.best.loss, 3)} at {written(cell.best.rate)}" if cell.best else "none has a loss"
    return f"{SIGNS.get(cell.first or '', '')}{found}"


def tables(table: RecentTable, costs: Sequence[StepCost]) -> list[RecentRows]:
    """Losses and rates of the search first; then what the seeds that chose nothing lose; sizes and costs."""
    cells = {(cell.optimizer, cell.depth, cell.variant): cell for cell in table.cells}
    labels = {cell.variant: cell.label for cell in table.cells}

    def rows_of(caption: str, depths: Sequence[int], say: Any) -> RecentRows:
        heads = [(optimizer, depth) for optimizer in design.OPTIMIZERS for depth in depths]
        rows = [
            (labels[name], [say(cells[(*head, name)]) if (*head, name) in cells else "–" for head in heads])
            for name in table.variants
            if name in labels
        ]
        return RecentRows(caption, tuple(f"{NAMES[optimizer]}, {depth} layers" for optimizer, depth in heads), rows)

    return [
        rows_of(
            f"The lowest validation loss after {design.UPDATES} updates and the rate that it is at, of rates a factor "
            f"2 apart, by search with one seed; ■: stuck, ✕: diverged at {written(design.FIRST)}, the first that is "
            "tried; –: no such runs",
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
        [(cost.name, _cost(cost)) for cost in costs if cost.kind == "optimizer"],
        of="optimiser",
    )


def _cost(cost: StepCost | None) -> list[str]:
    return ["–", "–"] if cost is None else [with_interval(cost.ratio, 3), with_interval(cost.second)]


def sizes(table: RecentTable, cost: Mapping[str, StepCost]) -> list[tuple[str, list[str]]]:
    """Of every method at 50 layers of the study's model; a step's time does not depend on where mHC starts."""
    rows = []
    for name in dict.fromkeys(cell.variant for cell in table.cells):
        key, options = methods.parse(name)
        count, plain = (parameters(methods.build(*of), MODEL, VOCAB) for of in ((key, options), ("pre-ln", {})))
        rows.append((methods.label(key, options), [f"{count:,}", f"{count / plain:.3f}", *_cost(cost.get(key))]))
    return rows


def _seeds(cell: RecentCell) -> str:
    if cell.loss is None:
        return "–"
    less = f"; {with_interval(cell.less, signed=True)}" if cell.less else ""
    return f"{with_interval(cell.loss, 3)}{less}"


def write(study: Study, path: Path, _: str) -> dict[str, Any]:
    """Write the page, which is the same wherever the text lies; returns its content, for `--json` and the terminal."""
    table = of(study)
    write_file(path, markdown(study, table, costs(study.path.with_name(FILE))).encode())
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
    }


def _json(cell: RecentCell) -> dict[str, Any]:
    numbers = {name: number and number.to_json() for name, number in (("loss", cell.loss), ("less", cell.less))}
    return {**asdict(cell), **numbers, "label": cell.label}


def markdown(study: Study, table: RecentTable, cost: Sequence[StepCost]) -> str:
    """The page."""
    lines = [
        f"# {study.design.title}",
        "",
        f"Written by `python3 dev.py evidence recent` from its {len(study.rows)} rows, [2026.csv](2026.csv); no number "
        "here is typed by hand. The commands of its runs stand in `studies/recent/design.py`.",
        "",
        sentences.answer(table),
    ]
    if study.missing:
        lines += ["", f"**Not whole yet**: {len(study.missing)} runs are next, and more may follow."]
    lines += [f"\n{text}" for text in sentences.paragraphs(table)]
    lines += [
        "",
        f"{study.design.scaled} Every method has the same base initialisation, batches and seeds. The rate is searched "
        f"outward from {written(design.FIRST)} with one seed; the others follow at the rate that it found. Weights of "
        "linear maps decay by 0.1 times the rate; Muon’s momentum is 0.95, and what is no such map is AdamW’s at the "
        "same rate.",
    ]
    for shown in tables(table, cost):
        lines += ["", f"{shown.caption}.", ""]
        lines += table_lines((shown.of, *shown.heads), [(label, *texts) for label, texts in shown.rows])
    lines += ["", "## What the papers say of their own methods", "", CLAIMS, "", "## Not here yet", ""]
    lines += [f"- {one.label}: `{one.formula}`. It needs {one.needs} ({one.source})." for one in OUT.values()]
    return "\n".join(lines) + "\n"
