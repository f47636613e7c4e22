"""The records, or the translations, as one long table, for any other tool.

A row is (run, step, probe, site, value), or (run, beam, length_penalty, line, hypothesis, reference), line 1 the
first of the test files. Values that are not finite are nan, inf and -inf: words in CSV, the strings "nan", "inf" and
"-inf" in JSON lines, which stay strict. In CSV the sentences stand in quotes.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, Protocol, TextIO

from stabkit.results.records import Table, jsonable
from stabkit.storage.store import Run

KINDS = ("csv", "jsonl")
COLUMNS = ("run", "step", "probe", "site", "value")
TRANSLATED = ("run", "beam", "length_penalty", "line", "hypothesis", "reference")
Row = tuple[object, ...]


class HasRecords(Protocol):
    """A run, or a watch of a user's training."""

    @property
    def run_id(self) -> str: ...

    @property
    def records(self) -> Mapping[str, Table]: ...


def rows(runs: Sequence[HasRecords]) -> Iterator[Row]:
    """Every recorded value, in the order of runs, probes, steps and sites."""
    for run in runs:
        for probe, table in sorted(run.records.items()):
            for step, values in zip(table.steps.tolist(), table.values.tolist(), strict=True):
                for site, value in zip(table.sites, values, strict=True):
                    yield run.run_id, step, probe, site, value


def sentences(runs: Sequence[Run]) -> Iterator[Row]:
    """Every translated sentence beside its reference, in the order of runs, searches and lines."""
    for run in runs:
        for translation in run.translations:
            search = translation.spec.search
            for line, pair in enumerate(zip(translation.hypotheses, translation.references, strict=True), start=1):
                yield run.run_id, search.beam, search.length_penalty, line, *pair


TABLES: Mapping[str, tuple[tuple[str, ...], Callable[[Sequence[Any]], Iterator[Row]]]] = {
    "records": (COLUMNS, rows),
    "translations": (TRANSLATED, sentences),
}
QUOTING: Mapping[str, Literal[0, 2]] = {"records": csv.QUOTE_MINIMAL, "translations": csv.QUOTE_NONNUMERIC}
"""A sentence may hold a lone carriage return, which Python's writer leaves bare."""


def write(runs: Sequence[HasRecords], to: str, out: TextIO, what: str = "records") -> None:
    """The table, in one of KINDS, as it comes."""
    columns, rows_of = TABLES[what]
    if to == "csv":
        written = csv.writer(out, lineterminator="\n", quoting=QUOTING[what])
        written.writerow(columns)
        written.writerows(rows_of(runs))
    else:
        for row in rows_of(runs):
            line = json.dumps(dict(zip(columns, jsonable(list(row)), strict=True)), allow_nan=False)
            out.write(line + "\n")
