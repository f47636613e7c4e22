"""The records as one long table, and any table as a file for other tools.

A row is (run, step, probe, site, value). Values that are not finite are nan, inf and -inf: words in CSV, the strings
"nan", "inf" and "-inf" in JSON lines, which stay strict.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TextIO

from stabkit.results.records import Table, jsonable

KINDS = ("csv", "jsonl")
COLUMNS = ("run", "step", "probe", "site", "value")
Row = tuple[object, ...]


class HasRecords(Protocol):
    """A run, or a watch of a user's training."""

    @property
    def run_id(self) -> str: ...

    @property
    def records(self) -> Mapping[str, Table]: ...


@dataclass(frozen=True, slots=True)
class ExportedTable:
    """Names of columns, and rows of one type a column."""

    columns: Sequence[str]
    rows: Iterable[Row]


def records(runs: Sequence[HasRecords]) -> ExportedTable:
    """Everything that was recorded."""
    return ExportedTable(COLUMNS, rows(runs))


def rows(runs: Sequence[HasRecords]) -> Iterator[Row]:
    """Every recorded value, in the order of runs, probes, steps and sites."""
    for run in runs:
        for probe, table in sorted(run.records.items()):
            for step, values in zip(table.steps.tolist(), table.values.tolist(), strict=True):
                for site, value in zip(table.sites, values, strict=True):
                    yield run.run_id, step, probe, site, value


def write(table: ExportedTable, to: str, out: TextIO) -> None:
    """As text, csv or jsonl, as it comes."""
    if to == "csv":
        written = csv.writer(out, lineterminator="\n")
        written.writerow(table.columns)
        written.writerows(table.rows)
    else:
        for row in table.rows:
            line = json.dumps(dict(zip(table.columns, jsonable(list(row)), strict=True)), allow_nan=False)
            out.write(line + "\n")
