"""Are the changes that a probe names worth it? Each on a model of the judging part that fails.

The changes are tried in the order that the broken link gives, CHANGES_TRIED at most, as the command does: what passes
its forecast is trained SIDE_BY_SIDE updates, and the first that is seen to train is named. With it the model is
trained as the corpus' models were: same batches, seed, updates, reference. What has a row is not tried again.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from stabkit.results.own.measured import UPDATES
from studies.own.corpus import CorpusRow
from studies.own.design import cases
from studies.own.judge import Counted, judged
from studies.pool import in_turn

COLUMNS = ("number", "case", "word", "cure", "ends", "held_out", "tried")
CHANGES_TRIED = 8
"""Changes that are tried of one model."""


@dataclass(frozen=True)
class CuredRow:
    """One model, its cure, and what became of it with it."""

    number: int
    case: str
    word: str
    """What the command says of the model as it is."""
    cure: str
    """Its key; "" where no change was seen to train."""
    ends: str
    """"" without a cure."""
    held_out: float
    tried: Mapping[str, tuple[str, str]]
    """{change: (word, basis)}; JSON in the file."""


def candidates(counted: Counted) -> list[tuple[CorpusRow, str]]:
    """(row, word) of models that fail, where the command says that they do or probably do."""
    both = zip(counted.rows, counted.words, strict=True)
    return [(row, word) for row, word in both if row.fails and word in ("fails", "probably fails")]


def read(path: Path) -> dict[int, CuredRow]:
    """{number: row}."""
    if not path.exists():
        return {}
    with path.open(newline="", encoding="utf-8") as file:
        return {
            int(own["number"]): CuredRow(
                **{
                    **own,
                    "number": int(own["number"]),
                    "held_out": float(own["held_out"]),
                    "tried": {key: tuple(said) for key, said in json.loads(own["tried"]).items()},
                }  # type: ignore[arg-type]
            )
            for own in csv.DictReader(file)
        }


def write(path: Path, rows: Mapping[int, CuredRow]) -> None:
    """The file, whole, by number."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        for _, row in sorted(rows.items()):
            kept = {name: getattr(row, name) for name in COLUMNS}
            writer.writerow({**kept, "held_out": f"{row.held_out:.4g}", "tried": json.dumps(row.tried)})


def run(path: Path, rows: Sequence[CorpusRow], data: Path, minutes: float, workers: int = 2) -> None:
    """Try what has no row, as long as the minutes last."""
    done = read(path)
    wanted = [one for one in candidates(judged(rows)) if one[0].case.number not in done]
    left = iter(sorted(wanted, key=lambda one: one[0].case.slow))

    def ended(job: tuple[CorpusRow, str], row: CuredRow) -> str:
        done[row.number] = row
        write(path, done)
        return f"{len(done)} rows, {row.case} {row.word} {row.cure or '-'} {row.ends}"

    in_turn(lambda _: next(left, None), partial(_cured, data=data), ended, minutes=minutes, workers=workers)


def _cured(job: tuple[CorpusRow, str], data: Path) -> CuredRow:
    row, said = job
    return cured(row.case.number, said, row.reference, data)


def cured(number: int, said: str, reference: float, data: Path) -> CuredRow:
    """Of one case; what a worker does."""
    import torch

    from stabkit.own.probe import loop, onward
    from stabkit.own.probe.built_model import make
    from stabkit.own.probe.changes import changed
    from stabkit.own.probe.job import goes_on
    from stabkit.results.own.cure import SIDE_BY_SIDE, cure, first_tried
    from stabkit.results.own.verdict import verdict
    from studies.own import training

    torch.set_num_threads(1)
    case = next(case for case in cases() if case.number == number)
    factory, tried = training.factory(case, data), dict[str, tuple[str, str]]()
    asked: dict[str, Any] = {"factory": case.name, "depth": case.shape.depth, "lr": 0.0, "seed": case.seed}

    def probed(key: str) -> Any:
        made = make(factory, case.name, case.shape.depth, case.seed, 0.0)
        if key and (made := changed(made, key)) is None:  # type: ignore[assignment]
            return None
        cell = loop.cell(made, loop.record(made, UPDATES, ramped=True), steps=UPDATES, change=key, **asked)
        going = key and goes_on("passing", cell)
        return onward.trained(made, cell, lambda *told: None, updates=SIDE_BY_SIDE) if going else cell

    as_it_is = probed("")
    for key in first_tried(verdict([as_it_is]), [as_it_is]):
        if len(tried) == CHANGES_TRIED:
            break
        if (cell := probed(key)) is not None:
            one = cure(cell)
            tried[key] = one.word, one.basis
            if tried[key] == ("trains", "seen"):
                ended = training.trained(case, data, reference, change=_as_built(key, case.name))
                return CuredRow(number, case.name, said, key, ended.word, ended.held_out, tried)
    return CuredRow(number, case.name, said, "", "", 0.0, tried)


def _as_built(key: str, name: str) -> Callable[[Any], Any]:
    """The change, of what a factory returned: (model, loss, optimizers, schedulers)."""

    def change(given: Any) -> Any:
        from stabkit.own.probe.built_model import make
        from stabkit.own.probe.changes import changed

        model, loss, own, schedules = given
        made = changed(make(lambda: (model, loss, own, schedules), name, None, 0, 0.0), key)
        assert made is not None
        return model, loss, list(made.optimizers), list(made.schedule.schedulers)

    return change
