"""The forecast's coefficients, fitted on the rows of the studies: what the package's `coefficients.json` holds.

The runs that are joined to the corpus are scored by the fit without them first, which decides for which of their blocks
and methods a forecast is given at all. That first fit stands in the document too, so that the score can be taken again.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from stabkit.results.forecast.links import FITTED
from stabkit.results.forecast.logistic import Logistic, Region, sealed
from stabkit.results.forecast.model import AXES, FILE, SCHEMA, settings
from studies.forecast.heldout_methods import held_out
from studies.forecast.regression import features, fit, labels
from studies.rows import StudyRow, digest


def document(corpus: Sequence[StudyRow], joined: Sequence[StudyRow] = ()) -> dict[str, Any]:
    """The coefficients for labelled rows, as JSON values. Of those `joined`, runs of a method or block without a
    forecast do not shape it either."""
    first, later = (sorted((r for r in rows if r.labelled), key=lambda r: r.run_id) for rows in (corpus, joined))
    before = fit(features(first), labels(first))
    highest = max(row.rate for row in first)
    new = held_out(later, before, highest)
    given = {row.block for row in first} | set(new.trusted("block"))
    abstains = set(new.of("method")) - {row.method for row in first} - set(new.trusted("method"))
    fitted = [*first, *(row for row in later if row.block in given and row.method not in abstains)]
    fitted.sort(key=lambda row: row.run_id)
    x = features(fitted)
    axes = np.array([list(settings(row.depth, row.hidden, row.warmup).values()) for row in fitted])
    names = [link.key for link in FITTED]
    body = {
        "schema": SCHEMA,
        "corpus": digest(fitted),
        "runs": len(fitted),
        "links": names,
        "axes": list(AXES),
        **fit(x, labels(fitted)).to_json(),
        "before": {"corpus": digest(first), "runs": len(first), "highest": highest, **before.to_json()},
        "methods": sorted({row.method for row in fitted}),
        "blocks": sorted(given),
        "abstains": sorted(abstains),
        **Region.of((*names, *AXES), x, axes).to_json(),
        "max_tokens": float(np.median([row.max_tokens for row in fitted])),
        "vocab": 2000.0,
    }
    return sealed(body)


def before(path: Path = FILE) -> tuple[Logistic, float]:
    """The first fit of a document, which runs that were joined later are scored by; and its highest rate."""
    body = json.loads(path.read_text(encoding="utf-8"))["before"]
    return Logistic.from_json(body), float(body["highest"])
