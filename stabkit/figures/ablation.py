"""Validation loss against the factor on α and on β: DeepNet Fig. 9, in nats instead of BLEU.

Runs that differ from the method's own α and β in one of the two; the run at 1 belongs to both panels. Only on pages of
runs with scales (`stabkit ablate`).
"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
from matplotlib.figure import Figure

from stabkit.figures import curves, scales
from stabkit.figures.comparison import FACTS, listed, short
from stabkit.figures.curves import Curves
from stabkit.store import Run

NAME = "ablation"
SHORT = "α and β scaled"
INDEX: str | None = None
VALUE = "validation_loss"
CAPTION = "DeepNet Fig. 9 (journal version), validation loss for BLEU."
READ = (
    "At 1 the method is itself. The paper: a small factor on α or a large one on β destabilises, a large factor on α "
    "or a small one on β undermines performance. On the dashed line nothing is learnt. Seeds: median and band."
)
COLUMNS = (*FACTS, "axis", "scale", "unigram_loss", "validation_loss")
OPTIONAL = True
"""Not on pages without a scaled run."""


def select(runs: Sequence[Run]) -> pd.DataFrame:
    """One row a run and axis; `condition` is what else sets runs apart."""
    frame = scales.frame(runs)
    along = {"α": ("alpha_scale", "beta_scale"), "β": ("beta_scale", "alpha_scale")}
    parts = []
    for axis, (own, other) in along.items():
        rows = frame[frame[other] == 1]
        parts.append(rows.assign(axis=axis, scale=rows[own]))
    return pd.concat(parts).sort_values(["axis", "scale"], kind="stable").reset_index(drop=True)[list(COLUMNS)]


def title(runs: Sequence[Run]) -> str:
    """The worst place of each axis."""
    frame = select(runs)
    parts = []
    for axis, own in frame.groupby("axis"):
        by = own.groupby("scale")["validation_loss"].median().dropna()
        if len(by) > 1:
            worst = own.sort_values("validation_loss", kind="stable").dropna(subset=["validation_loss"]).iloc[-1]
            parts.append(f"{axis} × {worst['scale']:g} ({short(float(worst['validation_loss']), 3)})")
    if not parts:
        return "What a factor on α or β costs"
    label = frame["label"].iloc[0]
    return f"{label} ends worst at {' and '.join(parts)} nats"


def alt(frame: pd.DataFrame) -> str:
    """What the picture shows, for those who do not see it."""
    if frame.empty:
        return "No run has a scaled α or β."
    means = frame.groupby(["label", "axis", "scale"], sort=False)["validation_loss"].median().reset_index()
    parts = [
        f"{listed(row['label'], row['axis'])} × {row['scale']:g} {short(float(row['validation_loss']), 3)}"
        for _, row in means.iterrows()
    ]
    return f"Validation loss against the factor on α and on β. {'; '.join(parts[:24])}."


def draw(frame: pd.DataFrame) -> Figure:
    """A panel an axis and depth."""
    return curves.draw(
        frame.assign(panel=frame["depth"] + ", factor on " + frame["axis"]),
        Curves(
            x="scale",
            y="validation_loss",
            x_label="factor",
            y_label="validation loss, nats a token",
            none="No run has a scaled α or β.",
            log_y=False,
            across="factors",
            middle=pd.Series.median,
            reference=lambda group: curves.lines(group, "unigram_loss", "unigram loss", float),
            columns=2,
            height=3.0,
        ),
    )
