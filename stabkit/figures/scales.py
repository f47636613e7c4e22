"""Runs whose α and β are scaled, beside the method itself: one row a run, what the pictures of `stabkit ablate` share.

A setting (method with its options, depth, condition) belongs here when one of its runs has a factor other than 1;
`condition` is what else sets runs apart. `crossing`, `encoder` and `decoder` are the three sums of the theorem
(`theorem.py`) after update 1, taken back to factors of 1; at factors a on α and b on β the prediction is
crossing·b²/a · encoder·b/a + decoder·b/a.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from stabkit.figures import theorem
from stabkit.figures.comparison import FACTS, chain, conditions, listed, number, shown
from stabkit.store import Run

SUMS = ("crossing", "encoder", "decoder")
COLUMNS = (
    *(*FACTS, "alpha_scale", "beta_scale", "width", "unigram_loss", "validation_loss"),
    *("update_first", "ln_input_growth", "gradient_ratio_lowest", *SUMS, "predicted"),
)


def frame(runs: Sequence[Run]) -> pd.DataFrame:
    """One row a run of a scaled method, in the order of all tables."""
    placed = shown(runs)
    rest = conditions([replace(each.run.spec, alpha_scale=1.0, beta_scale=1.0) for each in placed])
    factors = [(each.run.spec.alpha_scale, each.run.spec.beta_scale) for each in placed]
    settings = [(each.label, each.run.spec.depth, condition) for each, condition in zip(placed, rest, strict=True)]
    scaled = {setting for setting, pair in zip(settings, factors, strict=True) if pair != (1, 1)}
    rows = []
    for each, setting, (a, b) in zip(placed, settings, factors, strict=True):
        if setting not in scaled:
            continue
        run = each.run
        a, b = np.float64(a), np.float64(b)  # numpy's: a factor whose square is nothing makes infinity, not an error
        crossing, encoder, decoder = theorem.sums(run, 1) or (math.nan, math.nan, math.nan)
        rows.append(
            {
                **each.facts(),
                "condition": setting[-1],
                "alpha_scale": a,
                "beta_scale": b,
                "width": run.spec.model.hidden,
                "unigram_loss": number(run.outcome.get("unigram_loss")),
                "validation_loss": number(run.outcome.get("validation_loss")),
                "update_first": chain(run, "update_first"),
                "ln_input_growth": chain(run, "ln_input_growth"),
                "gradient_ratio_lowest": chain(run, "gradient_ratio_lowest"),
                "crossing": crossing * a / b**2,
                "encoder": encoder * a / b,
                "decoder": decoder * a / b,
                "predicted": crossing * encoder + decoder,
            }
        )
    return pd.DataFrame(rows, columns=list(COLUMNS))


def groups(frame: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    """(`DeepNorm, 18L-18L, no warm-up`, its rows): what may stand in one plane of factors."""
    by = frame.groupby(["label", "depth", "condition"], sort=False)
    return [(listed(*(str(part) for part in key)), own) for key, own in by]
