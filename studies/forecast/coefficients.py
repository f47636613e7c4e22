"""The forecast's coefficients, fitted on the rows of the studies: what the package's `coefficients.json` holds.

Runs that are joined to the corpus are scored by the fit without them first (`joined.py`). That fit stands in the
document too, so that the score can be taken again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from stabkit.results.forecast.links import FITTED
from stabkit.results.forecast.logistic import Region
from stabkit.results.forecast.model import AXES, SCHEMA, settings
from stabkit.spec import canonical
from studies.forecast.baselines import Baselines, gradient_alone
from studies.forecast.joined import Joined
from studies.forecast.regression import features, labels
from studies.forecast.widened import widen
from studies.rows import StudyRow, digest


def sealed(body: Mapping[str, Any]) -> dict[str, Any]:
    """A document with its own sha256, which the package compares."""
    return {**body, "sha256": hashlib.sha256(canonical(body).encode()).hexdigest()}


def document(corpus: Sequence[StudyRow], rows: Sequence[StudyRow] = ()) -> dict[str, Any]:
    """The coefficients for labelled rows, as JSON values. Of those that are joined, runs of an optimiser, block or
    method without a forecast do not shape it either."""
    joined = Joined.of(corpus, rows)
    fitted = joined.fitted
    x = features(fitted)
    axes = np.array([list(settings(row.depth, row.hidden, row.warmup).values()) for row in fitted])
    names = [link.key for link in FITTED]
    body = {
        "schema": SCHEMA,
        "corpus": digest(fitted),
        "runs": len(fitted),
        "links": names,
        "axes": list(AXES),
        **widen(fitted, labels(fitted)).to_json(),
        "alone": {name: gradient_alone(fitted).to_json() for name in (Baselines(joined).alone() if rows else ())},
        "lowest": {
            str(width): min(row.rate for row in fitted if row.hidden == width)
            for width in sorted({row.hidden for row in fitted})
        },
        "before": {"corpus": digest(joined.corpus), "runs": len(joined.corpus), **joined.before.to_json()},
        "methods": sorted({row.method for row in fitted}),
        "optimizers": sorted(joined.optimizers),
        "blocks": sorted(joined.blocks),
        "joined": joined.where,
        "abstains": sorted(joined.abstains),
        **Region.of((*names, *AXES), x, axes).to_json(),
        "max_tokens": float(np.median([row.max_tokens for row in fitted])),
        "vocab": 2000.0,
    }
    return sealed(body)
