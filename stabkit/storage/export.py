"""The records as one long table, for other tools.

A row is (run, step, probe, site, value). Values that are not finite are nan, inf and -inf: words in CSV, the strings
"nan", "inf" and "-inf" in JSON lines, which stay strict.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol, TextIO

from stabkit.results.records import Table, jsonable

KINDS = ("csv", "jsonl")
COLUMNS = ("run", "step", "probe", "site", "value")


class HasRecords(Protocol):
    """A run, or a watch of a user's training."""

    @property
    def run_id(self) -> str: ...

    @property
    def records(self) -> Mapping[str, Table]: ...


def rows(runs: Sequence[HasRecords]) -> Iterator[tuple[object, ...]]:
    """Every recorded value, in the order of runs, probes, steps and sites."""
    for run in runs:
        for probe, table in sorted(run.records.items()):
            for step, values in zip(table.steps.tolist(), table.values.tolist(), strict=True):
                for site, value in zip(table.sites, values, strict=True):
                    yield run.run_id, step, probe, site, value


def write(runs: Sequence[HasRecords], to: str, out: TextIO) -> None:
    """Their rows as text, csv or jsonl, as they come."""
    if to == "csv":
        written = csv.writer(out, lineterminator="\n")
        written.writerow(COLUMNS)
        written.writerows(rows(runs))
    else:
        for row in rows(runs):
            line = json.dumps(dict(zip(COLUMNS, jsonable(list(row)), strict=True)), allow_nan=False)
            out.write(line + "\n")
