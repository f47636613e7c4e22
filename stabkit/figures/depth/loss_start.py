"""The loss at θ₀ against the width, with the softmax tied to the embedding and with one of its own.

A method whose shortcut is large hands its input on almost unchanged. With tied embeddings the softmax then finds in the
output state the token that came in, at a logit of about √d, before anything was learned; with a softmax of its own it
finds nothing there. The loss at θ₀ shows how much of that there is.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from stabkit.figures.drawing import lettering, style
from stabkit.figures.drawing.line_ends import End, label_ends
from stabkit.figures.picture import Note, Picture, RunPicture
from stabkit.results.conditions import FACTS, shown
from stabkit.results.once import once
from stabkit.results.readings import centre
from stabkit.results.run import Run
from stabkit.words import short

TICKS = (5, 6, 8, 10, 12, 15, 20, 30, 50, 100)
COLUMNS = (*FACTS, "hidden", "tied", "loss", "unigram_loss")


@once
def select(runs: Sequence[Run]) -> pd.DataFrame:
    """One row a run; nothing where all have one width."""
    rows = [
        {
            **placed.facts(),
            "hidden": placed.run.spec.model.hidden,
            "tied": placed.run.spec.model.tied,
            "loss": float(placed.run.records["loss"].at("probe")[0]),
            "unigram_loss": placed.run.outcome.unigram_loss,
        }
        for placed in shown(runs)
        if "loss" in placed.run.records and placed.run.spec.alpha_scale == 1 == placed.run.spec.beta_scale
    ]
    frame = pd.DataFrame(rows, columns=list(COLUMNS))
    return frame if frame["hidden"].nunique() > 1 else frame.head(0)


def _middles(frame: pd.DataFrame) -> pd.DataFrame:
    """The median over seeds (and over runs that differ in what comes after θ₀)."""
    keys = ["depth", "label", "method", "tied", "hidden"]
    return frame.groupby(keys, sort=False)["loss"].agg(centre).reset_index()


def title(runs: Sequence[Run]) -> str:
    """What tying adds to the start of the method for which it adds most, at the greatest width."""
    frame = select(runs)
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


def alt(frame: pd.DataFrame) -> str:
    parts = []
    for (depth, label, tied), rows in _middles(frame).groupby(["depth", "label", "tied"], sort=False):
        values = ", ".join(f"{row['hidden']}: {short(row['loss'])}" for row in rows.to_dict("records"))
        parts.append(f"{label} {depth} {'tied' if tied else 'untied'}, {values}")
    return f"Chart of the loss before any update against the width. {'; '.join(parts)}."


def draw(frame: pd.DataFrame) -> Figure:
    """A panel a depth."""
    groups, more = style.kept(list(_middles(frame).groupby("depth", sort=False)))
    figure, panels = style.panels(len(groups), 2, 3.2, right=1.3, more=more)
    widths = sorted(frame["hidden"].unique())
    unigram = float(frame["unigram_loss"].median())
    low, high = 0.85 * np.nanmin([frame["loss"].min(), unigram]), 1.15 * float(frame["loss"].max())
    for axes, (depth, group) in zip(panels, groups, strict=True):
        axes.set_title(str(depth))
        style.log_axis(axes, "x", widths[0] / 1.2, widths[-1] * 1.2, ticks=widths)
        style.log_axis(axes, "y", low, high, ticks=[tick for tick in TICKS if low < tick < high])
        style.reference(axes, unigram, "unigram loss")
        ends = [_line(axes, str(label), rows) for label, rows in group.groupby("label", sort=False)]
        label_ends(axes, ends, 0.07)
        axes.set_xlabel("width d")
        axes.set_ylabel("loss at θ₀, nats")
    return figure


def _line(axes: Axes, label: str, group: pd.DataFrame) -> End:
    method = str(group["method"].iloc[0])
    hue, name = style.colour(method), lettering.safe(label, 40)
    end = 0.0
    for tied, rows in group.groupby("tied"):
        by = rows.sort_values("hidden")
        dash = "-" if tied else (0, (3, 1.5))
        (line,) = axes.plot(by["hidden"], by["loss"], linestyle=dash, **style.dotted(method))
        style.mark(line, method, f"{name}, {'tied' if tied else 'untied'}", x="width d")
        end = float(by["loss"].iloc[-1])
    return end, name, hue, method


PICTURE: RunPicture = Picture(
    name="loss_start",
    short="Loss at the start, by width",
    room="depth",
    caption="Not in the papers, whose widths are 512 and 1,024.",
    see=(
        "The probe batch's loss before any update; solid with the softmax tied to the embedding, dashed with a "
        "separate softmax drawn alike; median over seeds."
    ),
    read=(Note("The level line is the loss of the best constant predictor."),),
    columns=COLUMNS,
    value="loss",
    select=select,
    draw=draw,
    title=title,
    alt=alt,
    none="The runs have one width.",
    optional=True,
)
