"""Is a tolerated rate the truth? Ten cells, drawn by a seed before any search, each trained to a verdict around it.

    python benchmarks/tolerated.py DATA OUT [docs/tolerance.csv]

`stabkit tolerance` searches each cell by forecasts; then a seed that it has not seen trains at half the rate found, at
the rate and at twice it, 250 updates of 256 tokens without warm-up, early ones up to 800; further by factors of two
until one trains and one does not. A row a cell: the rate found, the bracket of the truth (the highest rate that trains,
and twice it, which does not), and the factors between what was found and either end: the truth lies between `least` and
`most` times the rate found. About half an hour on two cores; a cell that has a row is not done again. The cells are of
methods, depths and a task that the forecast was fitted on; the seed that is trained is not.
"""

from __future__ import annotations

import csv
import json
import random
import subprocess
import sys
from pathlib import Path

from stabkit import methods

SEED, CELLS, DEPTHS = 20, 10, (6, 12, 18, 30)
UNSEEN = "7"
"""The search has seeds 0 to 2."""
LOWEST, HIGHEST = 2.5e-5, 0.24
COLUMNS = ("model", "depth", "found", "passes", "fails", "trains_at", "fails_at", "least", "most")


def cells() -> list[tuple[str, int]]:
    """The cells, drawn: (method, depth), encoder-decoder."""
    every = [(key, depth) for key in methods.SETS["papers"] for depth in DEPTHS]
    return random.Random(SEED).sample(every, CELLS)


def stabkit(*args: object) -> dict[str, object]:
    done = subprocess.run(
        [sys.executable, "-m", "stabkit", *map(str, args), "--json", "--quiet"], capture_output=True, text=True
    )
    if done.returncode:
        sys.exit(done.stderr)
    found: dict[str, object] = json.loads(done.stdout)
    return found


def trains(model: str, depth: int, rates: list[float], text: list[str]) -> dict[float, bool | None]:
    """Whether the unseen seed trains at each rate; None where it is early at update 800."""
    found = stabkit(
        *("sweep", "--models", model, "--depths", depth, "--lr", ",".join(f"{rate:.3g}" for rate in rates)),
        *("--warmup", 0, "--seeds", UNSEEN, "--steps", 800, "--verdict-at", 250, *text),
    )
    ends = [run["outcome"] for run in sorted(found["runs"], key=lambda run: run["spec"]["train"].get("lr", 5e-4))]  # type: ignore[call-overload]
    print("  " + ", ".join(f"{rate:.3g} {end}" for rate, end in zip(rates, ends, strict=True)), flush=True)
    return {rate: None if end == "early" else end == "trains" for rate, end in zip(rates, ends, strict=True)}


def truth(model: str, depth: int, found: float, text: list[str]) -> tuple[float | None, float | None]:
    """(the highest rate that trains, the lowest above it that does not), by factors of two around what was found."""
    ends = trains(model, depth, [found / 2, found, 2 * found], text)
    while not any(ends.values()) and min(ends) > LOWEST:
        ends |= trains(model, depth, [min(ends) / 2], text)
    while ends[max(ends)] is not False and max(ends) < HIGHEST:
        ends |= trains(model, depth, [2 * max(ends)], text)
    top = max((rate for rate, well in ends.items() if well), default=None)
    return top, min(
        (rate for rate, well in ends.items() if well is False and (top is None or rate > top)), default=None
    )


def main(data: str, out: str, file: str = "docs/tolerance.csv") -> None:
    text = ["--data", data, "--source", "de", "--target", "en", "--out", out]
    path = Path(file)
    rows = list(csv.DictReader(path.open())) if path.exists() else []
    for model, depth in cells():
        if any(row["model"] == model and int(row["depth"]) == depth for row in rows):
            continue
        said = stabkit("tolerance", "--models", model, "--depths", depth, *text)
        (one,) = said["tolerance"]  # type: ignore[misc]
        passes, fails = one["bracket"]
        found = passes or fails / 1.25
        print(f"{model} {depth}L: {one['words']}", flush=True)
        top, above = truth(model, depth, found, text)
        least, most = ("" if end is None else f"{end / found:.2f}" for end in (top, above))
        row = (model, depth, one["words"], passes, fails, top, above, least, most)
        rows.append(dict(zip(COLUMNS, row, strict=True)))
        with path.open("w", newline="") as to:
            writer = csv.DictWriter(to, COLUMNS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
    trained = sum(bool(row["least"]) and float(row["least"]) >= 1 for row in rows)
    near = sum(bool(row["least"]) and float(row["least"]) >= 0.5 and float(row["most"]) <= 2 for row in rows)
    print(f"the rate found trains in {trained} of {len(rows)} cells; the truth is within a factor 2 of it in {near}")


if __name__ == "__main__":
    main(*sys.argv[1:])
