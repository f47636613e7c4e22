"""Are the changes that a probe names worth it? Each on a model of the judging part that is not likely to train.

The changes are tried in their order by probes of sixteen updates, then two together; the first that makes the model
`likely trains` is its cure, and the model is trained with it as the corpus' models were: same batches, seed, updates,
reference. What a row has tried is not tried again.
"""

from __future__ import annotations

import csv
import json
import multiprocessing
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stabkit.results.own.cure import together
from stabkit.results.own.judged import TRIED
from stabkit.results.own.measured import UPDATES
from stabkit.results.own.rules import Word
from studies.own.corpus import CorpusRow
from studies.own.design import cases
from studies.own.judge import judged

COLUMNS = ("number", "case", "word", "p", "cure", "cured_p", "ends", "held_out", "tried")


@dataclass(frozen=True)
class CuredRow:
    """One model, its cure, and what became of it with it."""

    number: int
    case: str
    word: str
    p: float
    cure: str
    """Its key; "" where no change made it likely to train."""
    cured_p: float
    ends: str
    """"" without a cure."""
    held_out: float
    tried: Mapping[str, tuple[Word, float]]
    """{change: (word, probability)}; JSON in the file."""


def candidates(rows: Sequence[CorpusRow]) -> list[tuple[CorpusRow, str, float]]:
    """(row, word, probability) of the judging part where the word is one at which changes are tried."""
    counted = judged(rows)
    return [
        (row, word, 0.0 if p is None else p)
        for row, word, p in zip(counted.rows, counted.words, counted.p, strict=True)
        if word in TRIED
    ]


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
                    **{k: float(own[k]) for k in ("p", "cured_p", "held_out")},
                    "tried": {key: (word, p) for key, (word, p) in json.loads(own["tried"]).items()},
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
            numbers = {name: f"{getattr(row, name):.4g}" for name in ("p", "cured_p", "held_out")}
            tried = {key: (word, round(p, 2)) for key, (word, p) in row.tried.items()}
            kept = {name: getattr(row, name) for name in COLUMNS}
            writer.writerow({**kept, **numbers, "tried": json.dumps(tried)})


def run(path: Path, rows: Sequence[CorpusRow], data: Path, minutes: float, workers: int = 2) -> None:
    """Try what has no row, as long as the minutes last."""
    done = read(path)
    known = {number: row.tried for number, row in done.items()}
    numbers = {number for number, changes in known.items() if not together(changes)}
    left = iter([one for one in candidates(rows) if one[0].case.number not in numbers])
    begin = time.monotonic()
    with ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn")) as pool:
        waiting: set[Future[CuredRow]] = set()

        def more() -> Iterator[tuple[CorpusRow, str, float]]:
            while len(waiting) < workers and time.monotonic() - begin < 60 * minutes:
                following = next(left, None)
                if following is None:
                    return
                yield following

        while True:
            for row, said, p in more():
                waiting.add(
                    pool.submit(cured, row.case.number, said, p, row.reference, data, known.get(row.case.number))
                )
            if not waiting:
                return
            ended, waiting = wait(waiting, return_when=FIRST_COMPLETED)
            for future in ended:
                own = future.result()
                done[own.number] = own
                write(path, done)
                print(f"{len(done)} rows: {own.case} {own.word} {own.cure or '-'} {own.ends}", flush=True)


def cured(
    number: int, said: str, p: float, reference: float, data: Path, known: Mapping[str, tuple[Word, float]] | None
) -> CuredRow:
    """Of one case; what a worker does. `known`: what its row has tried."""
    import torch

    from stabkit.own.probe import loop
    from stabkit.own.probe.built_model import make
    from stabkit.own.probe.changes import changed
    from stabkit.results.own.cure import CHANGES, cure
    from studies.own import training

    torch.set_num_threads(1)
    case = next(case for case in cases() if case.number == number)
    factory = training.factory(case, data)
    tried = dict(known or {})
    asked: dict[str, Any] = {"factory": case.name, "depth": case.shape.depth, "lr": 0.0, "seed": case.seed}

    def enough(key: str) -> bool:
        made = changed(make(factory, case.name, case.shape.depth, case.seed, 0.0), key)
        if made is not None:
            one = cure([loop.cell(made, loop.record(made, UPDATES, ramped=True), steps=UPDATES, change=key, **asked)])
            tried[key] = one.word, one.probability or 0.0
        return made is not None and one.word == "likely trains"

    single = () if known else tuple(change.key for change in CHANGES)
    found = next((key for key in single if enough(key)), "")
    if not found and (pair := together(tried)):
        found = pair if enough(pair) else ""
    if not found:
        return CuredRow(number, case.name, said, p, "", 0.0, "", 0.0, tried)
    ended = training.trained(case, data, reference, change=_as_built(found, case.name))
    return CuredRow(number, case.name, said, p, found, tried[found][1], ended.word, ended.held_out, tried)


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
