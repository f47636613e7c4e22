"""A study: runs too many to be stored, each of which becomes a row of a file; what has a row is not trained again.

The runs are carried out in parts that take some minutes; after each the file is written again, whole. A budget ends a
study between two parts, and the same command goes on. A run that is in the store and has no row yet gets one. Where a
command's rates are a ladder, what is tried next follows from the rows.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from stabkit.options import lines
from stabkit.options.requests import request_of
from stabkit.results.run import Run
from stabkit.running import cost, execute
from stabkit.running.request import Request
from stabkit.spec import RunSpec
from stabkit.storage.folder import write_file
from stabkit.storage.store import Store
from studies.rows import AXES, StudyRow, UnreadableRows, from_csv, row, to_csv
from studies.rungs import best, next_outward, next_rung

MINUTES = 6.0
"""What a part takes, about: as much is lost at most when the machine goes down."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Design:
    """What a study asks, and the runs that answer it."""

    key: str
    title: str
    question: str
    scaled: str
    """What is smaller here than in the papers, and what that can change."""
    commands: tuple[str, ...]
    """Of `stabkit`, without the text and the place."""
    ladders: tuple[str, ...] = ()
    """Those of them whose rates are tried by halving, not all: the highest that trains."""
    searches: Mapping[str, float] = field(default_factory=dict)
    """Those whose rates are tried outward from this one, to the lowest loss: with their first seed; the others follow
    at the rate that it found."""


@dataclass(frozen=True, kw_only=True)
class Study:
    """A study as far as it has come."""

    design: Design
    commands: tuple[str, ...]
    """As they are run: with the text and the place."""
    path: Path
    """Where its rows are."""
    rows: tuple[StudyRow, ...]
    """Of its own runs, in their order."""
    missing: tuple[RunSpec, ...]
    """What has no row yet and is wanted; of a ladder the next rungs."""
    failed: tuple[tuple[RunSpec, str], ...] = ()


def requests(design: Design, options: Mapping[str, Any]) -> tuple[list[Request], tuple[str, ...]]:
    """The commands of a design with these options, as requests and as people type them."""
    asked, commands = list[Request](), list[str]()
    for text in design.commands:
        command, chosen = lines.words(text)
        chosen |= {name: value for name, value in options.items() if f"--{name} " not in text}
        asked.append(request_of(command, chosen))
        commands.append(f"stabkit {lines.line(command, chosen)}")
    return asked, tuple(commands)


def begun(design: Design, commands: Sequence[str], requests: Sequence[Request], path: Path) -> Study:
    """What the file holds of it; raises UnreadableRows for a file that is none, or has a row that is not its run's."""
    rows = _rows(path)
    specs = {spec.run_id: spec for request in requests for spec in request.specs}
    for run_id, spec in specs.items():
        if run_id in rows and (wrong := _departs(rows[run_id], spec)):
            raise UnreadableRows(f"{path}: the row of {run_id} says {wrong}")
    if rows and not set(rows) & set(specs):
        raise UnreadableRows(f"{path}: none of its {len(rows)} rows is of a run of {design.key}; name another file")
    wanted = dict[str, RunSpec]()
    for text, request in zip(design.commands, requests, strict=True):
        specs_: Sequence[RunSpec] = request.specs
        if text in design.ladders:
            specs_ = next_rungs(request.specs, rows)
        elif text in design.searches:
            specs_ = next_tried(request.specs, rows, design.searches[text])
        wanted |= {spec.run_id: spec for spec in specs_}
    return Study(
        design=design,
        commands=tuple(commands),
        path=path,
        rows=tuple(rows[run_id] for run_id in specs if run_id in rows),
        missing=tuple(spec for run_id, spec in wanted.items() if run_id not in rows),
    )


def _departs(stored: StudyRow, spec: RunSpec) -> str:
    """Where a row differs from the specification that its run_id stands for; "" where nowhere."""
    outcome, steps, validation = stored.outcome, stored.steps, stored.validation
    right = row(spec, outcome=outcome, steps=steps, validation=validation, digest="", measured=None)
    results = ("outcome", "steps", "validation", "digest")  # what training found; it may be NaN
    differ = [name for name in AXES if name not in results and getattr(right, name) != getattr(stored, name)]
    return ", ".join(f"{name} {getattr(stored, name)} where it is {getattr(right, name)}" for name in differ)


def cell(spec: RunSpec) -> str:
    """What a ladder's runs share: all but the rate."""
    return replace(spec, train=replace(spec.train, lr=1.0)).run_id


def next_rungs(specs: Sequence[RunSpec], stored: Mapping[str, StudyRow]) -> list[RunSpec]:
    """What is to be tried next of every cell of a ladder."""
    cells: dict[str, list[RunSpec]] = {}
    for spec in specs:
        cells.setdefault(cell(spec), []).append(spec)
    wanted = []
    for members in cells.values():
        rungs = {spec.train.lr: spec for spec in sorted(members, key=lambda spec: spec.train.lr)}
        rows = {rate: stored[spec.run_id] for rate, spec in rungs.items() if spec.run_id in stored}
        rate = next_rung(tuple(rungs), {rate: row.trains for rate, row in rows.items()})
        if rate is not None:
            wanted.append(rungs[rate])
    return wanted


def next_tried(specs: Sequence[RunSpec], stored: Mapping[str, StudyRow], first: float) -> list[RunSpec]:
    """What is to be tried next of every cell of a search, whose seeds share all but the rate."""
    cells: dict[str, list[RunSpec]] = {}
    for spec in specs:
        cells.setdefault(cell(replace(spec, seed=0)), []).append(spec)
    wanted = list[RunSpec]()
    for members in cells.values():
        seed = min(spec.seed for spec in members)
        rungs = {spec.train.lr: spec for spec in members if spec.seed == seed}
        rows = {rate: stored[spec.run_id] for rate, spec in rungs.items() if spec.run_id in stored}
        losses, trains = ({rate: getattr(row, name) for rate, row in rows.items()} for name in ("equal_loss", "trains"))
        rate = next_outward(tuple(sorted(rungs)), losses, trains, first)
        if rate is not None:
            wanted.append(rungs[rate])
        elif found := best(tuple(sorted(rungs)), losses):
            wanted += [spec for spec in members if spec.seed != seed and spec.train.lr == found.rate]
    return wanted


def run(
    study: Study,
    requests: Sequence[Request],
    store: Store,
    listener: execute.Listener,
    *,
    limit: float | None,
    retry_failed: bool,
) -> Study:
    """Carry out what has no row, as long as `limit` seconds last."""
    begin = time.monotonic()
    first = max(requests, key=lambda request: request.corpus is not None)
    first = replace(first, texts={name: text for request in requests for name, text in request.texts.items()})
    failed: dict[str, tuple[RunSpec, str]] = {}
    while part := next(parts([s for s in study.missing if s.run_id not in failed], first.place.workers), None):
        need = sum(map(cost.seconds, part)) / first.place.workers
        if limit is not None and time.monotonic() - begin + need > limit:
            break
        done = execute.run(first.of(part), store, listener, retry_failed=retry_failed)
        failed |= {spec.run_id: (spec, reason) for spec, reason in done.failed}
        study.path.parent.mkdir(parents=True, exist_ok=True)
        rows = [*_rows(study.path).values(), *map(row_of, done.runs)]
        write_file(study.path, to_csv(rows))
        study = begun(study.design, study.commands, requests, study.path)
    return replace(study, failed=tuple(failed.values()))


def parts(specs: Sequence[RunSpec], workers: int) -> Iterator[list[RunSpec]]:
    """The runs in their order, cut where MINUTES are full."""
    part: list[RunSpec] = []
    need = 0.0
    for spec in specs:
        part.append(spec)
        need += cost.seconds(spec) / workers
        if need >= 60 * MINUTES:
            yield part
            part, need = [], 0.0
    if part:
        yield part


def row_of(run: Run) -> StudyRow:
    """The row of a run in the store."""
    return row(
        run.spec,
        outcome=run.outcome.word,
        steps=run.outcome.steps,
        validation=run.outcome.validation_loss,
        digest=run.digest,
        measured=run.measured,
        profile=run.profile,
    )


def _rows(path: Path) -> dict[str, StudyRow]:
    return {item.run_id: item for item in from_csv(path)} if path.exists() else {}
