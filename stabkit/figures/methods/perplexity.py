"""Perplexity of the training batches and of the validation text, update by update: Very Deep Transformers Fig. 2.

exp(−log p of the right token), without label smoothing: of each training batch as it is learned from (dropout on), and
of the fixed validation batches in eval mode.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from stabkit.figures.curve_picture import Rows, by_step, curves_of
from stabkit.figures.drawing import curves
from stabkit.figures.picture import Note
from stabkit.results.conditions import Shown
from stabkit.results.readings import centre, series
from stabkit.results.run import Run
from stabkit.spec import SHORTEST_JUDGED
from stabkit.words import listed, several, short

TRAINING, VALIDATION = "training batches", "validation"
SOURCES = ((TRAINING, "loss", "train@nll"), (VALIDATION, "validation", "nll"))


def _readings(placed: Shown) -> Rows:
    """A row a kind of batches and reading."""
    for kind, probe, site in SOURCES if placed.run.spec.train.steps >= SHORTEST_JUDGED else ():
        steps, nll = series(placed.run, probe, site)
        with np.errstate(over="ignore"):
            values = np.exp(nll)
        for step, value in zip(steps.tolist(), values.tolist(), strict=True):
            yield {"batches": kind, "step": step, "perplexity": value}


def last(frame: pd.DataFrame) -> pd.DataFrame:
    """The validation rows with which every run ends."""
    rows = frame[frame["batches"] == VALIDATION]
    return rows[rows["step"] == rows.groupby("run")["step"].transform("max")]


def title(runs: Sequence[Run], frame: pd.DataFrame) -> str:
    """`At 18L-18L DeepNorm's validation perplexity ends at 210, Post-LN's at 390`, at the deepest place where methods
    can be compared."""
    for (depth, condition), rows in reversed(list(last(frame).groupby(["depth", "condition"], sort=False))):
        finite = rows[(rows["outcome"] != "diverged") & np.isfinite(rows["perplexity"])]
        by = finite.groupby("label", sort=False)["perplexity"].agg(centre)
        lost = [str(label) for label in rows["label"].unique() if label not in by.index]
        if by.empty or len(by) + len(lost) < 2:
            continue
        best, worst = str(by.idxmin()), str(by.idxmax())
        count = len(by) + len(lost)
        other = f"{several(lost, count)} diverged" if lost else f"{worst}'s at {short(float(by.max()), 3)}"
        if lost or best != worst:
            where = listed(depth, condition)
            return f"At {where} {best}'s validation perplexity ends at {short(float(by.min()), 3)}, {other}"
    return "Perplexity, update by update"


def _panels(frame: pd.DataFrame) -> pd.DataFrame:
    """Two panels a depth."""
    order = frame["batches"].map([kind for kind, _, _ in SOURCES].index)
    placed = curves.by_depth(frame.assign(order=order).sort_values("order", kind="stable"))
    return placed.assign(panel=placed["depth"] + ", " + placed["batches"])


PICTURE = curves_of(
    name="perplexity",
    short="Perplexity",
    room="methods",
    caption="Very Deep Transformers Fig. 2(a), training perplexity, and Fig. 2(b), validation perplexity.",
    see="The effective number of words the model chooses among; without label smoothing, curve not smoothed.",
    read=(
        Note(
            "Several seeds: a median with a band from lowest to highest. A run that diverged ends in a ✕ at its "
            "last finite value.",
            ("diverged", "band"),
        ),
    ),
    optional=True,
    columns=("batches", "step", "perplexity"),
    value="perplexity",
    rows=_readings,
    arranged=_panels,
    title=title,
    alt=lambda frame: (
        "Perplexity against the step, logarithmic: training batches and validation, two panels per depth. "
        f"Validation at the end: {curves.ends(last(frame), 'step', 'perplexity')}."
    ),
    none="No run is long enough for a perplexity curve.",
    what=lambda frame: by_step(y="perplexity", y_label="perplexity", middle=centre),
)
