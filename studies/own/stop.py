"""The bound of `stabkit log --stop`: counted on the cases below 420, judged on the others.

    python -m studies.own log [--check]     stabkit/results/stop.json, docs/evidence/log.md

Regressions have no level and are left out; a case that lost a number lies above every band from there on. All are
judged by the package's own rule, those that it says nothing of are counted apart.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from stabkit.results import stop
from stabkit.results.forecast.logistic import Array
from stabkit.results.intervals import wilson
from stabkit.results.log import Series, TrainingLog
from stabkit.results.log import judged as judged_log
from stabkit.storage.folder import write_file
from studies.own.corpus import CorpusRow

JSON = Path(stop.__file__).with_suffix(".json")
KEYS = {"level": "known", "uniform": "ln V"}
"""{key: what a level is of}."""
TAIL = 0.25
"""The share of ranks and scores that is kept: no limit lies beyond."""


def usable(rows: Sequence[CorpusRow]) -> list[CorpusRow]:
    """Those with classes and losses."""
    return [row for row in rows if not row.case.regression and len(row.losses) > 1]


def curve(row: CorpusRow) -> tuple[Array, Array]:
    """(steps, losses): a mean of ten updates that a row has stands at two of them; ∞ after a number was lost."""
    losses = np.array(row.losses)
    least = max(len(losses), stop.LOOKS[-1] // 10)
    ended = math.inf if row.ends == "diverged" and not np.isfinite(losses[-1]) else math.nan
    losses = np.concatenate([losses, np.full(least - len(losses), ended)]).repeat(2)
    steps = 5.0 * np.arange(1, 2 * least + 1, dtype=np.float64)
    there = ~np.isnan(losses)
    return steps[there], losses[there].astype(np.float64)


def level_of(row: CorpusRow, key: str) -> float:
    """Of a key."""
    return row.level if key == "level" else math.log(row.case.shape.words)


def counted(rows: Sequence[CorpusRow]) -> dict[str, Any]:
    """What the package reads."""
    chosen = [row for row in usable(rows) if row.ends == "trains" and not row.case.judge]
    body: dict[str, Any] = {}
    for key in KEYS:
        like = [row for row in chosen if not at(row, key, 0.05, EMPTY).why]
        ways = np.array([1 - stop.at_looks(*curve(row)) / level_of(row, key) for row in like])
        band = banded(ways)
        body[key] = {
            "count": band.count,
            "scale": band.scale.tolist(),
            "scores": band.scores.tolist(),
            "lowest": band.lowest.tolist(),
        }
        body[key]["judged"] = {f"{alpha:g}": judged(rows, key, alpha, band) for alpha in stop.SHARES}
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


EMPTY = stop.Band(np.zeros((len(stop.LOOKS), 1)), np.ones(len(stop.LOOKS)), 100, np.zeros(25), {})
"""For whether anything is said of a case."""


def at(row: CorpusRow, key: str, alpha: float, band: stop.Band | None = None) -> stop.Stop:
    """What the package's own rule says of a case."""
    level, uniform = (row.level, None) if key == "level" else (None, level_of(row, key))
    return stop.judge(*curve(row), alpha, level=level, uniform=uniform, rises=row.case.warmup, band=band)


def judged(rows: Sequence[CorpusRow], key: str, alpha: float, band: stop.Band) -> list[int]:
    """[stopped, of those that train, found, of those that fail] of the cases that judge and that something is said
    of."""
    own = [(row, at(row, key, alpha, band)) for row in usable(rows) if row.case.judge and row.clear]
    good, bad = ([one for row, one in own if row.fails == fails and not one.why] for fails in (False, True))
    return [sum(one.step is not None for one in good), len(good), sum(one.step is not None for one in bad), len(bad)]


def beside(rows: Sequence[CorpusRow], alpha: float = 0.05) -> str:
    """Of the judging cases that ended neither well nor badly how many are stopped; of those that train how many have
    the word `diverged`, which stops too."""
    judging = [row for row in usable(rows) if row.case.judge]
    left, good = ([row for row in judging if chosen(row)] for chosen in (_unclear, _trains))
    ends = (f"{sum(at(row, key, alpha).step is not None for row in left)} by the level {KEYS[key]}" for key in KEYS)
    curves = (Series(*curve(row)).at(slice(None, None, 2)) for row in good)
    logs = (TrainingLog(name="", form="", column="loss", unit="update", loss=own) for own in curves)
    wrong = sum(judged_log(own).word == "diverged" for own in logs)
    return (
        f"Cases that ended neither well nor badly are in no column. Of {len(left)} it stops {' and '.join(ends)}. A "
        f"log whose word is *diverged* ends with 7 too, at any update: of {len(good)} that train {wrong} had it."
    )


def _unclear(row: CorpusRow) -> bool:
    return not row.clear


def _trains(row: CorpusRow) -> bool:
    return row.clear and not row.fails


HEADS = (
    "trainings", "level", "stopped of what trains", "found of what fails", "nothing said", "half by", "updates saved",
)  # fmt: skip


def table(rows: Sequence[CorpusRow], alpha: float = 0.05) -> list[tuple[str, ...]]:
    """By group: good ones stopped with its interval, bad ones found, the share of their updates saved."""
    groups: dict[str, Callable[[CorpusRow], bool]] = {
        "all": lambda row: True,
        "no warm-up": lambda row: row.case.warmup == 0,
        "warm-up of 50": lambda row: row.case.warmup == 50,
        "warm-up of 200": lambda row: row.case.warmup == 200,
        **{name: partial(_stepped_by, name) for name in sorted({row.case.optimizer for row in rows})},
        "tied": lambda row: row.case.shape.tied,
        "not tied": lambda row: not row.case.shape.tied,
    }
    lines = list[tuple[str, ...]]()
    for name, inside in groups.items():
        for key, which in KEYS.items():
            ends = [(row, at(row, key, alpha)) for row in usable(rows) if row.case.judge and row.clear and inside(row)]
            like = [(row, one) for row, one in ends if not one.why]
            good, bad = ([one.step for row, one in like if row.fails == fails] for fails in (False, True))
            wrong, right = [one for one in good if one is not None], [one for one in bad if one is not None]
            low, high = wilson(len(wrong) / max(len(good), 1), len(good)) if good else (0.0, 1.0)
            updates = sum(row.updates for row, _ in like if row.fails)
            saved = sum(max(0, row.updates - one.step) for row, one in like if row.fails and one.step is not None)
            cells = (
                name,
                which,
                f"{len(wrong)} of {len(good)} ({100 * low:.1f} to {100 * high:.1f} %)",
                f"{len(right)} of {len(bad)}",
                str(len(ends) - len(like)),
                f"{np.median(right):.0f}" if right else "–",
                f"{100 * saved / max(updates, 1):.0f} %",
            )
            lines.append(cells)
    return lines


def _stepped_by(name: str, row: CorpusRow) -> bool:
    return row.case.optimizer == name


def write(rows: Sequence[CorpusRow]) -> None:
    """The package's numbers."""
    write_file(JSON, (json.dumps(counted(rows), separators=(",", ":")) + "\n").encode())
