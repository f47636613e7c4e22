"""`stabkit export`: the records of a store to a file, whole or not at all, or to standard output as they come."""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence
from pathlib import Path

from stabkit.cli.commands import lookup
from stabkit.errors import UsageError
from stabkit.options import ranges, stored
from stabkit.storage import export
from stabkit.storage.export import HasRecords
from stabkit.storage.folder import write_file


def run(named: Sequence[str], store: str, to: str, out: str) -> None:
    """Find the runs and watches, and write what they recorded."""
    kind = ranges.choice("--to", to, export.KINDS)
    runs, watches = lookup.both(stored.source(list(named), store), named)
    put([*runs, *watches], kind, Path(out) if out else None)


def put(runs: Sequence[HasRecords], to: str, path: Path | None) -> None:
    """Write their records; raises UsageError where nobody reads them."""
    if path is not None:
        text = io.StringIO()
        export.write(runs, to, text)
        write_file(path, text.getvalue().encode())
        return
    if sys.stdout is None:
        raise UsageError("standard output is closed; --out FILE writes to a file")
    if sys.stdout.isatty():
        raise UsageError(
            "that is a line a number, too many to read: --out FILE writes them; `stabkit runs ls`: the runs"
        )
    export.write(runs, to, sys.stdout)
    sys.stdout.flush()
