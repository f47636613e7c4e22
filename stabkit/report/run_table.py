"""Runs as a table of pandas, a row each: what Python gets of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from stabkit.results.conditions import FACTS, shown
from stabkit.results.readings import lowest_ratio, reference_step, update_at
from stabkit.results.run import Run

COLUMNS = (
    *FACTS,
    *("lr", "warmup", "steps", "validation_loss", "unigram_loss", "update", "gradient_ratio", "forecast", "p_trains"),
)
"""Of `load_runs`, and of what a sweep returns."""


def table(runs: Sequence[Run]) -> pd.DataFrame:
    """One row a run: COLUMNS."""
    step = reference_step(list(runs))
    return pd.DataFrame([_row(row.run, row.facts(), step) for row in shown(list(runs))], columns=list(COLUMNS))


def _row(run: Run, facts: dict[str, Any], step: int) -> dict[str, Any]:
    forecast = run.forecast
    return {
        **facts,
        "lr": run.spec.train.lr,
        "warmup": run.spec.train.warmup,
        "steps": run.outcome.steps,
        "validation_loss": run.outcome.validation_loss,
        "unigram_loss": run.outcome.unigram_loss,
        "update": update_at(run, step),
        "gradient_ratio": lowest_ratio(run),
        "forecast": forecast.word if forecast else "",
        "p_trains": float("nan") if forecast is None or forecast.p_trains is None else forecast.p_trains,
    }
