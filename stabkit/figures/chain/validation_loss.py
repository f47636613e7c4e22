"""Validation loss against the step: DeepNet Fig. 2(c), and the ADMIN paper's Fig. 2(b) in nats.

The loss a token on the fixed validation batches, label smoothing included, in eval mode; the reference line is what the
best constant predictor loses on the same tokens.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from stabkit.figures.drawing import curves, style
from stabkit.figures.drawing.curves import Curves
from stabkit.figures.picture import Note, Picture, RunPicture
from stabkit.figures.shared import points
from stabkit.figures.shared.comparison import FACTS, shown
from stabkit.figures.shared.once import once
from stabkit.figures.shared.words import listed, several, short
from stabkit.results.outcome import AT_UNIGRAM
from stabkit.storage.store import Run

COLUMNS = (*FACTS, "unigram_loss", "step", "validation_loss")


@once
def select(runs: Sequence[Run]) -> pd.DataFrame:
    """One row a run and reading; runs without an update beside others are left out."""
    rows = []
    for each in shown([run for run in runs if run.spec.train.steps] or runs):
        table = each.run.records.get("validation")
        if table is None:
            continue
        facts = {**each.facts(), "unigram_loss": each.run.outcome.unigram_loss}
        for step, value in zip(table.steps.tolist(), table.at("validation").tolist(), strict=True):
            rows.append({**facts, "step": step, "validation_loss": value})
    return curves.by_depth(pd.DataFrame(rows, columns=list(COLUMNS)))


def title(runs: Sequence[Run]) -> str:
    """Of the runs that were judged, who is at the unigram loss in the end and who well below it, at the depth where
    most stay there; else the least and the greatest end."""
    frame = select(runs)
    if frame.empty:
        return "Validation loss"
    last = frame[frame["step"] == frame.groupby("run")["step"].transform("max")]
    share = last[last["outcome"] != "early"].assign(share=last["validation_loss"] / last["unigram_loss"])
    said, most = "", 0
    for (depth, condition), own in share.groupby(["depth", "condition"], sort=False):
        by = own.groupby("label", sort=False)["share"].agg(["min", "max"])
        stuck, trained = list(by.index[by["min"] >= AT_UNIGRAM]), list(by.index[by["max"] < AT_UNIGRAM])
        if len(stuck) > most and trained:
            most = len(stuck)
            said = (
                f"At {listed(depth, condition)} {several(stuck, len(by))} end{'s' if len(stuck) == 1 else ''} no "
                f"better than a constant predictor, {several(trained, len(by))} below it"
            )
    if said:
        return said
    finite = last[np.isfinite(last["validation_loss"])]
    means = finite.groupby(["label", "depth", "condition"], sort=False)["validation_loss"].mean()
    if means.empty:
        return "Validation loss"
    (least, low), (greatest, high) = ((listed(*at), short(means[at], 3)) for at in (means.idxmin(), means.idxmax()))
    if least == greatest:
        return f"The validation loss ends at {low} ({least})"
    return f"The validation loss ends between {low} ({least}) and {high} ({greatest})"


def alt(frame: pd.DataFrame) -> str:
    """What the picture shows, for those who do not see it."""
    if frame.empty:
        return "No run has read its validation loss."
    unigram = short(float(frame["unigram_loss"].median()), 3)
    ends = "; ".join(curves.ends(frame, "step", "validation_loss"))
    return f"Validation loss against the step, one panel a depth; unigram loss {unigram}. At the end: {ends}."


def draw(frame: pd.DataFrame) -> Figure:
    """A panel a depth."""

    if len(frame) and frame.groupby("run")["step"].nunique().max() < 2:
        return style.empty("These runs are too short: their validation loss was read once, at the end (see the table).")
    return curves.draw(
        frame,
        Curves(
            x="step",
            y="validation_loss",
            x_name="step",
            x_note=" (updates done)",
            y_label="validation loss, nats a token",
            none="No run has read its validation loss.",
            log_y=False,
            middle=points.median,
            reference=lambda group: curves.lines(group, "unigram_loss", "unigram loss", float),
        ),
    )


PICTURE: RunPicture = Picture(
    name="validation_loss",
    short="Validation loss",
    room="chain",
    caption="DeepNet Fig. 2(c) (journal version); Very Deep Transformers (ADMIN) Fig. 2.",
    see="A model that knows nothing but how frequent each word is stands on the dashed line; a stuck one stays there.",
    read=(
        Note(
            "Label smoothing is part of both the loss and the dashed line. A run of fewer than 40 steps is read once, "
            "at its end: it cannot be judged."
        ),
    ),
    columns=COLUMNS,
    index="step",
    value="validation_loss",
    select=select,
    draw=draw,
    title=title,
    alt=alt,
)
