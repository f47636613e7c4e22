"""Runs whose α and β are scaled, beside the method itself: one row a run, for the curves and the headline of
`stabkit ablate`.

A setting (method with its options, depth, condition) belongs here when one of its runs has a factor other than 1;
`condition` is what else sets runs apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from stabkit.results.conditions import FACTS, conditions, shown
from stabkit.results.once import once
from stabkit.results.outcome import NOT_JUDGED
from stabkit.results.run import Run
from stabkit.words import listed

COLUMNS = (*FACTS, "alpha_scale", "beta_scale", "unigram_loss", "validation_loss")


@once
def frame(runs: Sequence[Run]) -> pd.DataFrame:
    """One row a run of a scaled method, in the order of all tables."""
    placed = shown(runs)
    unscaled = [replace(each.run.spec, alpha_scale=1.0, beta_scale=1.0) for each in placed]
    settings = [
        (each.variant, each.shape, condition) for each, condition in zip(placed, conditions(unscaled), strict=True)
    ]
    scaled = {
        setting
        for each, setting in zip(placed, settings, strict=True)
        if each.run.spec.alpha_scale != 1 or each.run.spec.beta_scale != 1
    }
    rows = []
    for each, setting in zip(placed, settings, strict=True):
        if setting not in scaled:
            continue
        run, condition = each.run, setting[-1]
        rows.append(
            {
                **each.facts("unigram_loss", "validation_loss"),
                "condition": condition.text,
                "alpha_scale": run.spec.alpha_scale,
                "beta_scale": run.spec.beta_scale,
            }
        )
    return pd.DataFrame(rows, columns=list(COLUMNS))


@dataclass(frozen=True, slots=True)
class Cell:
    """All seeds of one pair of factors."""

    a: float
    b: float
    runs: pd.DataFrame

    @property
    def word(self) -> str:
        """`trains` when all do, `some` when some do and some fail, else the worst word."""
        words = set(self.runs["outcome"])
        if "trains" in words and words & {"stuck", "diverged"}:
            return "some"
        return next((word for word in ("diverged", "stuck", NOT_JUDGED, "trains") if word in words), NOT_JUDGED)

    @property
    def name(self) -> str:
        """`α × 0.25`, `α × 0.5 with β × 2`, `the method itself`."""
        parts = [f"{name} × {factor:.3g}" for name, factor in (("α", self.a), ("β", self.b)) if factor != 1]
        return " with ".join(parts) or "the method itself"


def cells(rows: pd.DataFrame) -> list[Cell]:
    """Every pair of factors of one setting, in rising order."""
    by: Any = rows.groupby(["alpha_scale", "beta_scale"])
    return [Cell(a, b, runs) for (a, b), runs in by]


def groups(frame: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    """(`DeepNorm, 18L-18L, no warm-up`, its rows): the runs of one setting."""
    by = frame.groupby(["label", "depth", "condition"], sort=False)
    return [(listed(*(str(part) for part in key)), own) for key, own in by]
