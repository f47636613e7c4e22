"""How many words change where runs that end near the line are trained twice as long: a table for docs/outcome.md."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from stabkit import methods
from studies import study
from studies.markdown import table_lines
from studies.near.design import DESIGN
from studies.numbers import with_sign
from studies.rows import StudyRow
from studies.study import Study, doubled

HEADS = ("run", "rate", "loss less the line", "word", "twice as long", "word then")

FILE = Path(__file__).parents[2] / "docs" / "outcome.md"


def committed(rows: Path) -> Study:
    """The study as far as its rows are committed."""
    requests, commands = study.requests(DESIGN, study.MULTI30K)
    return study.begun(DESIGN, commands, requests, rows)


def pairs(state: Study) -> list[tuple[StudyRow, StudyRow]]:
    """(a run that ends near the line, the same twice as long) of all that have both."""
    rows = {row.run_id: row for row in state.rows}
    twice = {row.run_id: doubled(state.specs[row.run_id]).run_id for row in state.rows if row.near_line}
    longer = set(twice.values())
    found = [(rows[one], rows[two]) for one, two in twice.items() if two in rows and one not in longer]
    return sorted(found, key=lambda pair: pair[0].run_id)


def sentence(state: Study) -> str:
    """`Of 180 runs 9 end within 0.1 nats of the line; trained twice as long 3 change their word: …`."""
    found = pairs(state)
    longer = {two.run_id for _, two in found}
    runs = [row for row in state.rows if row.run_id not in longer]
    changed = [(one, two) for one, two in found if one.outcome != two.outcome]
    kinds = [f"{one.outcome} → {two.outcome}" for one, two in changed]
    counts = ", ".join(f"{kinds.count(kind)} {kind}" for kind in sorted(set(kinds)))
    return (
        f"Of {len(runs)} runs {len(found)} end within 0.1 nats of the line; trained twice as long {len(changed)} of "
        f"them change{'s' * (len(changed) == 1)} the word{f' ({counts})' if counts else ''}."
    )


def lines(state: Study) -> list[str]:
    """The table in Markdown."""
    return table_lines(HEADS, [_cells(one, two) for one, two in pairs(state)])


def _cells(one: StudyRow, two: StudyRow) -> tuple[str, ...]:
    shape = f"{one.encoder_layers}L-{one.decoder_layers}L"
    return (
        f"{methods.label(one.method, {})} {shape}, seed {one.seed}",
        f"{one.rate:g}",
        with_sign(one.apart),
        one.outcome,
        with_sign(two.apart),
        two.outcome,
    )


def write(state: Study, path: Path, command: str) -> dict[str, Any]:
    """What the command prints; docs/outcome.md has it."""
    return {"answer": sentence(state), "table": lines(state), "missing": len(state.missing)}
