"""What the ladder trains next, and the rows that it leaves: those of studies/own/corpus.py, another design's cases."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from studies.ladder.design import LAWS, RUNGS, WIDTHS, Setup, case_of, copied, order, setups
from studies.own import corpus
from studies.own.corpus import CorpusRow
from studies.own.design import Case
from studies.own.models import BASE
from studies.pool import in_turn
from studies.rungs import next_rung

Rows = Mapping[int, CorpusRow]
"""{number: row}."""


def read(*paths: Path) -> dict[int, CorpusRow]:
    """The rows of all these files, of a case the first file's; raises ValueError where two of one text are of two
    libraries."""
    rows = dict[int, CorpusRow]()
    for path in paths:
        rows = {**corpus.read(path, case_of), **rows}
    levels: dict[str, float] = {}
    for row in rows.values():
        if levels.setdefault(row.case.task, row.level) != row.level:
            raise ValueError(f"{paths[0]}: rows of {row.case.task} come from two texts: another Python's library?")
    return rows


def search(rows: Rows, setup: Setup) -> tuple[dict[float, bool], int | None]:
    """({half-rung: whether it trains at width 64}, the one to train next; None where the edge is known), step by step
    as the search goes: a copy that was trained besides is no part of it, for it would move the edge."""
    tried = dict[float, bool]()
    while (rung := next_rung(RUNGS, tried)) is not None:
        row = rows.get(setup.case(BASE, int(rung)).number)
        if row is None:
            return tried, int(rung)
        tried[rung] = row.ends == "trains"
    return tried, None


def edge(rows: Rows, setup: Setup) -> int | None:
    """The highest half-rung that trains at width 64; the lowest one where none does; None where it is not known yet."""
    tried, following = search(rows, setup)
    if following is not None:
        return None
    return max((int(half) for half, trains in tried.items() if trains), default=RUNGS[0])


def censored(rows: Rows, setup: Setup) -> bool:
    """Whether no rate of the search trains, or the highest one does: then the edge lies beyond."""
    tried, _ = search(rows, setup)
    return not any(tried.values()) or tried.get(RUNGS[-1], False)


def left(rows: Rows) -> Iterator[Case]:
    """What has no row, in the order in which it is trained: edges, copies of width 64, then recipe by recipe the
    widths from 512 down, width 64 with another seed, and Muon's at 512 last, flat ones first."""
    edges = dict[Setup, int]()
    for setup in setups():
        _, half = search(rows, setup)
        if half is not None:
            yield setup.case(BASE, half)
        elif (found := edge(rows, setup)) is not None:
            edges[setup] = found
    chosen = [(recipe.setup, recipe.half(edges[recipe.setup])) for recipe in order() if recipe.setup in edges]
    cases = [setup.case(BASE, half) for setup, half in chosen]
    for width in (512, 256, 128):
        cases += [setup.case(BASE, copied(half, width, law)) for setup, half in chosen for law in LAWS]
    quick = [(setup, half, width) for setup, half in chosen for width in WIDTHS[:0:-1] if not slow(setup, width)]
    late = sorted(((setup, half) for setup, half in chosen if slow(setup, 512)), key=lambda one: one[0].depth)
    cases += [setup.case(width, half) for setup, half, width in quick]
    cases += [setup.case(BASE, half, again=True) for setup, half in chosen]
    cases += [setup.case(512, half) for setup, half in late]
    yield from (case for case in dict.fromkeys(cases) if case.number not in rows)


def slow(setup: Setup, width: int) -> bool:
    """Whether a training takes long on a CPU."""
    return setup.optimizer == "muon" and width == 512


def run(path: Path, beside: Sequence[Path], data: Path, minutes: float, workers: int, device: str) -> None:
    """Train what has no row there nor in the files `beside`, as long as the minutes last."""
    own, rows = read(path), read(path, *beside)

    def following(working: Collection[tuple[Case, float | None]]) -> tuple[Case, float | None] | None:
        busy = {case.number for case, _ in working}
        case = next((case for case in left(rows) if case.number not in busy), None)
        return None if case is None else (case, _reference(rows, case))

    def done(job: tuple[Case, float | None], row: CorpusRow) -> str:
        own[row.case.number] = rows[row.case.number] = row
        corpus.write(path, list(own.values()))
        case = row.case
        return f"{len(rows)} rows, {case.name} {case.optimizer} {case.rate:g} {row.ends} {row.updates}"

    in_turn(following, partial(_measured, data=data, device=device), done, minutes=minutes, workers=workers)


def _reference(rows: Rows, case: Case) -> float | None:
    """That of a text and a width, where a row has it."""
    own = case.task, case.shape.width
    return next((row.reference for row in rows.values() if (row.case.task, row.case.shape.width) == own), None)


def _measured(job: tuple[Case, float | None], data: Path, device: str) -> CorpusRow:
    """Probe and train one case; what a worker does."""
    from studies.own import training

    case, known = job
    seen, refused = corpus.probed(case, data, device)
    reference = float(f"{training.reference(case, data, device):.5g}") if known is None else known
    ended = training.trained(case, data, reference, device=device)
    level = float(f"{training.task(case, data).frequencies:.5g}")
    return corpus.row(case, seen, refused, level, reference, ended, {})
