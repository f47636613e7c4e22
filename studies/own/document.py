"""The package's coefficients of users' models: fitted on one part of the corpus, counted on the other."""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from stabkit.results.forecast.logistic import Region
from stabkit.results.own.forecast import AXES, FILE, LINKS, SCHEMA, OwnCoefficients, axes, read
from stabkit.results.own.looks import KEYS, Looks
from studies.forecast.coefficients import sealed
from studies.own import looks
from studies.own.corpus import MEASURED, CorpusRow, line
from studies.own.fit import features, fitted, part, probability, setting, usable
from studies.own.judge import Counted

SHOWN = (
    "gradient_lowest",
    "gradient_highest",
    "update_last",
    "growth",
    "cosine_last",
    "loss_fall",
    "ramp_information",
)
"""Numbers whose range among models that train the package holds."""


def document(rows: Sequence[CorpusRow]) -> dict[str, Any]:
    """The coefficients for all rows: fitted on one part, counted on the other."""
    ours, theirs = (part(rows, judge=judge) for judge in (False, True))
    by = fitted(ours)
    good = [row for row in ours if usable(row)]
    names, places = [link.key for link in LINKS], [list(axes(setting(row)).values()) for row in good]
    region = Region.of((*names, *AXES), features(good), np.array(places))
    trains = [row for row in good if not row.fails]
    ends = Looks(looks.fit(ours, looks.forecasts(ours)), {})
    known = OwnCoefficients(by, region, len(theirs), {}, len(trains), "", len(ours), ends)
    p = [probability(row, by, known) for row in theirs]
    told = dict[str, tuple[int, int]]()
    for key in KEYS:
        found = Counted.of_rows(theirs, p, ends, trained=True, key=key).counts()
        told |= {name: own for name, own in found.items() if name.split(", ")[2:] == [key]}
    told |= Counted.of_rows(theirs, p, ends, trained=False).counts()  # what a forecast alone is worth
    body: dict[str, Any] = {
        "schema": SCHEMA,
        "corpus": digest(rows),
        "runs": len(ours),
        "links": names,
        "axes": list(AXES),
        **by.to_json(),
        **region.to_json(),
        "trained": len(trains),
        "quantiles": {name: _percentiles([getattr(row.measured, name) for row in trains]) for name in SHOWN},
        "looks": Looks(ends.weights, dict(sorted(told.items()))).to_json(),
        "judged": len(theirs),
    }
    return sealed(body)


def _percentiles(values: Sequence[float]) -> list[float]:
    finite = [value for value in values if np.isfinite(value)]
    return [float(f"{value:.5g}") for value in np.percentile(finite, range(101))]


def digest(rows: Sequence[CorpusRow]) -> str:
    """sha256 of the rows."""
    text = io.StringIO()
    writer = csv.writer(text)
    for row in sorted(rows, key=lambda row: row.case.number):
        own = line(row)
        writer.writerow([own.get(name, "") for name in ("number", "ends", *MEASURED)])
    return hashlib.sha256(text.getvalue().encode()).hexdigest()


def write(rows: Sequence[CorpusRow], path: Path = FILE) -> None:
    """Into the package; a test fits them again and compares."""
    text = json.dumps(document(rows), separators=(",", ":")) + "\n"
    read(text.encode(), str(path))
    path.write_text(text, encoding="utf-8")
