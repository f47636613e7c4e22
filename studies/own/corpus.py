"""The corpus as rows of a CSV: what a case is, what its probe measured, what became of it.

    python -m studies.own train --data DIR [--minutes 75] [--keep DIR]

A case that has a row is not trained again; a row is written when its case is done. Two processes, one thread each. With
`--keep` what the watch recorded stays in that folder, a case each. Where a probe reads more than it did,
`measure` probes all cases again and trains none.
"""

from __future__ import annotations

import csv
import json
import math
import multiprocessing
import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stabkit.results.own.cell import ModelCell
from stabkit.results.own.looks import Known
from stabkit.results.own.measured import UPDATES, OwnMeasured
from stabkit.storage.folder import write_file
from studies.own.design import Case, cases, drawn
from studies.pool import in_turn

if TYPE_CHECKING:
    from studies.own.training import Trained

CASE = ("number", "kind", "scheme", "width", "depth", "init", "activation", "norm", "tied", "bias", "task", "optimizer",
        "rate", "warmup", "seed")  # fmt: skip
MEASURED = tuple(field.name for field in fields(OwnMeasured))
ENDED = ("ends", "updates", "level", "reference", "held_out", "losses", "alarms", "refused")
COLUMNS = (*CASE, *ENDED, *MEASURED)


@dataclass(frozen=True)
class CorpusRow:
    """One case."""

    case: Case
    measured: OwnMeasured | None
    """None where the probe had no result (`refused` says why), or a number was lost at the first update."""
    ends: str
    updates: int
    level: float
    """Loss of who knows frequencies alone."""
    reference: float
    """Held-out loss of the shallow reference."""
    held_out: float
    losses: tuple[float, ...]
    """Training losses, means of ten updates each."""
    alarms: Mapping[str, int]
    """{link: the update of a watch's first warning}."""
    refused: str = ""

    @property
    def fails(self) -> bool:
        """`stuck` and `diverged`; what is unclear is neither this nor that."""
        return self.ends in ("stuck", "diverged")

    @property
    def clear(self) -> bool:
        return self.ends != "unclear"

    def known(self, p: float | None, key: str) -> Known:
        """What a rule of this key is told of it. A guessed level is the loss of the first ten updates, or ln of the
        classes where that is less."""
        guess = math.inf if self.case.regression else math.log(self.case.shape.words)
        level = min(self.losses[0], guess) if "guessed" in key else self.level
        reference = self.reference if "reference" in key and not self.case.regression else None
        return Known(p if "forecast" in key else None, level, reference, "guessed" in key)


def read(path: Path, of: Callable[[int], Case] = drawn, *, trained: bool = False) -> dict[int, CorpusRow]:
    """{number: row} of a file, `of` a design's cases; none where there is no file. Raises ValueError for other columns,
    or a row that is not of its case. `trained`: only what became of each case, of a file whose probes measured
    otherwise."""
    if not path.exists():
        return {}
    with path.open(newline="", encoding="utf-8") as file:
        lines = csv.DictReader(file)
        names = tuple(lines.fieldnames or ())
        if names[: len(CASE + ENDED)] != CASE + ENDED or (names != COLUMNS and not trained):
            raise ValueError(f"{path}: its columns are not those of the corpus")
        texts = list(lines)
    rows = {}
    for text in texts:
        case = of(int(text["number"]))
        if wrong := [name for name in CASE if text[name] != str(case.to_row()[name])]:
            raise ValueError(f"{path}: row {case.number} has another {wrong[0]} than its case")
        rows[case.number] = _row(case, text, measured=not trained)
    return rows


def _row(case: Case, text: Mapping[str, str], *, measured: bool) -> CorpusRow:
    numbers = {
        name: text[name] == "True" if name == "finite" else float(text[name] or "nan")
        for name in (MEASURED if measured and text["finite"] else ())
    }
    return CorpusRow(
        case=case,
        measured=OwnMeasured(**numbers) if numbers else None,  # type: ignore[arg-type]
        ends=text["ends"],
        updates=int(text["updates"]),
        level=float(text["level"]),
        reference=float(text["reference"]),
        held_out=float(text["held_out"]),
        losses=tuple(map(float, text["losses"].split())),
        alarms={name: int(at) for name, at in json.loads(text["alarms"]).items()},
        refused=text["refused"],
    )


def line(row: CorpusRow) -> dict[str, Any]:
    """Of a CSV: five digits of what was measured."""
    ended = {
        "ends": row.ends,
        "updates": row.updates,
        "level": f"{row.level:.5g}",
        "reference": f"{row.reference:.5g}",
        "held_out": f"{row.held_out:.5g}",
        "losses": " ".join(f"{loss:.4g}" for loss in row.losses),
        "alarms": json.dumps(dict(row.alarms)),
        "refused": row.refused,
    }
    seen = row.measured
    values = {} if seen is None else {name: getattr(seen, name) for name in MEASURED}
    return {
        **row.case.to_row(),
        **ended,
        **{name: str(v) if isinstance(v, bool) else f"{v:.5g}" for name, v in values.items()},
    }


def write(path: Path, rows: Sequence[CorpusRow]) -> None:
    """The file, whole, by number."""
    with tempfile.SpooledTemporaryFile(mode="w+", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(line(row) for row in sorted(rows, key=lambda row: row.case.number))
        file.seek(0)
        write_file(path, file.read().encode())


def run(path: Path, data: Path, minutes: float, keep: Path | None, workers: int = 2, first: int = 0) -> None:
    """Train what has no row, as long as the minutes last."""
    rows = read(path)
    wanted = [case for case in cases() if case.number not in rows and case.number >= first]
    left = iter(sorted(wanted, key=lambda case: case.slow))

    def done(case: Case, row: CorpusRow) -> str:
        rows[case.number] = row
        write(path, list(rows.values()))
        return f"{len(rows)} rows, {case.name} {case.optimizer} {case.rate:g} {row.ends}"

    work = partial(measure, data=data, keep=keep)
    in_turn(lambda _: next(left, None), work, done, minutes=minutes, workers=workers)


def replayed(rows: Sequence[CorpusRow], keep: Path) -> list[CorpusRow]:
    """The rows with alarms by today's limits, of what the watch of each case recorded in `keep`."""
    from studies.own import replay

    found = []
    for row in rows:
        cell = replay.recorded(keep / row.case.name)
        found.append(row if cell is None else replace(row, alarms=replay.alarms(cell)))
    return found


def probed(case: Case, data: Path, device: str = "cpu") -> tuple[OwnMeasured | None, str]:
    """(what a probe measures, why it has no result) of a case."""
    from stabkit.errors import UsageError
    from stabkit.results.own.measured import measured

    try:
        return measured(probed_cell(case, data, device=device)), ""
    except UsageError as error:
        return None, str(error)


def probed_cell(case: Case, data: Path, updates: int = UPDATES, device: str = "cpu") -> ModelCell:
    """What a probe of a case records, with its ramp after UPDATES; raises UsageError where it has no result."""
    import torch

    from stabkit.own.probe import loop
    from stabkit.own.probe.built_model import make
    from studies.own import training

    torch.set_num_threads(1)
    made = make(training.factory(case, data, device), case.name, case.shape.depth, case.seed, 0.0)
    asked = {"factory": case.name, "depth": case.shape.depth, "lr": 0.0, "seed": case.seed, "steps": updates}
    return loop.cell(made, loop.record(made, updates, ramped=updates == UPDATES), **asked)


def measure(case: Case, data: Path, keep: Path | None) -> CorpusRow:
    """Probe and train one case; what a worker does."""
    from stabkit.own.watch.watch import Watch
    from studies.own import training

    seen, refused = probed(case, data)
    level = training.task(case, data).frequencies
    reference = _reference(case, data, keep)
    with tempfile.TemporaryDirectory() as aside:
        alarms: dict[str, int] = {}

        def watching(model: Any, own: Sequence[Any]) -> Any:
            return AlarmRecorder(Watch(model, own, out=keep / case.name if keep else aside, warn=False), alarms)

        ended = training.trained(case, data, reference, watching=watching)
    return row(case, seen, refused, level, reference, ended, alarms)


def row(
    case: Case, seen: OwnMeasured | None, refused: str, level: float, reference: float, ended: Trained,
    alarms: Mapping[str, int],
) -> CorpusRow:  # fmt: skip
    """Of what a probe measured and what became of the training."""
    return CorpusRow(
        case=case,
        measured=seen,
        ends=ended.word,
        updates=ended.updates,
        level=level,
        reference=reference,
        held_out=ended.held_out,
        losses=ended.losses,
        alarms=alarms,
        refused=refused,
    )


def measured_again(rows: Sequence[CorpusRow], data: Path, workers: int) -> list[CorpusRow]:
    """The rows with what today's probe measures; nothing is trained."""
    with ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn")) as pool:
        answers = pool.map(probed, [row.case for row in rows], [data] * len(rows))
        return [
            replace(row, measured=seen, refused=refused) for row, (seen, refused) in zip(rows, answers, strict=True)
        ]


class AlarmRecorder:
    """A watch whose alarms are kept when it is closed."""

    def __init__(self, watch: Any, alarms: dict[str, int]) -> None:
        self.watch, self.alarms = watch, alarms
        self.loss = watch.loss

    def close(self) -> None:
        self.watch.close()
        self.alarms.update({alarm.link: alarm.step for alarm in self.watch.warnings})
        if self.watch.ended != "closed":
            self.alarms["ended early"] = self.watch.steps


def _folder(path: Path) -> Path:
    path.mkdir(parents=True, exist_ok=True)
    return path


def _reference(case: Case, data: Path, keep: Path | None) -> float:
    """That of a task and a width; kept, where there is a folder for it."""
    from studies.own import training

    file = None if keep is None else _folder(keep) / f"reference-{case.task}-{case.shape.width}.json"
    if file is not None and file.exists():
        return float(json.loads(file.read_text()))
    value = training.reference(case, data)
    if file is not None:
        write_file(file, json.dumps(value if math.isfinite(value) else "nan").encode())
    return value
