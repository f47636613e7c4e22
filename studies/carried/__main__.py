"""python -m studies.carried --data DIR --source de --target en [--budget 70m] [--check]

Trains what has no row in docs/transfer.csv, and writes docs/transfer.md from the rows; `--check` trains nothing and
compares the page.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from stabkit.cli import console
from stabkit.errors import StabkitError
from stabkit.options import ranges
from stabkit.storage import locks
from studies.carried import page, rows, study

DOCS = Path(__file__).parents[2] / "docs"
ROWS, PAGE = DOCS / "transfer.csv", DOCS / "transfer.md"


def main(arguments: Sequence[str]) -> int:
    """The exit code: 1 where a page differs that was to be checked."""
    parser = argparse.ArgumentParser(prog="python -m studies.carried", description=__doc__)
    for name in ("data", "source", "target", "budget"):
        parser.add_argument(f"--{name}", default="")
    parser.add_argument("--rows", type=Path, default=ROWS)
    parser.add_argument("--out", type=Path, default=Path("evidence/carried"))
    parser.add_argument("--check", action="store_true")
    asked = parser.parse_args(arguments)
    if asked.check:
        return int(page.page(rows.read(asked.rows)) != PAGE.read_text(encoding="utf-8"))
    text = {name: getattr(asked, name) for name in ("data", "source", "target")}
    try:
        with locks.awaited(asked.out.absolute() / "runs", "study-carried"):  # its rows are one command's
            left = study.run(asked.rows, text, asked.out, ranges.duration("--budget", asked.budget))
    except StabkitError as error:
        console.error(error)
        return error.exit_code
    PAGE.write_text(page.page(rows.read(asked.rows)), encoding="utf-8")
    console.say(f"{left} cases are not whole; rows: {asked.rows}, page: {PAGE}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
