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
from stabkit.results.run import Run
from stabkit.words import fitting, listed, short

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
        return next((word for word in ("diverged", "stuck", "undecided", "trains") if word in words), "undecided")

    @property
    def name(self) -> str:
        """`α × 0.25`, `α × 0.5 with β × 2`, `the method itself`."""
        parts = [f"{name} × {factor:.3g}" for name, factor in (("α", self.a), ("β", self.b)) if factor != 1]
        return " with ".join(parts) or "the method itself"


def cells(rows: pd.DataFrame) -> list[Cell]:
    """Every pair of factors of one setting, in rising order."""
    by: Any = rows.groupby(["alpha_scale", "beta_scale"])
    return [Cell(a, b, runs) for (a, b), runs in by]


def in_short(every: pd.DataFrame) -> str:
    """Of the first judged setting how many factors train and, of one axis, which ends lowest, medians over seeds, in a
    headline: `DeepNorm trains with 4 of 5 factors on α, best with α × 4 (4.89; as published 5.6), not with α × 0.25.`;
    "" where none is judged."""
    rows = next((rows for _, rows in groups(every) if any(cell.word != "undecided" for cell in cells(rows))), None)
    if rows is None:
        return ""
    counted = cells(rows)
    failing = [cell.name for cell in counted if cell.word in ("stuck", "diverged", "some")]
    whole = [cell for cell in counted if cell.word == "trains"]
    on = {"α": len({cell.a for cell in counted}), "β": len({cell.b for cell in counted})}
    what = "pairs of factors on α and β" if min(on.values()) > 1 else f"factors on {max(on, key=lambda one: on[one])}"
    lead = f"{rows['label'].iloc[0]} trains with {len(whole)} of {len(counted)} {what}"
    ends = {(cell.a, cell.b): float(cell.runs["validation_loss"].median()) for cell in whole}
    best = min(whole, key=lambda cell: ends[cell.a, cell.b], default=None)
    own = f"; as published {short(ends[1.0, 1.0], 3)}" if (1.0, 1.0) in ends else ""
    ranked = [""]
    if best is not None and len(whole) > 1 and min(on.values()) == 1:
        where, beside = ("as published", "") if best.a == best.b == 1 else (f"with {best.name}", own)
        ranked = [f", best {where} ({short(ends[best.a, best.b], 3)}{more})" for more in (beside, "")] + ranked
    which = f", not with {' or with '.join(failing)}" if 0 < len(failing) <= 2 else ""
    return fitting(
        f"{lead}{ranked[0]}{which}.", *(f"{lead}{one}." for one in ranked[:-1]), f"{lead}{which}.", f"{lead}."
    )


def groups(frame: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    """(`DeepNorm, 18L-18L, no warm-up`, its rows): the runs of one setting."""
    by = frame.groupby(["label", "depth", "condition"], sort=False)
    return [(listed(*(str(part) for part in key)), own) for key, own in by]
