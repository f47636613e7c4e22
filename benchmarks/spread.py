"""How far each claim's number spreads over five seeds: benchmarks/spread.py DATA OUT → stabkit/claims/spread.csv.

Trains what OUT lacks of the commands below, on Multi30k; every claim is measured on every place with five seeds, by its
own function, and the range over the five is what one seed must lie off the threshold by (`claims/spread.py`). An hour
on two cores; a command that has its runs is not trained again.
"""

from __future__ import annotations

import csv
import subprocess
import sys
from pathlib import Path

from stabkit.claims import CLAIMS, OF_STEPS
from stabkit.claims.spread import FILE, SEEDS, width
from stabkit.figures.quick.once import Runs
from stabkit.storage.store import Store

COMMANDS = (
    "sweep --depths 6,18,50 --seeds 0..4",
    "sweep --models pre-ln --depths 6,18 --seeds 0..4",
    "slope --models post-ln,post-ln-init,admin,deepnorm --depths 6,18,50 --seeds 0..4",
    "slope --models deepnorm,sub-ln,sub-ln:gain=one --arch encoder-only --depths 6,18,50 --seeds 0..4",
    "sweep --depths 18 --steps 250 --warmup 0 --seeds 0..4",
    "sweep --depths 6 --steps 250 --warmup 0 --seeds 0..4",
)
TABLE = Path(__file__).resolve().parents[1] / "stabkit" / "claims" / FILE


def main(data: str, out: str) -> None:
    rows: dict[tuple[str, str, str], float] = {}
    for number, command in enumerate(COMMANDS):
        store = Path(out) / str(number)
        text = ["--data", data, "--source", "de", "--target", "en"]
        print(command, flush=True)
        subprocess.run(
            [sys.executable, "-m", "stabkit", *command.split(), *text, "--out", str(store), "--quiet"], check=True
        )
        held = Store(store)
        runs = [held.load(run_id) for run_id in held.ids()]
        for single, claims in ((False, CLAIMS), (True, OF_STEPS)):
            own = Runs(run for run in runs if run.spec.single_step is single)
            for claim in claims:
                for found in claim.find(own):
                    if len(found.values) >= SEEDS and found.interval is None:
                        values = [value for _, value in sorted(found.values.items())][:SEEDS]
                        key = (claim.key, found.where, found.condition)
                        rows[key] = max(rows.get(key, 0.0), width(values, claim.scale))
    with open(TABLE, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("claim", "where", "condition", "spread"))
        writer.writerows((*key, f"{value:.4g}") for key, value in sorted(rows.items()))
    print(f"{len(rows)} places of {len({key[0] for key in rows})} claims: {TABLE}")


if __name__ == "__main__":
    main(*sys.argv[1:])
