"""Fit the forecast's coefficients on the committed rows and write them into the package: a second.

    python benchmarks/coefficients.py [docs/forecast.csv [docs/today.csv]]

The rows come from `stabkit paper forecast --rows docs/forecast.csv …`, those joined to them, of the search for rates,
from `stabkit paper today --rows docs/today.csv …`; a test refits them and compares.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from stabkit.paper.studies import today
from stabkit.results.forecast import model
from stabkit.results.forecast.judged import Judged
from stabkit.results.forecast.rows import from_csv


def main(rows: str = "docs/forecast.csv", joined: str = "docs/today.csv") -> None:
    judged = Judged(from_csv(Path(rows)))
    later = from_csv(Path(joined)) if Path(joined).exists() else ()
    document = model.fitted(judged.fitted_rows, today.read(later).halved)
    model.FILE.write_text(json.dumps(document, separators=(",", ":")) + "\n", encoding="utf-8")
    print(f"{document['runs']} runs, corpus {document['corpus'][:12]}…, {model.FILE.stat().st_size:,} bytes")


if __name__ == "__main__":
    main(*sys.argv[1:])
