"""Does `--stop-when-decided` decide what the full run says? benchmarks/decided.py DATA OUT [PART…]: docs/decided.csv.

Every run is trained to its last update. The rule (`results.outcome.decided`) then reads its records up to each reading
of validation, as the training loop does, and the word at which it would have stopped is put beside the full run's. The
rule's constants were set on the 80 runs of docs/blind.csv (seeds 11 to 34), of which a limit on the ratio alone would
have stopped five that came back; these are of other seeds.

LATE are rates at which runs learn for a while before they collapse; `collapsed` in a row is the update at which the
gradient ratio vanished (`outcome.VANISHED`), of a run that had it for its first 20 updates. Runs stay in OUT:
what it holds is not trained again.
"""

from __future__ import annotations

import csv
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np

from stabkit.results.chain import gradient_ratio
from stabkit.results.outcome import VANISHED, decided, judge
from stabkit.results.records import Table
from stabkit.storage.store import Run, Store

ROWS = Path(__file__).resolve().parents[1] / "docs" / "decided.csv"
ALIVE = 20
COMMON = "--steps 250 --warmup 0 --max-tokens 128"
PARTS = {
    "both sides": "--models post-ln,post-ln-init,admin,deepnorm,pre-ln --depths 6,18 --lr 5e-4,2e-3 --seeds 3",
    "LATE, DeepNorm": "--models deepnorm --depths 6,12 --lr 6e-3,8e-3,1e-2 --seeds 3,4",
    "LATE, ADMIN and Post-LN-init": "--models post-ln-init,admin --depths 6,12 --lr 3e-3,6e-3 --seeds 3",
    "LATE, deeper": "--models deepnorm,post-ln-init --depths 18 --lr 4e-3,6e-3 --seeds 3",
    "other methods": "--models ds-init,rezero --depths 9 --lr 1e-3,8e-3 --seeds 3,4",
    "synthetic": "--models post-ln,deepnorm --depths 6,12 --lr 1e-3,6e-3 --seeds 3",
}
COLUMNS = (
    *("part", "run", "rate", "steps", "unigram", "validation"),
    *("outcome", "collapsed", "stopped", "decided", "agrees"),
)


def until(run: Run, step: int) -> dict[str, Table]:
    """The run's records as they stood after that update."""
    return {
        name: Table(table.steps[table.steps <= step], table.sites, table.values[table.steps <= step])
        for name, table in run.records.items()
    }


def collapsed(run: Run) -> int | None:
    """The update at which the gradient is gone of a run that had it for at least ALIVE updates."""
    table = run.records["grad_norm"]
    ratio = gradient_ratio(table)
    gone = np.flatnonzero(ratio < VANISHED)
    lived = bool((ratio[table.steps <= ALIVE] >= VANISHED).all())
    return int(table.steps[gone[0]]) if len(gone) and lived else None


def row(part: str, run: Run) -> dict[str, object]:
    unigram, warmup = float(run.kept["unigram_loss"]), run.spec.train.warmup
    stop = next(
        (int(t) for t in run.records["validation"].steps[:-1] if decided(until(run, int(t)), unigram, warmup)), None
    )
    word = judge(until(run, stop), unigram=unigram, warmup=warmup).outcome if stop is not None else ""
    end, loss = run.outcome.word, round(run.outcome.validation_loss, 4)
    fell = collapsed(run) if part.startswith("LATE") else None
    agrees = "" if stop is None else "yes" if word == end else "NO"
    values = (part, run.run_id, run.spec.train.lr, run.outcome.steps, round(unigram, 4), loss)
    values += (end, fell, stop, word, agrees)
    return dict(zip(COLUMNS, values, strict=True))


def trained(part: str, data: str, out: Path) -> list[dict[str, object]]:
    text = [] if part == "synthetic" else ["--data", data, "--source", "de", "--target", "en"]
    folder = out / part.replace(",", "").replace(" ", "-")
    sweep = [sys.executable, "-m", "stabkit", "sweep", *PARTS[part].split(), *COMMON.split(), *text]
    subprocess.run([*sweep, "--out", str(folder), "--json", "--quiet"], check=True, stdout=subprocess.DEVNULL)
    store = Store(folder)
    return [row(part, store.load(run_id)) for run_id in store.ids()]


def main(data: str, out: str, *parts: str) -> None:
    held = list(csv.DictReader(ROWS.read_text(encoding="utf-8").splitlines())) if ROWS.exists() else []
    for part in parts or PARTS:
        held = [one for one in held if one["part"] != part]
        held += [
            {name: str("" if v is None else v) for name, v in one.items()} for one in trained(part, data, Path(out))
        ]
        with ROWS.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(held)
    stopped = [one for one in held if one["stopped"]]
    print(f"{len(held)} runs: {dict(Counter(one['outcome'] for one in held))}")
    late = [one for one in held if one["part"].startswith("LATE")]
    print(f"{len(late)} at rates where runs collapse late; {sum(bool(one['collapsed']) for one in held)} did")
    ends = [one for one in held if one["outcome"] in ("stuck", "diverged")]
    mean = np.mean([int(one["stopped"]) for one in stopped]) if stopped else float("nan")
    print(f"{len(stopped)} of {len(ends)} stuck or diverged runs stopped early, after {mean:.0f} updates on average")
    print(f"decided otherwise than the full run: {sum(one['agrees'] == 'NO' for one in held)}")


if __name__ == "__main__":
    main(*sys.argv[1:])
