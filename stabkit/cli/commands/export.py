"""`stabkit export`: a table of the store to a file, whole or not at all, or to standard output as it comes."""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence
from pathlib import Path

from stabkit.cli.commands import lookup
from stabkit.errors import UsageError
from stabkit.options import ranges, stored
from stabkit.results.run import Run
from stabkit.storage import export as tables
from stabkit.storage.folder import write_file
from stabkit.storage.watched import Watched

TABLES = ("records", "runs")


def run(named: Sequence[str], store: str, to: str, what: str, out: str) -> None:
    """Find the runs and write their table."""
    kind = ranges.choice("--to", to, tables.KINDS)
    table = ranges.choice("--what", what, TABLES)
    stored_runs, watches = lookup.both(stored.source(list(named), store), named)
    put(stored_runs, kind, Path(out) if out else None, table, watches)


def put(
    runs: Sequence[Run], to: str, path: Path | None, what: str = "records", watches: Sequence[Watched] = ()
) -> None:
    """Write the table; raises UsageError where these runs have none, or nobody reads it."""
    table = _table(runs, what, watches)
    if path is None and sys.stdout is None:
        raise UsageError("standard output is closed; --out FILE writes to a file")
    if path is None and sys.stdout.isatty() and what == "records":
        raise UsageError("that is a line a number, too many to read: --out FILE writes them; --what runs: a row a run")
    if path is None:
        tables.write(table, to, sys.stdout)
        sys.stdout.flush()
    else:
        text = io.StringIO()
        tables.write(table, to, text)
        write_file(path, text.getvalue().encode())


def _table(runs: Sequence[Run], what: str, watches: Sequence[Watched]) -> tables.ExportedTable:
    if what == "records":
        return tables.records([*runs, *watches])
    if not runs:
        raise UsageError("--what runs: these are watches, which have only --what records")
    from stabkit.report.result import run_table

    frame = run_table(runs)
    return tables.ExportedTable(list(frame.columns), frame.itertuples(index=False, name=None))
