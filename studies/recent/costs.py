"""What a step costs, as `benchmarks/step_cost.py` measured it: docs/evidence/step_cost.csv, beside the rows."""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from stabkit.errors import StoreError
from stabkit.results.intervals import Interval

FILE = "step_cost.csv"
READ = ("kind", "name", "ratio", "low", "high", "second", "second_low", "second_high")


@dataclass(frozen=True, slots=True)
class StepCost:
    """Of a method under AdamW, or of an optimiser with Pre-LN."""

    kind: str
    """method, or optimizer."""
    name: str
    ratio: Interval
    """A step's time over Pre-LN's, or over Adam's."""
    second: Interval | None
    """What its second implementation takes over ours; None where there is none."""


def costs(path: Path) -> list[StepCost]:
    """Those of a file; none where it was not measured. Raises StoreError for a file that is none."""
    if not path.exists():
        return []
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = csv.DictReader(file, strict=True)
            if not set(READ) <= set(rows.fieldnames or ()):
                raise ValueError(f"its first line must name {', '.join(READ)}")
            return [_cost(row) for row in rows]
    except (OSError, UnicodeDecodeError, csv.Error, TypeError, ValueError) as error:
        raise StoreError(
            f"{path}: not the steps' times of benchmarks.step_cost ({type(error).__name__}: {error}); write it anew or "
            "move it away"
        ) from error


def _cost(row: Mapping[str, str]) -> StepCost:
    second = _ratio(row, "second", "second_low", "second_high") if row["second"] else None
    return StepCost(row["kind"], row["name"], _ratio(row, "ratio", "low", "high"), second)


def _ratio(row: Mapping[str, str], *names: str) -> Interval:
    value, low, high = (float(row[name]) for name in names)
    if not 0 < low <= value <= high < math.inf:
        raise ValueError(f"{value:g} ({low:g} to {high:g}) is no ratio of two times within its interval")
    return Interval(value, low, high)
