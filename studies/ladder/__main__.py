"""The ladder's command.

python -m studies.ladder train --data DIR --minutes 75 [--device cuda]     what has no row in docs/evidence/ladder.csv
python -m studies.ladder curves --data DIR --minutes 75 [--device cuda]    what has no row in evidence/ladder_curves.csv
python -m studies.ladder others --data DIR                                 docs/evidence/ladder_others.csv: 48 of others
python -m studies.ladder judge [--check]                                   docs/evidence/ladder.md and ladder_words.csv
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
from studies.markdown import csv_text

DOCS = Path(__file__).parents[2] / "docs" / "evidence"
ROWS, ON_GPU, CURVES, OTHERS, WORDS, PAGE = (
    DOCS / f"ladder{name}" for name in (".csv", "_gpu.csv", "_curves.csv", "_others.csv", "_words.csv", ".md")
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
    by = page.shown(rows, known)
    texts = {PAGE: page.page(rows, by, lines, others.read(OTHERS)), WORDS: csv_text(page.COLUMNS, [*page.words(by)])}
    if asked.check:
        return int(any(text != path.read_text(encoding="utf-8") for path, text in texts.items()))
    for path, text in texts.items():
        path.write_text(text, encoding="utf-8")
    picture.write(by, logits.groups(lines.values(), "logits"), PAGE.with_suffix(".png"))
    print(PAGE)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
