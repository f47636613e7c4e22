"""The command of the corpus of users' models.

python -m studies.own train --data DIR --minutes 75    train and probe what has no row in docs/evidence/own_corpus.csv
python -m studies.own fit                              fit the package's coefficients on the fitting part
python -m studies.own cure --data DIR --minutes 75     try and train changes: docs/evidence/own_cures.csv
python -m studies.own judge                            write docs/evidence/verdict*.* from the judging part
python -m studies.own log                              the bound of `stabkit log --stop`, and docs/evidence/log*.*
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from stabkit.storage.folder import write_file
from studies.own import corpus, cured, document, page, public, stop
from studies.own.judge import judged

DOCS = Path(__file__).parents[2] / "docs" / "evidence"
ROWS, CURES = DOCS / "own_corpus.csv", DOCS / "own_cures.csv"


def main(arguments: Sequence[str]) -> int:
    """The exit code: 1 where what was asked to hold does not."""
    parser = argparse.ArgumentParser(
        prog="python -m studies.own", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("command", choices=("train", "alarms", "fit", "cure", "judge", "count", "measure", "log"))
    parser.add_argument("--data", type=Path, default=None, help="the folder of train.en.gz")
    parser.add_argument("--rows", type=Path, default=ROWS)
    parser.add_argument("--cures", type=Path, default=CURES)
    parser.add_argument("--minutes", type=float, default=75.0)
    parser.add_argument("--keep", type=Path, default=None, help="a folder for what was recorded")
    parser.add_argument("--first", type=int, default=0, help="train: cases from this number on")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--check", action="store_true", help="judge: compare the page, write nothing")
    parser.add_argument("--asked", action="store_true", help="judge: fail where a number that was asked for is missed")
    parser.add_argument("--judging", type=int, default=0, help="count: so many of them that judge")
    asked = parser.parse_args(arguments)
    if asked.command in ("train", "cure", "measure") and asked.data is None:
        parser.error("--data DIR: the folder of train.en.gz")
    if asked.command == "train":
        corpus.run(asked.rows, asked.data, asked.minutes, asked.keep, asked.workers, asked.first)
        return 0
    if asked.command == "measure":
        trained = list(corpus.read(asked.rows, trained=True).values())
        corpus.write(asked.rows, corpus.measured_again(trained, asked.data, asked.workers))
        return 0
    rows = list(corpus.read(asked.rows).values())
    if asked.command == "alarms":
        corpus.write(asked.rows, corpus.replayed(rows, asked.keep))
    elif asked.command == "fit":
        document.write(rows)
    elif asked.command == "log":
        return logged(rows, check=asked.check)
    elif asked.command == "cure":
        cured.run(asked.cures, rows, asked.data, asked.minutes, asked.workers)
    elif asked.command == "count":
        judges = sum(row.case.judge for row in rows)
        print(f"{len(rows) - judges} rows to choose on, {judges} that judge")
        return int(judges < asked.judging)
    else:
        cures = cured.read(asked.cures)
        texts = page.texts(rows, cures)
        if asked.check or not asked.asked:
            code = written(texts, check=asked.check)
            if asked.check:
                return code
        missed = [one.name for one in page.asked(judged(rows), judged(rows, trained=False), cures) if not one.holds]
        print(f"{DOCS}: {'missed: ' + ', '.join(missed) if missed else 'all that was asked holds'}")
        return int(asked.asked and bool(missed))
    return 0


def logged(rows: Sequence[corpus.CorpusRow], *, check: bool) -> int:
    """The bound's numbers and the page of logs, written or compared; the exit code."""
    if not check:
        stop.write(rows)
    return written(public.texts(public.read(), stop.table(rows), stop.beside(rows)), check=check)


def written(texts: Mapping[str, str], *, check: bool) -> int:
    """Files of docs/evidence/, written or compared; the exit code."""
    if check:
        return int(any(text != (DOCS / name).read_text(encoding="utf-8") for name, text in texts.items()))
    for name, text in texts.items():
        write_file(DOCS / name, text.encode())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
