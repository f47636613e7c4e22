"""The bound of `stabkit log --stop`: counted on the cases below 420, judged on the others.

    python -m studies.own log [--check]     stabkit/results/stop.json, docs/log.md

Regressions have no level and are left out; a case that lost a number lies above every band from there on.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from stabkit.results import stop
from stabkit.results.forecast.logistic import Array
from stabkit.results.intervals import wilson
from stabkit.storage.folder import write_file
from studies.own.corpus import CorpusRow

JSON = Path(stop.__file__).with_suffix(".json")
LEVELS: Mapping[str, Callable[[CorpusRow], float]] = {
    "level": lambda row: row.level,
    "guessed": lambda row: min(row.losses[0], math.log(row.case.shape.words)),
}
ALPHAS = (0.02, 0.05, 0.1, 0.2)
TAIL = 0.25
"""The share of ranks and scores that is kept: no limit lies beyond."""


def usable(rows: Sequence[CorpusRow]) -> list[CorpusRow]:
    """Those with classes and losses."""
    return [row for row in rows if not row.case.regression and len(row.losses) > 1]


def curve(row: CorpusRow) -> tuple[Array, Array]:
    """(steps, losses) of the means of ten updates that a row has; ∞ after a number was lost."""
    losses = np.array(row.losses)
    least = max(len(losses), stop.LOOKS[-1] // 10)
    ended = math.inf if row.ends == "diverged" and not np.isfinite(losses[-1]) else math.nan
    losses = np.concatenate([losses, np.full(least - len(losses), ended)])
    return 10.0 * np.arange(1, least + 1, dtype=np.float64), losses.astype(np.float64)


def counted(rows: Sequence[CorpusRow]) -> dict[str, Any]:
    """What the package reads."""
    train = [row for row in usable(rows) if row.ends == "trains"]
    chosen = [row for row in train if not row.case.judge]
    body: dict[str, Any] = {}
    for key, level in LEVELS.items():
        ways = np.array([1 - stop.at_looks(*curve(row)) / level(row) for row in chosen])
        band = banded(ways)
        body[key] = {
            "count": band.count,
            "scale": band.scale.tolist(),
            "scores": band.scores.tolist(),
            "lowest": band.lowest.tolist(),
        }
        body[key]["judged"] = {f"{alpha:g}": judged(rows, band, level, alpha) for alpha in ALPHAS}
    return body


def banded(ways: Array) -> stop.Band:
    """Of these ways (trainings, looks): each ranked among the others, four digits of each number."""
    kept = math.ceil(TAIL * len(ways))
    scores = sorted(
        min(others.rank(i, way) for i, way in enumerate(each))
        for j, each in enumerate(ways)
        for others in (_ranks(np.delete(ways, j, axis=0), kept),)
    )
    return replace(_ranks(ways, kept), scores=_four(np.array(scores[:kept])))


def _ranks(ways: Array, kept: int) -> stop.Band:
    scale = np.maximum(np.median(ways, axis=0) - np.percentile(ways, 5, axis=0), 1e-3)
    return stop.Band(_four(np.sort(ways, axis=0)[:kept].T), _four(scale), len(ways), np.array([]), {})


def _four(values: Array) -> Array:
    return np.array([float(f"{value:.4g}") for value in values.ravel()]).reshape(values.shape)


def judged(rows: Sequence[CorpusRow], band: stop.Band, level: Callable[[CorpusRow], float], alpha: float) -> list[int]:
    """[stopped, of those that train, found, of those that fail] of the cases that judge."""
    own = [(row, at(row, band, level(row), alpha)) for row in usable(rows) if row.case.judge and row.clear]
    good, bad = ([one for row, one in own if row.fails == fails] for fails in (False, True))
    return [sum(one is not None for one in good), len(good), sum(one is not None for one in bad), len(bad)]


def at(row: CorpusRow, band: stop.Band, level: float, alpha: float) -> int | None:
    """The look at which a case is stopped."""
    ranks = (
        (look, band.rank(i, 1 - loss / level))
        for i, (look, loss) in enumerate(zip(stop.LOOKS, stop.at_looks(*curve(row)), strict=True))
        if not math.isnan(loss)
    )
    return next((look for look, rank in ranks if rank < band.limit(alpha)), None)


def table(rows: Sequence[CorpusRow], alpha: float = 0.05) -> list[str]:
    """By group: good ones stopped with its interval, bad ones found, the share of updates saved."""
    groups: dict[str, Callable[[CorpusRow], bool]] = {
        "all": lambda row: True,
        "no warm-up": lambda row: row.case.warmup == 0,
        "warm-up of 50": lambda row: row.case.warmup == 50,
        "warm-up of 200": lambda row: row.case.warmup == 200,
        **{name: partial(_stepped_by, name) for name in sorted({row.case.optimizer for row in rows})},
        "tied": lambda row: row.case.shape.tied,
        "not tied": lambda row: not row.case.shape.tied,
    }
    heads = (
        "trainings",
        "level",
        "stopped of those that train",
        "found of those that fail",
        "half by",
        "updates saved",
    )
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for name, inside in groups.items():
        for key, level in LEVELS.items():
            band = stop.bands()[key]
            own = [row for row in usable(rows) if row.case.judge and row.clear and inside(row)]
            ends = [(row, at(row, band, level(row), alpha)) for row in own]
            good, bad = ([one for row, one in ends if row.fails == fails] for fails in (False, True))
            wrong, right = [one for one in good if one is not None], [one for one in bad if one is not None]
            low, high = wilson(len(wrong) / max(len(good), 1), len(good)) if good else (0.0, 1.0)
            updates = sum(row.updates for row, _ in ends if row.fails)
            saved = sum(max(0, row.updates - one) for row, one in ends if row.fails and one is not None)
            cells = (
                name,
                "known" if key == "level" else "ln V or the first loss",
                f"{len(wrong)} of {len(good)} ({100 * low:.1f} to {100 * high:.1f} %)",
                f"{len(right)} of {len(bad)}",
                f"{np.median(right):.0f}" if right else "–",
                f"{100 * saved / max(updates, 1):.0f} %",
            )
            lines.append(f"| {' | '.join(cells)} |")
    return lines


def _stepped_by(name: str, row: CorpusRow) -> bool:
    return row.case.optimizer == name


def write(rows: Sequence[CorpusRow]) -> None:
    """The package's numbers."""
    write_file(JSON, (json.dumps(counted(rows), separators=(",", ":")) + "\n").encode())
