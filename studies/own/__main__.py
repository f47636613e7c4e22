"""The command of the corpus of users' models.

python -m studies.own train --data DIR --rows docs/own_corpus.csv --minutes 75 --keep DIR
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from studies.own import corpus

ROWS = Path(__file__).parents[2] / "docs" / "own_corpus.csv"


def main(arguments: Sequence[str]) -> int:
    """The exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m studies.own", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    train = commands.add_parser("train", help="train what has no row")
    train.add_argument("--data", type=Path, required=True, help="the folder of train.en.gz")
    train.add_argument("--rows", type=Path, default=ROWS)
    train.add_argument("--minutes", type=float, default=75.0)
    train.add_argument("--keep", type=Path, default=None, help="a folder for what was recorded")
    train.add_argument("--workers", type=int, default=2)
    asked = parser.parse_args(arguments)
    corpus.run(asked.rows, asked.data, asked.minutes, asked.keep, asked.workers)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
