"""`stabkit export`: a table of the store to a file, whole or not at all, or to standard output as it comes."""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence
from pathlib import Path

from stabkit.cli.commands import lookup
from stabkit.errors import UsageError
from stabkit.options import ranges, stored
from stabkit.storage import export as tables
from stabkit.storage.folder import write_file
from stabkit.storage.store import Run
from stabkit.storage.watched import Watched


def run(named: Sequence[str], store: str, to: str, what: str, out: str) -> None:
    """Find the runs and write their table."""
    kind = ranges.choice("--to", to, tables.KINDS)
    table = ranges.choice("--what", what, tuple(tables.TABLES))
    stored_runs, watches = lookup.both(stored.source(list(named), store), named)
    put(stored_runs, kind, Path(out) if out else None, table, watches)


def put(
    runs: Sequence[Run], to: str, path: Path | None, what: str = "records", watches: Sequence[Watched] = ()
) -> None:
    """Write the table; raises UsageError where these runs have none, or nobody reads it."""
    if what == "translations" and not any(run.translations for run in runs):
        raise UsageError("--what translations: none of these runs has translations; `stabkit sweep --bleu` makes them")
    if path is None and sys.stdout is None:
        raise UsageError("standard output is closed; --out FILE writes to a file")
    every: list[tables.HasRecords] = [*runs, *watches] if what == "records" else list(runs)
    if path is None:
        tables.write(every, to, sys.stdout, what)
        sys.stdout.flush()
    else:
        text = io.StringIO()
        tables.write(every, to, text, what)
        write_file(path, text.getvalue().encode())
