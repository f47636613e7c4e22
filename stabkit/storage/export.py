"""`stabkit export`: the records, or the translations, as one long table, for any other tool.

A row is (run, step, probe, site, value), or (run, beam, length_penalty, line, hypothesis, reference), line 1 the
first of the test files. Values that are not finite are nan, inf and -inf: words in CSV, the strings "nan", "inf" and
"-inf" in JSON lines, which stay strict. In CSV the sentences stand in quotes.
"""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, TextIO

from stabkit.errors import UsageError, nearest
from stabkit.results.records import jsonable
from stabkit.storage.folder import write_file
from stabkit.storage.store import Run

KINDS = ("csv", "jsonl")
COLUMNS = ("run", "step", "probe", "site", "value")
TRANSLATED = ("run", "beam", "length_penalty", "line", "hypothesis", "reference")
Row = tuple[object, ...]


def kind(text: str) -> str:
    """The kind asked for."""
    if text not in KINDS:
        raise UsageError(f"--to: {text!r} is not one of {', '.join(KINDS)}{nearest(text, KINDS)}")
    return text


def rows(runs: Sequence[Run]) -> Iterator[Row]:
    """Every recorded value, in the order of runs, probes, steps and sites."""
    for run in runs:
        for probe, table in sorted(run.records.items()):
            for step, values in zip(table.steps.tolist(), table.values.tolist(), strict=True):
                for site, value in zip(table.sites, values, strict=True):
                    yield run.run_id, step, probe, site, value


def sentences(runs: Sequence[Run]) -> Iterator[Row]:
    """Every translated sentence beside its reference, in the order of runs, searches and lines."""
    for run in runs:
        for one in run.translations:
            search = one.spec.search
            for line, pair in enumerate(zip(one.hypotheses, one.references, strict=True), start=1):
                yield run.run_id, search.beam, search.length_penalty, line, *pair


TABLES: Mapping[str, tuple[tuple[str, ...], Callable[[Sequence[Run]], Iterator[Row]]]] = {
    "records": (COLUMNS, rows),
    "translations": (TRANSLATED, sentences),
}


QUOTING: Mapping[str, Literal[0, 2]] = {"records": csv.QUOTE_MINIMAL, "translations": csv.QUOTE_NONNUMERIC}
"""A sentence may hold a lone carriage return, which Python's writer leaves bare."""


def table(text: str) -> str:
    """The table asked for."""
    if text not in TABLES:
        raise UsageError(f"--what: {text!r} is not one of {', '.join(TABLES)}{nearest(text, TABLES)}")
    return text


def export(runs: Sequence[Run], to: str, path: Path | None, what: str = "records") -> None:
    """Write the table to a file, whole or not at all, or to standard output as it comes; raises UsageError where these
    runs have none."""
    if what == "translations" and not any(run.translations for run in runs):
        raise UsageError("--what translations: none of these runs was translated; `stabkit sweep --bleu` does it")
    if path is None and sys.stdout is None:
        raise UsageError("standard output is closed; --out FILE writes to a file")
    if path is None:
        _write(runs, to, sys.stdout, what)
        sys.stdout.flush()
    else:
        text = io.StringIO()
        _write(runs, to, text, what)
        write_file(path, text.getvalue().encode())


def _write(runs: Sequence[Run], to: str, out: TextIO, what: str) -> None:
    columns, found = TABLES[what]
    if to == "csv":
        written = csv.writer(out, lineterminator="\n", quoting=QUOTING[what])
        written.writerow(columns)
        written.writerows(found(runs))
    else:
        for row in found(runs):
            line = json.dumps(dict(zip(columns, jsonable(list(row)), strict=True)), allow_nan=False)
            out.write(line + "\n")
