"""The forecast of users' models, fitted on the rows to choose on; the words counted on those that judge.

Ridge logistic regression with weights that are never negative (`studies/forecast/regression.py`), on rows that are
clear and whose numbers were all there after sixteen updates; a row that lost a number before is told LOST, without any
fit.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from stabkit.results.forecast.logistic import Array, Logistic, Region, numbers, sealed
from stabkit.results.own.forecast import (
    AXES,
    FILE,
    LINKS,
    LOST,
    SCHEMA,
    USUAL,
    OwnCoefficients,
    OwnLink,
    OwnSetting,
    axes,
    read,
)
from studies.forecast.regression import Labels, fit
from studies.forecast.scores import reliability
from studies.own.corpus import MEASURED, CorpusRow, line

NAMES = {"adamw": "AdamW", "sgd": "SGD", "muon": "Muon", "lion": "Lion"}
"""{optimiser of the design: its class}."""
RIDGE = 1.0
"""What a standard deviation's worth of weight costs against one model."""
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


def setting(row: CorpusRow) -> OwnSetting:
    """Of a row."""
    case = row.case
    return OwnSetting(case.rate / USUAL[NAMES[case.optimizer]], case.warmup, case.shape.depth, case.shape.width)


def usable(row: CorpusRow, links: Sequence[OwnLink] = LINKS) -> bool:
    """Whether a fit can be made of it, or a probability given: all its numbers are there."""
    return row.measured is not None and row.measured.finite and bool(np.isfinite(features([row], links)).all())


def features(rows: Sequence[CorpusRow], links: Sequence[OwnLink] = LINKS) -> Array:
    """(rows × links)."""
    return numbers([(row.measured, setting(row)) for row in rows if row.measured is not None], links)


def labels(rows: Sequence[CorpusRow]) -> Labels:
    """True where a model trains."""
    return np.array([not row.fails for row in rows], dtype=bool)


def part(rows: Sequence[CorpusRow], *, judge: bool) -> list[CorpusRow]:
    """The clear rows of one part."""
    return [row for row in rows if row.case.judge is judge and row.clear]


def fitted(rows: Sequence[CorpusRow], links: Sequence[OwnLink] = LINKS) -> Logistic:
    """The fit on these rows."""
    good = [row for row in rows if usable(row, links)]
    return fit(features(good, links), labels(good), RIDGE)


def probability(row: CorpusRow, by: Logistic, known: OwnCoefficients | None = None) -> float | None:
    """The probability that a row is given: LOST where a number was lost; None of a probe without result, or where it is
    unlike all models that are `known`."""
    if not row.refused and (row.measured is None or not row.measured.finite):
        return LOST
    if not usable(row):
        return None
    x = features([row])
    if known is not None and known.beyond(x[0], setting(row)):
        return None
    return float(by.probability(x)[0])


def document(rows: Sequence[CorpusRow]) -> dict[str, Any]:
    """The coefficients for all rows: fitted on one part, counted on the other."""
    ours, theirs = (part(rows, judge=judge) for judge in (False, True))
    by = fitted(ours)
    good = [row for row in ours if usable(row)]
    names, places = [link.key for link in LINKS], [list(axes(setting(row)).values()) for row in good]
    region = Region.of((*names, *AXES), features(good), np.array(places))
    trains = [row for row in good if not row.fails]
    known = OwnCoefficients(by, region, [], {}, len(trains), "", len(ours))
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
        "records": records(theirs, [probability(row, by, known) for row in theirs]),
    }
    return sealed(body)


def records(rows: Sequence[CorpusRow], p: Sequence[float | None]) -> list[dict[str, Any]]:
    """Of each bin of probabilities: how many were told so, and how many of them trained."""
    given = [(value, row) for value, row in zip(p, rows, strict=True) if value is not None]
    values, label = np.array([value for value, _ in given]), labels([row for _, row in given])
    return [
        {"low": own.low, "high": own.high, "n": own.n, "trained": round(own.share * own.n)}
        for own in reliability(values, label, np.arange(len(given)))
        if own.n
    ]


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
