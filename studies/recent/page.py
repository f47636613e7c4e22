"""The page of recent methods under both optimisers, docs/evidence/2026.md, its tables beside it, and its content as
values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from stabkit import methods
from stabkit.claims.evidence import MARGIN
from stabkit.methods.blocks import BLOCKS
from stabkit.methods.count import parameters
from stabkit.spec import ModelConfig
from stabkit.storage.folder import write_file
from stabkit.words import several
from studies.markdown import csv_text, table_lines
from studies.numbers import with_interval, with_sign
from studies.recent import design, sentences
from studies.recent.costs import FILE, StepCost, costs
from studies.recent.table import RecentCell, RecentTable
from studies.rows import OPTIMIZERS as NAMES
from studies.rungs import written
from studies.study import Study

MODEL = ModelConfig(encoder_layers=0, decoder_layers=50, **BLOCKS["llama"])
VOCAB = 2000
SUFFIX = ".md"
LOSSES = ("method", "optimiser", "layers", "loss", "rate", "at the first rate", "three seeds", "less Pre-LN's")
"""Of 2026_losses.csv, a row a method, optimiser and depth; the first rate is that at which all searches begin."""
COSTS = ("kind", "name", "time of a step", "second implementation", "trained numbers", "of Pre-LN's")
"""Of 2026_costs.csv: the time at 18 layers over Pre-LN's or Adam's, and of the path in Python, or of torch's own
update, over ours; trained numbers at 50 layers."""


def of(study: Study) -> RecentTable:
    """The table of a study as far as it has come."""
    return RecentTable(study.rows, (*design.KEYS, *design.STARTS))


def losses(table: RecentTable) -> Iterator[tuple[object, ...]]:
    """The rows of 2026_losses.csv."""
    for cell in table.cells:
        best = (f"{cell.best.loss:.3g}", written(cell.best.rate)) if cell.best else ("–", "–")
        seeds = with_interval(cell.loss, 3) if cell.loss else "–"
        yield (cell.label, NAMES[cell.optimizer], cell.depth, *best, cell.first or "–", seeds, _less(cell))


def _less(cell: RecentCell | None) -> str:
    return with_interval(cell.less, signed=True) if cell and cell.less else "–"


def sizes(table: RecentTable, every: Sequence[StepCost]) -> Iterator[tuple[object, ...]]:
    """The rows of 2026_costs.csv; a step's time does not depend on where mHC starts."""
    plain = parameters(methods.build("pre-ln", {}), MODEL, VOCAB)
    known = {cost.name: cost for cost in every if cost.kind == "method"}
    for name in dict.fromkeys(cell.variant for cell in table.cells):
        key, options = methods.parse(name)
        count = parameters(methods.build(key, options), MODEL, VOCAB)
        yield ("method", methods.label(key, options), *_cost(known.get(key)), count, f"{count / plain:.3f}")
    yield from (("optimizer", cost.name, *_cost(cost), "", "") for cost in every if cost.kind == "optimizer")


def _cost(cost: StepCost | None) -> tuple[str, str]:
    return ("–", "–") if cost is None else (with_interval(cost.ratio, 3), with_interval(cost.second))


def write(study: Study, path: Path, _: str) -> dict[str, Any]:
    """Write the page, which is the same wherever the text lies, and its tables; returns its content, for `--json` and
    the terminal."""
    table, every = of(study), costs(study.path.with_name(FILE))
    write_file(path, markdown(study, table, every).encode())
    for name, text in (
        ("losses", csv_text(LOSSES, [*losses(table)])),
        ("costs", csv_text(COSTS, [*sizes(table, every)])),
    ):
        write_file(path.with_name(f"2026_{name}.csv"), text.encode())
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


def markdown(study: Study, table: RecentTable, every: Sequence[StepCost]) -> str:
    """The page."""
    lines = [
        "# Do recent methods keep their order under Muon?",
        "",
        sentences.answer(table),
        f"{len(study.rows)} models were trained, 64 wide, with llama's block, for {design.UPDATES} updates without "
        "warm-up. What is ahead after so few updates need not be ahead in the end. `python3 dev.py evidence recent` "
        "writes this page.",
    ]
    if study.missing:
        lines += ["", f"**Not whole yet**: {len(study.missing)} runs are next, and more may follow."]
    lines += [f"\n{text}" for text in sentences.paragraphs(table)]
    lines += ["", *table_lines(("layers", "rank correlation", *_under("lowest loss under")), [*_depths(table)])]
    lines += [
        "",
        "The rate of every method is searched by factors of 2 with one seed. The lowest loss is that of all methods "
        f"within {MARGIN:g} nats. At 6 layers most methods lie closer than another draw of the text moves them.",
        "",
        "## Which have a lower loss than Pre-LN?",
        "",
        f"Three further seeds, at 50 layers, each method at its own best rate. The table has those that are shown to "
        f"lie {MARGIN:g} nats or more below Pre-LN under one optimiser (95 %).",
        "",
        *table_lines(("method", *_under("less Pre-LN's,")), [*_shown(table)]),
        "",
        "Under Muon Depth-μP and CompleteP are not defined. Most of Depth-μP's lead goes when the rate of the "
        "embedding is searched too ([results.md](results.md#recent-methods)).",
        "",
        "## What they cost",
        "",
        *_dearest(every),
        "",
        "Every method, optimiser and depth: [2026_losses.csv](2026_losses.csv). Times and sizes: "
        "[2026_costs.csv](2026_costs.csv). Every run: [2026.csv](2026.csv).",
    ]
    return "\n".join(lines) + "\n"


def _under(text: str) -> list[str]:
    return [f"{text} {NAMES[optimizer]}" for optimizer in design.OPTIMIZERS]


def _depths(table: RecentTable) -> Iterator[tuple[object, ...]]:
    for depth in table.depths:
        found = table.correlation(depth)
        told = f"{with_sign(found[0])} ({found[1]} methods)" if found else "–"
        best = [[cell.label for cell in sentences.lowest(table.of(o, depth))] for o in design.OPTIMIZERS]
        yield (depth, told, *(several(names, len(table.variants)) if names else "–" for names in best))


def _shown(table: RecentTable, depth: int = 50) -> Iterator[tuple[object, ...]]:
    cells = {(cell.optimizer, cell.variant): cell for cell in table.cells if cell.depth == depth}
    for name in table.variants:
        own = [cells.get((optimizer, name)) for optimizer in design.OPTIMIZERS]
        if any(cell and cell.less and cell.less.high <= -MARGIN for cell in own):
            yield (methods.label(*methods.parse(name)), *map(_less, own))


def _dearest(every: Sequence[StepCost]) -> Iterator[str]:
    """The time of a step of the dearest method, and of Muon."""
    own = [cost for cost in every if cost.kind == "method"]
    if not own:
        yield "Not measured."
        return
    most = max(own, key=lambda cost: cost.ratio.value)
    twice = sum(cost.ratio.value >= 2 for cost in own)
    yield (
        f"At 18 layers a step of {methods.label(most.name, {})} takes {with_interval(most.ratio, 3)} times a step of "
        f"Pre-LN, the most of {len(own)} methods. {twice} of them take twice or more."
    )
    for cost in every:
        if cost.name == "muon":
            yield f"A step of Muon takes {with_interval(cost.ratio, 3)} times a step of Adam."
