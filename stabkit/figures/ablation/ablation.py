"""Validation loss against the factor on α and on β: DeepNet Fig. 9, in nats instead of BLEU.

Runs that differ from the method's own α and β in one of the two; the run at 1 belongs to both panels. Only on pages of
runs with scales (`stabkit ablate`).
"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
from matplotlib.figure import Figure

from stabkit.figures.drawing import curves, style
from stabkit.figures.drawing.curves import Curves
from stabkit.figures.picture import Note, Picture, RunPicture
from stabkit.results import points, scales
from stabkit.results.conditions import FACTS
from stabkit.results.once import once
from stabkit.results.run import Run
from stabkit.words import listed, short

COLUMNS = (*FACTS, "axis", "scale", "unigram_loss", "validation_loss")


@once
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
    """Where the first setting fails, or where it ends worst, medians over seeds."""
    for name, group in scales.groups(select(runs)):
        places = [(str(axis), float(scale)) for axis, scale in zip(group["axis"], group["scale"], strict=True)]
        by_place = {place: group[[other == place for other in places]] for place in dict.fromkeys(places)}
        failing = []
        for (axis, scale), rows in by_place.items():
            if lost := int(rows["outcome"].isin(("stuck", "diverged")).sum()):
                failing.append(f"{axis} × {scale:.3g} ({lost} of {len(rows)})")
        if failing:
            return f"{name} fails at {' and '.join(failing[:4])}{' and others' if len(failing) > 4 else ''}"
        medians = {place: float(rows["validation_loss"].median()) for place, rows in by_place.items()}
        parts = []
        for axis in ("α", "β"):
            along = [(loss, scale) for (own_axis, scale), loss in medians.items() if own_axis == axis and loss == loss]
            if len(along) > 1:
                parts.append(f"{axis} × {max(along)[1]:.3g} ({short(max(along)[0], 3)})")
        if parts:
            return f"{name} ends worst at {' and '.join(parts)} nats"
    return "What a factor on α or β costs"


def alt(frame: pd.DataFrame) -> str:
    parts = []
    for (label, depth, condition, axis), rows in frame.groupby(["label", "depth", "condition", "axis"], sort=False):
        for scale, loss in rows.groupby("scale")["validation_loss"].median().items():
            parts.append(f"{listed(label, depth, condition, axis)} × {scale:g} {short(float(loss), 3)}")
    return f"Validation loss against the factor on α and on β, medians over seeds. {'; '.join(parts[:24])}."


def draw(frame: pd.DataFrame) -> Figure:
    """A panel an axis and depth."""
    drawn = curves.draw(
        frame.assign(panel=frame["depth"] + ", factor on " + frame["axis"]),
        Curves(
            x="scale",
            y="validation_loss",
            x_name="factor",
            y_label="validation loss, nats a token",
            log_y=False,
            across="factors",
            middle=points.median,
            reference=lambda group: curves.lines(group, "unigram_loss", "unigram loss", float),
            columns=2,
            height=3.0,
        ),
    )
    return drawn or style.empty("Every scaled run diverged.")


PICTURE: RunPicture = Picture(
    name="ablation",
    short="α and β scaled",
    room="ablation",
    caption="DeepNet Fig. 9 (journal version), validation loss for BLEU.",
    see="The range of low loss around 1 shows how wrong α or β may be; 1 is the method itself.",
    read=(
        Note(
            "The paper: a small factor on α or a large one on β destabilises, a large factor on α or a small one on β "
            "undermines performance. On the dashed line the model has learnt nothing."
        ),
        Note("Seeds: median and band.", ("band",)),
    ),
    columns=COLUMNS,
    value="validation_loss",
    select=select,
    draw=draw,
    title=title,
    alt=alt,
    none="No run has a scaled α or β.",
    optional=True,
)
