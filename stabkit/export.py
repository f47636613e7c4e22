"""`stabkit export`: the records as one long table, for any other tool.

A row is (run, step, probe, site, value). Values that are not finite are nan, inf and -inf: words in CSV, the strings
"nan", "inf" and "-inf" in JSON lines, which stay strict.
"""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TextIO

from stabkit.errors import UsageError, nearest
from stabkit.folder import write_file
from stabkit.records import jsonable
from stabkit.store import Run

KINDS = ("csv", "jsonl")
COLUMNS = ("run", "step", "probe", "site", "value")


def kind(text: str) -> str:
    """The kind asked for."""
    if text not in KINDS:
        raise UsageError(f"--to: {text!r} is not one of {', '.join(KINDS)}{nearest(text, KINDS)}")
    return text


def rows(runs: Sequence[Run]) -> Iterator[tuple[str, int, str, str, float]]:
    """Every recorded value, in the order of runs, probes, steps and sites."""
    for run in runs:
        for probe, table in sorted(run.records.items()):
            for step, values in zip(table.steps.tolist(), table.values.tolist(), strict=True):
                for site, value in zip(table.sites, values, strict=True):
                    yield run.run_id, step, probe, site, value


def export(runs: Sequence[Run], to: str, path: Path | None) -> None:
    """Write the table to a file, whole or not at all, or to standard output as it comes."""
    if path is None and sys.stdout is None:
        raise UsageError("standard output is closed; --out FILE writes to a file")
    if path is None:
        _write(runs, to, sys.stdout)
        sys.stdout.flush()
    else:
        text = io.StringIO()
        _write(runs, to, text)
        write_file(path, text.getvalue().encode())


def _write(runs: Sequence[Run], to: str, out: TextIO) -> None:
    if to == "csv":
        table = csv.writer(out, lineterminator="\n")
        table.writerow(COLUMNS)
        table.writerows(rows(runs))
    else:
        for row in rows(runs):
            line = json.dumps(dict(zip(COLUMNS, jsonable(list(row)), strict=True)), allow_nan=False)
            out.write(line + "\n")
