"""Runs whose α and β are scaled, beside the method itself: one row a run, what the pictures of `stabkit ablate` share.

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
from stabkit.results.outcome import AT_UNIGRAM, BORDERLINE
from stabkit.results.readings import chain
from stabkit.results.run import Run
from stabkit.words import fitting, listed

COLUMNS = (
    *(*FACTS, "alpha_scale", "beta_scale", "lr", "unigram_loss", "validation_loss"),
    *("update_first", "ln_input_growth", "gradient_ratio_lowest"),
)


RATE_IN_CONDITIONS = "rate_told"
"""An attribute of the frame: whether its conditions tell the rate."""


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
                "lr": run.spec.train.lr,
                "update_first": chain(run, "update_first"),
                "ln_input_growth": chain(run, "ln_input_growth"),
                "gradient_ratio_lowest": chain(run, "gradient_ratio_lowest"),
            }
        )
    found = pd.DataFrame(rows, columns=list(COLUMNS))
    found.attrs[RATE_IN_CONDITIONS] = any(condition.has("train.lr") for *_, condition in settings)
    return found


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
    def closest(self) -> float:
        """The highest share of the unigram loss at which one of its runs ends that trains; NaN for none."""
        training = self.runs[self.runs["outcome"] == "trains"]
        return float((training["validation_loss"] / training["unigram_loss"]).max())

    @property
    def rate(self) -> str:
        """`2 of 3 train`, `0 of 2 stuck`."""
        count = int((self.runs["outcome"] == "trains").sum())
        return f"{count} of {len(self.runs)} {'train' if count else self.word}"

    @property
    def name(self) -> str:
        """`α × 0.25`, `α × 0.5 with β × 2`, `the method itself`."""
        parts = [f"{name} × {factor:.3g}" for name, factor in (("α", self.a), ("β", self.b)) if factor != 1]
        return " with ".join(parts) or "the method itself"


def cells(rows: pd.DataFrame) -> list[Cell]:
    """Every pair of factors of one setting, in rising order."""
    by: Any = rows.groupby(["alpha_scale", "beta_scale"])
    return [Cell(a, b, runs) for (a, b), runs in by]


def sentence(every: pd.DataFrame, name: str, rows: pd.DataFrame) -> str:
    """How many pairs of factors of one plane of them train, which fail where they are few, which train by a hair, and
    how many are undecided."""
    counted = cells(rows)
    if rows["lr"].nunique() == 1 and not every.attrs[RATE_IN_CONDITIONS]:
        name = f"{name}, lr {rows['lr'].iloc[0]:g}"
    pairs, stop = "pairs of factors on α and β", ""
    for other, only in (("beta_scale", "α"), ("alpha_scale", "β")):
        if set(rows[other]) == {1.0}:
            spread = sorted(rows["alpha_scale" if only == "α" else "beta_scale"])
            pairs, stop = f"factors on {only}, {spread[0]:g} to {spread[-1]:g}", ","
    failing = [cell.name for cell in counted if cell.word in ("stuck", "diverged", "some")]
    undecided = sum(cell.word == "undecided" for cell in counted)
    if undecided == len(counted):
        return f"{name}: {len(counted)} {pairs}, all undecided"
    seeds = " in every seed" if rows["seed"].nunique() > 1 else ""
    whole = sum(cell.word == "trains" for cell in counted)
    told = f"{name}: {whole} of {len(counted)} {pairs}{stop} train{seeds}"
    if 0 < len(failing) <= 4:
        told += f", not with {' or with '.join(failing)}"
    hair = [f"{cell.name} ends at {cell.closest:.3f} U" for cell in counted if cell.closest > BORDERLINE]
    if hair:
        told += f"; narrowly ({', '.join(hair[:3])}; the limit is {AT_UNIGRAM:g})"
    return told + (f"; {undecided} are undecided" if undecided else "")


def in_short(every: pd.DataFrame) -> str:
    """The same of the first plane that is judged, in the length of a headline: `DeepNorm trains with 7 of 9 pairs of
    factors on α and β, not with α × 0.25 or with β × 4.`; "" where none is."""
    rows = next((rows for _, rows in groups(every) if any(cell.word != "undecided" for cell in cells(rows))), None)
    if rows is None:
        return ""
    counted = cells(rows)
    failing = [cell.name for cell in counted if cell.word in ("stuck", "diverged", "some")]
    whole = sum(cell.word == "trains" for cell in counted)
    lead = f"{rows['label'].iloc[0]} trains with {whole} of {len(counted)} pairs of factors on α and β"
    which = f", not with {' or with '.join(failing)}" if 0 < len(failing) <= 2 else ""
    return fitting(f"{lead}{which}.", f"{lead}.")


def groups(frame: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    """(`DeepNorm, 18L-18L, no warm-up`, its rows): what may stand in one plane of factors."""
    by = frame.groupby(["label", "depth", "condition"], sort=False)
    return [(listed(*(str(part) for part in key)), own) for key, own in by]
