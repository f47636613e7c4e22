"""The ladder's command.

python -m studies.ladder train --data DIR --minutes 75 [--device cuda]     what has no row in docs/ladder.csv
python -m studies.ladder curves --data DIR --minutes 75 [--device cuda]    what has no row in docs/ladder_curves.csv
python -m studies.ladder others --data DIR                                 docs/ladder_others.csv: 48 cells of others
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from studies.ladder import cells, curves, others

DOCS = Path(__file__).parents[2] / "docs"
ROWS, CURVES, OTHERS = (DOCS / name for name in ("ladder.csv", "ladder_curves.csv", "ladder_others.csv"))


def main(arguments: Sequence[str]) -> int:
    """The exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m studies.ladder", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("command", choices=("train", "curves", "others"))
    parser.add_argument("--data", type=Path, default=None, help="the folder of train.en.gz")
    parser.add_argument("--rows", type=Path, default=None, help="default: the file in docs/")
    parser.add_argument("--widest", type=int, default=512, help="curves: at most so wide")
    parser.add_argument("--minutes", type=float, default=75.0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--device", default="cpu")
    asked = parser.parse_args(arguments)
    if asked.data is None:
        parser.error("--data DIR: the folder of train.en.gz")
    if asked.command == "train":
        cells.run(asked.rows or ROWS, asked.data, asked.minutes, asked.workers, asked.device)
    elif asked.command == "others":
        with tempfile.TemporaryDirectory() as aside:
            others.write(asked.rows or OTHERS, list(others.probed(asked.data, Path(aside))))
    else:
        curves.run(asked.rows or CURVES, asked.data, asked.minutes, asked.workers, asked.device, asked.widest)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
