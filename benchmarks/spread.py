"""How far each claim's number spreads over five seeds: benchmarks/spread.py DATA OUT [NUMBER…].

Writes stabkit/claims/spread.csv. Trains what OUT lacks of the commands below (all, or those of these numbers), on
Multi30k; every claim is measured on every place with five seeds, by its own function, and the range over the five is
what one seed must lie off the threshold by (`claims/spread.py`). Half an hour on two cores; rows are written
command by command; those of commands that were not asked for stay where some were, and go where all are. NUMBER
`later`, the last of all: from the rows of docs/later.csv, whose runs at 6 and 18 layers have five seeds; a second.
"""

from __future__ import annotations

import csv
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from stabkit.claims import CLAIMS, OF_STEPS, OF_SURFACES, OF_TODAY
from stabkit.claims.base import Claim
from stabkit.claims.spread import FILE, SEEDS, width
from stabkit.figures.shared.once import Runs
from stabkit.figures.shared.surfaces import Landscape
from stabkit.storage.shelf import Shelf
from stabkit.storage.store import Store
from stabkit.storage.surfaces import SURFACE
from studies import row_run, study
from studies.forecast import later

COMMANDS = (
    "sweep --depths 6,18,50 --seeds 0..4",
    "sweep --models pre-ln --depths 6,18 --seeds 0..4",
    "slope --models post-ln,post-ln-init,admin,deepnorm --depths 6,18,50 --seeds 0..4",
    "slope --models deepnorm,sub-ln,sub-ln:gain=one --arch encoder-only --depths 6,18,50 --seeds 0..4",
    "sweep --depths 18 --steps 250 --warmup 0 --seeds 0..4",
    "sweep --depths 6 --steps 250 --warmup 0 --seeds 0..4",
    "landscape --model deepnorm --seeds 0..4 --points 3 --path none",
)
COLUMNS = ("claim", "where", "setting")
ROWS = Path(__file__).resolve().parents[1] / "docs" / "later.csv"
TABLE = Path(__file__).resolve().parents[1] / "stabkit" / "claims" / FILE


def main(data: str, out: str, *numbers: str) -> None:
    rows = there() if numbers else {}
    for number, command in enumerate(COMMANDS):
        if numbers and str(number) not in numbers:
            continue
        store = Path(out) / str(number)
        text = ["--data", data, "--source", "de", "--target", "en"]
        print(number, command, flush=True)
        subprocess.run(
            [sys.executable, "-m", "stabkit", *command.split(), *text, "--out", str(store), "--quiet"],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        rows |= measured(store)
        write(rows)
    if not numbers or "later" in numbers:
        write(rows | spreads(of_later(data), OF_TODAY))


def write(rows: dict[tuple[str, ...], float]) -> None:
    """The file, whole."""
    with open(TABLE, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow((*COLUMNS, "spread"))
        writer.writerows((*key, f"{value:.4g}") for key, value in sorted(rows.items()))
    print(f"{len(rows)} places of {len({key[0] for key in rows})} claims: {TABLE}", flush=True)


def there() -> dict[tuple[str, ...], float]:
    """The rows that there are."""
    with open(TABLE, encoding="utf-8") as file:
        return {tuple(row[name] for name in COLUMNS): float(row["spread"]) for row in csv.DictReader(file)}


def of_later(data: str) -> Runs:
    """The runs with five seeds of the methods that came later, as their rows have them."""
    text = {"data": data, "source": "de", "target": "en", "out": str(ROWS.parent)}
    requests, commands = study.requests(later.DESIGN, text)
    begun = study.begun(later.DESIGN, commands, requests, ROWS)
    return row_run.runs(begun, lambda spec: spec.seed != later.SEED)


def measured(folder: Path) -> dict[tuple[str, ...], float]:
    """The spread of every claim at every place of a store that has five seeds."""
    store, rows = Store(folder), dict[tuple[str, ...], float]()
    every = [store.load(run_id) for run_id in store.ids()]
    trained, steps = (Runs(run for run in every if run.spec.single_step is single) for single in (False, True))
    shelf = Shelf(SURFACE, folder)
    drawn = Landscape(every, [shelf.load(surface_id) for surface_id in shelf.ids()])
    for source, some in ((trained, CLAIMS), (steps, OF_STEPS), (drawn, OF_SURFACES)):
        rows |= spreads(source, some)
    return rows


def spreads(source: Any, some: Sequence[Claim]) -> dict[tuple[str, ...], float]:
    """Of some claims, measured on these runs or surfaces."""
    rows = dict[tuple[str, ...], float]()
    for claim in some:
        for found in claim.find(source):
            values = [value for _, value in sorted(found.values.items())][:SEEDS]
            if len(values) == SEEDS and found.interval is None:
                key = (claim.key, *found.key)
                rows[key] = max(rows.get(key, 0.0), width(values, claim.scale))
    return rows


if __name__ == "__main__":
    main(*sys.argv[1:])
