"""The ladder's command.

python -m studies.ladder train --data DIR --minutes 75 [--device cuda]     what has no row in docs/ladder.csv
python -m studies.ladder curves --data DIR --minutes 75 [--device cuda]    what has no row in docs/ladder_curves.csv
python -m studies.ladder others --data DIR                                 docs/ladder_others.csv: 48 cells of others
python -m studies.ladder judge [--check]                                   docs/ladder.md, from these rows
python -m studies.ladder count [--asked]                                   how many recipes have rows
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from studies.ladder import cells, curves, others
from studies.ladder.design import recipes

DOCS = Path(__file__).parents[2] / "docs"
ROWS, ON_GPU, CURVES, OTHERS, PAGE = (
    DOCS / f"ladder{name}" for name in (".csv", "_gpu.csv", "_curves.csv", "_others.csv", ".md")
)
NEEDED = {64: 40, 128: 40, 256: 40, 512: 20}
"""{width: recipes that are to have a row}."""


def main(arguments: Sequence[str]) -> int:
    """The exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m studies.ladder", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("command", choices=("train", "curves", "others", "judge", "count"))
    parser.add_argument("--data", type=Path, default=None, help="the folder of train.en.gz")
    parser.add_argument("--rows", type=Path, default=None, help="default: the file in docs/")
    parser.add_argument("--widest", type=int, default=512, help="curves: at most so wide")
    parser.add_argument("--minutes", type=float, default=75.0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--check", action="store_true", help="judge: compare the page, write nothing")
    parser.add_argument("--asked", action="store_true", help="count: fail where recipes lack rows")
    asked = parser.parse_args(arguments)
    if asked.data is None and asked.command not in ("judge", "count"):
        parser.error("--data DIR: the folder of train.en.gz")
    if asked.command == "train":
        path = asked.rows or (ROWS if asked.device == "cpu" else ON_GPU)
        cells.run(path, [ROWS, ON_GPU], asked.data, asked.minutes, asked.workers, asked.device)
    elif asked.command in ("judge", "count"):
        return judged(asked)
    elif asked.command == "others":
        with tempfile.TemporaryDirectory() as aside:
            path = asked.rows or OTHERS
            rows = others.read(path)
            for cell in others.probed(asked.data, Path(aside), rows):
                rows.append(cell)
                others.write(path, rows)
    else:
        curves.run(asked.rows or CURVES, asked.data, asked.minutes, asked.workers, asked.device, asked.widest)
    return 0


def judged(asked: argparse.Namespace) -> int:
    """`judge`: the page, written or compared; `count`: the rows that there are."""
    from studies.ladder import judge, logits, page, picture
    from studies.own import corpus

    rows = cells.read(*([asked.rows] if asked.rows else [ROWS, ON_GPU]))
    if asked.command == "count":
        have = {width: len(recipes()) - len(judge.missing(rows, width)) for width in NEEDED}
        print("; ".join(f"width {width}: {n} of {len(recipes())} recipes" for width, n in have.items()))
        return int(asked.asked and any(have[width] < n for width, n in NEEDED.items()))
    known = list(corpus.read(DOCS / "own_corpus.csv").values())
    lines = curves.read(CURVES)
    text = page.page(rows, known, lines, others.read(OTHERS))
    if asked.check:
        return int(text != PAGE.read_text(encoding="utf-8"))
    PAGE.write_text(text, encoding="utf-8")
    picture.write(page.shown(rows, ()), logits.groups(lines.values(), "logits"), PAGE.with_suffix(".png"))
    print(PAGE)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
