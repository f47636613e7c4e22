"""Trials as rows of docs/transfer.csv: what has a row is not trained again."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from stabkit.results.valley import Trial
from stabkit.storage.folder import write_file

COLUMNS = ("case", "depth", "lr", "seed", "loss", "trains")


class CarriedRow(NamedTuple):
    """Which trial."""

    case: str
    depth: int
    lr: float
    seed: int


Rows = dict[CarriedRow, Trial]


def read(path: Path) -> Rows:
    """The rows of a file; none where there is none."""
    if not path.exists():
        return {}
    with path.open(encoding="utf-8", newline="") as file:
        return {
            CarriedRow(row["case"], int(row["depth"]), float(row["lr"]), int(row["seed"])): Trial(
                float(row["loss"] or math.inf), row["trains"] == "yes"
            )
            for row in csv.DictReader(file)
        }


def write(path: Path, rows: Mapping[CarriedRow, Trial]) -> None:
    """The file, whole, in the order of the rows' keys."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row, trial in sorted(rows.items()):
        loss = repr(trial.loss) if math.isfinite(trial.loss) else ""
        writer.writerow((*row[:2], repr(row.lr), row.seed, loss, "yes" if trial.trains else "no"))
    write_file(path, out.getvalue().encode())
