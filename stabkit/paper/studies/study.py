"""An item whose runs are too many to keep: each becomes a row of a file, and what has a row is not trained again.

The runs are carried out in parts that take some minutes; after each the file is written anew, whole. A budget ends a
study between two parts, and the same command goes on. A run that is in the store and has no row yet gets one. Where a
command's rates are a ladder, what is tried next follows from the rows.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from stabkit.paper.item import Item
from stabkit.results import ladder
from stabkit.results.forecast.rows import AXES, Row, UnreadableRows, from_csv, row, to_csv
from stabkit.running import cost, execute
from stabkit.running.request import Request
from stabkit.spec import RunSpec
from stabkit.storage.folder import write_file
from stabkit.storage.store import Run, Store

MINUTES = 6.0
"""What a part takes, about: as much is lost at most when the machine goes down."""


@dataclass(frozen=True, kw_only=True)
class Study:
    """A study as far as it has come."""

    item: Item
    commands: tuple[str, ...]
    path: Path
    """Where its rows are."""
    rows: tuple[Row, ...]
    """Of its own runs, in their order."""
    specs: Mapping[str, RunSpec]
    """{run_id: spec} of all that its commands name."""
    missing: tuple[RunSpec, ...]
    """What has no row yet and is wanted; of a ladder the next rungs."""
    failed: tuple[tuple[RunSpec, str], ...] = ()


def begun(item: Item, commands: Sequence[str], requests: Sequence[Request], path: Path) -> Study:
    """What the file holds of it; raises UnreadableRows for a file that is none, or says of a run what it is not."""
    held = _held(path)
    specs = {spec.run_id: spec for request in requests for spec in request.specs}
    for run_id, spec in specs.items():
        if run_id in held and (wrong := _departs(held[run_id], spec)):
            raise UnreadableRows(f"{path}: the row of {run_id} says {wrong}")
    if held and not set(held) & set(specs):
        raise UnreadableRows(f"{path}: none of its {len(held)} rows is of a run of {item.key}; name a file of its own")
    wanted = dict[str, RunSpec]()
    for text, request in zip(item.commands, requests, strict=True):
        some = next_rungs(request.specs, held) if text in item.ladders else request.specs
        wanted |= {spec.run_id: spec for spec in some}
    return Study(
        item=item,
        commands=tuple(commands),
        path=path,
        rows=tuple(held[run_id] for run_id in specs if run_id in held),
        specs=specs,
        missing=tuple(spec for run_id, spec in wanted.items() if run_id not in held),
    )


def _departs(held: Row, spec: RunSpec) -> str:
    """What a row says otherwise than the specification that its run_id stands for; "" where nothing."""
    own = row(spec, outcome=held.outcome, steps=held.steps, validation=held.validation, digest="", measured=None)
    found = ("outcome", "steps", "validation", "digest")  # what the run was found to be; a loss may be NaN
    differ = [name for name in AXES if name not in found and getattr(own, name) != getattr(held, name)]
    return ", ".join(f"{name} {getattr(held, name)} where it is {getattr(own, name)}" for name in differ)


def cell(spec: RunSpec) -> str:
    """What a ladder's runs share: all but the rate."""
    return replace(spec, train=replace(spec.train, lr=1.0)).run_id


def next_rungs(specs: Sequence[RunSpec], held: Mapping[str, Row]) -> list[RunSpec]:
    """What is to be tried next of every cell of a ladder."""
    cells: dict[str, list[RunSpec]] = {}
    for spec in specs:
        cells.setdefault(cell(spec), []).append(spec)
    found = []
    for own in cells.values():
        rungs = {spec.train.lr: spec for spec in sorted(own, key=lambda spec: spec.train.lr)}
        rows = {rate: held[spec.run_id] for rate, spec in rungs.items() if spec.run_id in held}
        rate = ladder.next_rung(tuple(rungs), {rate: row.trains for rate, row in rows.items()})
        if rate is None:
            rate = ladder.next_lower(tuple(rungs), {rate: row.equal_loss for rate, row in rows.items()})
        if rate is not None:
            found.append(rungs[rate])
    return found


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
    failed: dict[str, tuple[RunSpec, str]] = {}
    while some := next(parts([s for s in study.missing if s.run_id not in failed], first.place.workers), None):
        need = sum(map(cost.seconds, some)) / first.place.workers
        if limit is not None and time.monotonic() - begin + need > limit:
            break
        done = execute.run(first.of(some), store, listener, retry_failed=retry_failed)
        failed |= {spec.run_id: (spec, reason) for spec, reason in done.failed}
        study.path.parent.mkdir(parents=True, exist_ok=True)
        rows = [*_held(study.path).values(), *map(row_of, done.runs)]
        write_file(study.path, to_csv(rows))
        study = begun(study.item, study.commands, requests, study.path)
    return replace(study, failed=tuple(failed.values()))


def parts(specs: Sequence[RunSpec], workers: int) -> Iterator[list[RunSpec]]:
    """The runs in their order, cut where MINUTES are full."""
    some: list[RunSpec] = []
    need = 0.0
    for spec in specs:
        some.append(spec)
        need += cost.seconds(spec) / workers
        if need >= 60 * MINUTES:
            yield some
            some, need = [], 0.0
    if some:
        yield some


def row_of(run: Run) -> Row:
    """The row of a run in the store."""
    outcome = run.outcome
    return row(
        run.spec,
        outcome=outcome["outcome"],
        steps=outcome["steps"],
        validation=float(outcome["validation_loss"]),
        digest=run.digest,
        measured=run.measured,
        profile=run.profile,
    )


def _held(path: Path) -> dict[str, Row]:
    return {one.run_id: one for one in from_csv(path)} if path.exists() else {}
