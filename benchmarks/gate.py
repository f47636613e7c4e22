"""How often a probe's gate raises an alarm although nothing changed but the draw: benchmarks/gate.py [MINUTES].

Models of the judging part that train are probed with four seeds more, as `--baseline` does with one; a row a model in
docs/evidence/own_gate.csv. A pair of seeds is an alarm where the second is less probable by DROP or more. Rows that
are there are not made again.
"""

from __future__ import annotations

import csv
import sys
import tempfile
import time
from itertools import permutations
from pathlib import Path

import stabkit
from stabkit.results.own.baseline import DROP
from studies.own.corpus import read
from studies.own.judge import judged

ROOT = Path(__file__).resolve().parents[1]
ROWS = ROOT / "docs" / "evidence" / "own_gate.csv"
SEEDS = (11, 12, 13, 14)
WORDS = ((0.95, 1.0), (0.9, 0.95), (0.5, 0.9), (0.1, 0.5))
"""The baseline's probability, from and to."""


def main(minutes: float) -> None:
    rows = there()
    begin = time.monotonic()
    for row in judged(list(read(ROOT / "docs" / "evidence" / "own_corpus.csv").values())).rows:
        case = row.case
        if not row.fails and case.number not in rows and time.monotonic() - begin < 60 * minutes:
            rows[case.number] = probed(f"studies.own.factories:case_{case.number:03d}", case.shape.depth)
            write(rows)
    for low, high in WORDS:
        alarms, count = told(rows, low, high)
        print(f"{low:g} to {high:g}: {alarms} of {count} pairs of seeds are alarms")


def probed(factory: str, depth: int) -> tuple[float | None, ...]:
    """With what probability the model trains, seed by seed."""
    with tempfile.TemporaryDirectory() as out:
        found = stabkit.probe(factory, depths=(depth,), seeds=SEEDS, quick=True, out=out)
        return tuple(found.judged.of_seeds(found.judged.worst.lr))


def told(rows: dict[int, tuple[float | None, ...]], low: float, high: float) -> tuple[int, int]:
    """(alarms, pairs) of which the first seed's probability lies between these."""
    pairs = [
        (one, other)
        for seeds in rows.values()
        for one, other in permutations([p for p in seeds if p is not None], 2)
        if low <= one < high
    ]
    return sum(one - other >= DROP for one, other in pairs), len(pairs)


def there() -> dict[int, tuple[float | None, ...]]:
    """The rows that there are."""
    if not ROWS.exists():
        return {}
    with ROWS.open(encoding="utf-8", newline="") as file:
        return {
            int(row["number"]): tuple(float(row[f"seed_{seed}"]) if row[f"seed_{seed}"] else None for seed in SEEDS)
            for row in csv.DictReader(file)
        }


def write(rows: dict[int, tuple[float | None, ...]]) -> None:
    """The file, whole."""
    with ROWS.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("number", *(f"seed_{seed}" for seed in SEEDS)))
        writer.writerows(
            (number, *("" if p is None else f"{p:.4f}" for p in seeds)) for number, seeds in sorted(rows.items())
        )


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 0.0)
