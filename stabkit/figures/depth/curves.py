"""The loss at θ₀ against the width, a row of the table of curves.

A method whose shortcut is large hands its input on almost unchanged. With tied embeddings the softmax then finds in the
output state the token that came in, at a logit of about √d, before anything was learned; with a softmax of its own it
finds nothing there. The loss at θ₀ shows how much of that there is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from stabkit.figures.curve_picture import Rows, curves_of
from stabkit.figures.drawing import curves
from stabkit.figures.drawing.curves import Curves, Strokes
from stabkit.figures.picture import always
from stabkit.results.conditions import Shown
from stabkit.results.readings import centre
from stabkit.results.run import Run
from stabkit.words import short


def _starts(placed: Shown) -> Rows:
    """A row a run at the method's own factors: its loss before any update."""
    spec, table = placed.run.spec, placed.run.records.get("loss")
    if table is not None and spec.alpha_scale == 1 == spec.beta_scale:
        loss = float(table.at("probe")[0])
        unigram = placed.run.outcome.unigram_loss
        yield {"hidden": spec.model.hidden, "tied": spec.model.tied, "loss": loss, "unigram_loss": unigram}


def _middles(frame: pd.DataFrame) -> pd.DataFrame:
    """The median over seeds (and over runs that differ in what comes after θ₀)."""
    keys = ["depth", "label", "method", "tied", "hidden"]
    return frame.groupby(keys, sort=False)["loss"].agg(centre).reset_index()


def tying(runs: Sequence[Run], frame: pd.DataFrame) -> str:
    """What tying adds to the start of the method for which it adds most, at the greatest width."""
    if frame.empty:
        return "The loss before any update, by width"
    middle = _middles(frame)
    both = middle.pivot_table(index=["depth", "label", "hidden"], columns="tied", values="loss").dropna()
    wide = both[both.index.get_level_values("hidden") == frame["hidden"].max()] if len(both) else both
    if wide.empty or wide.shape[1] < 2:
        top = middle[middle["hidden"] == frame["hidden"].max()].sort_values("loss").iloc[-1]
        return f"At width {top['hidden']} {top['label']} begins at a loss of {short(top['loss'])} ({top['depth']})"
    gap = (wide[True] - wide[False]).sort_values()
    depth, label, hidden = gap.index[-1]
    tied, name = (short(float(wide.loc[gap.index[-1], side])) for side in (True, False))
    return f"{label} {depth}, width {hidden}: the initial loss is {tied} with tied embeddings, {name} without"


def start_alt(frame: pd.DataFrame) -> str:
    parts = []
    for (depth, label, tied), rows in _middles(frame).groupby(["depth", "label", "tied"], sort=False):
        values = ", ".join(f"{row['hidden']}: {short(row['loss'])}" for row in rows.to_dict("records"))
        parts.append(f"{label} {depth} {'tied' if tied else 'untied'}, {values}")
    return f"Chart of the loss before any update against the width. {'; '.join(parts)}."


def _ties(frame: pd.DataFrame) -> Strokes:
    """Solid with the softmax tied to the embedding, dashed with one of its own."""
    looks: dict[str, dict[str, Any]] = {"tied": {"linestyle": "-"}, "separate": {"linestyle": (0, (3, 1.5))}}
    return Strokes(column="softmax", looks=looks, named=[name for name in looks if name in set(frame["softmax"])])


def _at_start(frame: pd.DataFrame) -> pd.DataFrame:
    """How training goes on changes nothing at its start."""
    frame = curves.by_depth(frame)
    softmax = frame["tied"].map({True: "tied", False: "separate"})
    return frame.assign(condition="", outcome="", softmax=softmax)


LOSS_START = curves_of(
    name="loss_start",
    short="Loss at the start, by width",
    room="depth",
    caption="Not in the papers, whose widths are 512 and 1,024.",
    see=(
        "The probe batch's loss before any update; solid with the softmax tied to the embedding, dashed with a "
        "separate softmax drawn alike; median over seeds."
    ),
    read=always("The level line is the loss of the best constant predictor."),
    columns=("hidden", "tied", "loss", "unigram_loss"),
    value="loss",
    optional=True,
    rows=_starts,
    ordered=lambda frame: frame if frame["hidden"].nunique() > 1 else frame.head(0),  # nothing of one width
    arranged=_at_start,
    title=tying,
    alt=start_alt,
    none="The runs have one width.",
    what=lambda frame: Curves(
        x="hidden",
        y="loss",
        x_name="width d",
        y_label="loss at θ₀, nats",
        reference=lambda group: [(group["unigram_loss"].median(), "unigram loss")],
        across="factors",
        strokes=_ties,
        columns=2,
        height=3.2,
    ),
)
