"""How often does a model begin to learn after a short training has seen nothing of it?

    python -m studies.own.slow gpt2 --depths 12 --lr 1e-3,3e-3 --seeds 0..3

Each model is trained as `stabkit probe --steps` trains it, until it has learnt or for HORIZON updates; a row says how
much of the way it had gone after every EVERY. What has a row is not trained again. `counted` is what
`results/own/outcome.SLOW` states.
"""

from __future__ import annotations

import argparse
import csv
import math
import platform
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import stabkit
from stabkit.options import ranges
from stabkit.results.own.cell import ModelCell
from stabkit.results.own.outcome import LAST, LEARNT, NOTHING, Slow, recent

FILE = Path(__file__).parents[2] / "docs" / "slow.csv"
HORIZON, EVERY = 1800, 150
AFTER = tuple(range(EVERY, HORIZON + 1, EVERY))
HEADS = ("model", "depth", "lr", "seed", *(f"after_{t}" for t in AFTER), "processor")


@dataclass(frozen=True)
class SlowRow:
    """One training."""

    model: str
    depth: int
    lr: float
    seed: int
    ways: tuple[float, ...]
    """After EVERY, 2·EVERY …: of the way; of one that has learnt and ended, what it ended with."""
    processor: str = ""

    @property
    def key(self) -> tuple[str, int, float, int]:
        return self.model, self.depth, self.lr, self.seed


def row(model: str, cell: ModelCell) -> SlowRow:
    """Of a cell of a probe."""
    facts, losses = cell.facts, cell.records["loss"].at("train")
    level, least = facts.frequencies or math.nan, facts.entropy or math.nan
    known = [losses[: t + 1] for t in AFTER]
    ways = tuple(round((level - recent(some)) / (level - least), 4) for some in known)
    return SlowRow(model, facts.depth or 0, facts.lr, facts.seed, ways, platform.processor() or platform.machine())


def read(path: Path = FILE) -> list[SlowRow]:
    """The rows; none where there is no file."""
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return [
            SlowRow(
                one["model"], int(one["depth"]), float(one["lr"]), int(one["seed"]),
                tuple(float(one[f"after_{t}"]) for t in AFTER), one["processor"],
            )
            for one in csv.DictReader(file)
        ]  # fmt: skip


def write(rows: Sequence[SlowRow], path: Path = FILE) -> None:
    """All of them, in order."""
    with path.open("w", newline="", encoding="utf-8") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(HEADS)
        for one in sorted(rows, key=lambda one: one.key):
            out.writerow((one.model, one.depth, f"{one.lr:g}", one.seed, *(f"{w:g}" for w in one.ways), one.processor))


def counted(rows: Sequence[SlowRow], updates: int) -> Slow:
    """Of those that had learnt nothing after so many updates, how many had LEARNT at the HORIZON."""
    at = AFTER.index(updates)
    lost = [one for one in rows if one.ways[at] <= NOTHING]
    return Slow(updates, sum(one.ways[-1] >= LEARNT for one in lost), len(lost))


def main(arguments: Sequence[str]) -> int:
    """Train what has no row."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    for name, default in (("depths", "12"), ("lr", "1e-3"), ("seeds", "0..3"), ("workers", "auto")):
        parser.add_argument(f"--{name}", default=default)
    parser.add_argument("--rows", default=str(FILE))
    asked = parser.parse_args(arguments)
    path, here = Path(asked.rows), {one.key for one in read(Path(asked.rows))}
    depths, seeds = (ranges.wholes(f"--{name}", getattr(asked, name), 0, 1000) for name in ("depths", "seeds"))
    for depth in depths:
        every = ranges.reals("--lr", asked.lr, 0.0, 1.0)
        rates = [lr for lr in every if any((asked.model, depth, lr, seed) not in here for seed in seeds)]
        if not rates:
            continue
        with tempfile.TemporaryDirectory() as out:
            made = stabkit.probe(
                f"studies.own.slow_models:{asked.model}", depths=depth, lr=rates, seeds=seeds, steps=HORIZON,
                out=out, workers=asked.workers,
            )  # fmt: skip
        made_now = (row(asked.model, cell) for cell in made.judged.cells if not cell.facts.broke)
        rows = [one for one in made_now if one.key not in here]
        write([*read(path), *rows], path)
        for one in rows:
            print(one.key, one.ways, flush=True)
    return 0


if __name__ == "__main__":
    assert LAST < EVERY
    sys.exit(main(sys.argv[1:]))
