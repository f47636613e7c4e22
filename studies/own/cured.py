"""Are the changes that a probe names worth it? Each on a model of the judging part that is not likely to train.

The changes are tried in their order by probes of sixteen updates; the first that makes the model `likely trains` is its
cure, and the model is trained with it as the corpus' models were: same batches, seed, updates, reference.
"""

from __future__ import annotations

import csv
import multiprocessing
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stabkit.results.own.forecast import ours
from stabkit.results.own.measured import UPDATES
from studies.own.corpus import CorpusRow
from studies.own.design import cases
from studies.own.judge import Counted, judged, told

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
    tried: str
    """`rate/3 0.2; rate/10 0.95`."""


def wanted(rows: Sequence[CorpusRow]) -> list[CorpusRow]:
    """Rows of the judging part that are told `likely stuck` or `open`."""
    counted: Counted = judged(rows)
    return counted.of("likely stuck", "open")


def read(path: Path) -> dict[int, CuredRow]:
    """{number: row}."""
    if not path.exists():
        return {}
    with path.open(newline="", encoding="utf-8") as file:
        return {
            int(own["number"]): CuredRow(
                **{**own, "number": int(own["number"]), **{k: float(own[k]) for k in ("p", "cured_p", "held_out")}}  # type: ignore[arg-type]
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
            writer.writerow({**{name: getattr(row, name) for name in COLUMNS}, **numbers})


def run(path: Path, rows: Sequence[CorpusRow], data: Path, minutes: float, workers: int = 2) -> None:
    """Try what has no row, as long as the minutes last."""
    done = read(path)
    left = iter([row for row in wanted(rows) if row.case.number not in done])
    begin = time.monotonic()
    with ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn")) as pool:
        waiting: set[Future[CuredRow]] = set()

        def more() -> Iterator[CorpusRow]:
            while len(waiting) < workers and time.monotonic() - begin < 60 * minutes:
                row = next(left, None)
                if row is None:
                    return
                yield row

        while True:
            for row in more():
                waiting.add(pool.submit(cured, row.case.number, told(row, ours()) or 0.0, row.reference, data))
            if not waiting:
                return
            ended, waiting = wait(waiting, return_when=FIRST_COMPLETED)
            for future in ended:
                own = future.result()
                done[own.number] = own
                write(path, done)
                print(f"{len(done)} rows: {own.case} {own.word} {own.cure or '-'} {own.ends}", flush=True)


def cured(number: int, p: float, reference: float, data: Path) -> CuredRow:
    """Of one case; what a worker does."""
    import torch

    from stabkit.own.probe import loop
    from stabkit.own.probe.built_model import make
    from stabkit.own.probe.changes import changed
    from stabkit.results.forecast.logistic import LIKELY, word
    from stabkit.results.own.cure import CHANGES
    from stabkit.results.own.forecast import of_cell
    from studies.own import training

    torch.set_num_threads(1)
    case = next(case for case in cases() if case.number == number)
    factory = training.factory(case, data)
    tried: list[tuple[str, float]] = []
    for change in CHANGES:
        made = changed(make(factory, case.name, case.shape.depth, case.seed, 0.0), change.key)
        if made is None:
            continue
        asked: dict[str, Any] = {"factory": case.name, "depth": case.shape.depth, "lr": 0.0, "seed": case.seed}
        cell = loop.cell(made, loop.record(made, UPDATES, ramped=True), steps=UPDATES, change=change.key, **asked)
        probability, _ = of_cell(cell, ours())
        if probability is not None:
            tried.append((change.key, probability))
            if probability >= LIKELY:
                break
    text = "; ".join(f"{key} {value:.2f}" for key, value in tried)
    said = str(word(p))
    if not tried or tried[-1][1] < LIKELY:
        return CuredRow(number, case.name, said, p, "", 0.0, "", 0.0, text)
    key, value = tried[-1]
    ended = training.trained(case, data, reference, change=_as_made(key, case.name))
    return CuredRow(number, case.name, said, p, key, value, ended.word, ended.held_out, text)


def _as_made(key: str, name: str) -> Callable[[Any], Any]:
    """The change, of what a factory returned: (model, loss, optimizers, schedulers)."""

    def change(given: Any) -> Any:
        from stabkit.own.probe.built_model import make
        from stabkit.own.probe.changes import changed

        model, loss, own, schedules = given
        made = changed(make(lambda: (model, loss, own, schedules), name, None, 0, 0.0), key)
        assert made is not None
        return model, loss, list(made.optimizers), list(made.schedule.schedulers)

    return change
