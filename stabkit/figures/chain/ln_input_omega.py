"""The inputs of the layer norms over ω√d, their size when a branch adds nothing: DeepNet Fig. 3(b), 3(c) made fair.

A method that weighs its shortcut with ω has inputs of about ω√d by construction; without this division DeepNorm and
ADMIN would look exploded. 1: the branch adds nothing; √2: branch and shortcut are equally long and uncorrelated.
Only methods with the norm after the sum: in the others the shortcut is a stream that has grown since the input.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import pandas as pd
from matplotlib.figure import Figure

from stabkit.figures.chain import ln_input
from stabkit.figures.drawing import curves
from stabkit.figures.picture import Note, Picture, RunPicture
from stabkit.figures.shared.comparison import FACTS, norm_after_sum
from stabkit.figures.shared.once import once
from stabkit.figures.shared.words import listed, short
from stabkit.storage.store import Run

COLUMNS = (*FACTS, "width", "origin", "step", "relative", "encoder", "decoder")


@once
def select(runs: Sequence[Run]) -> pd.DataFrame:
    """One row a run, origin and recorded step: the mean over both stacks, and over each."""
    with_norm = [run for run in runs if norm_after_sum(run.spec)]
    return ln_input.readings(with_norm, "@omega").rename(columns={"value": "relative"})


def title(runs: Sequence[Run]) -> str:
    """The greatest and the least at the end of the runs, at the deepest depth."""
    frame = curves.by_depth(select(runs))
    if frame.empty:
        return "The inputs of the layer norms, over what the shortcut gives"
    deepest = frame[frame["depth"] == frame["depth"].iloc[-1]]
    deepest = deepest[deepest["condition"] == deepest["condition"].iloc[0]]  # one condition: a fair comparison
    last = deepest.loc[deepest.groupby("run")["step"].transform("max") == deepest["step"]]
    by = last.groupby(["label", "condition"], sort=False)["relative"].median().dropna()
    if len(by) < 2:
        return "The inputs of the layer norms, over what the shortcut gives"
    (high, high_where), (low, low_where) = by.idxmax(), by.idxmin()
    return (
        f"At {deepest['depth'].iloc[0]} the branches of {listed(high, high_where)} lengthen what enters a norm "
        f"{short(float(by.max()))}-fold, those of {listed(low, low_where)} {short(float(by.min()))}-fold"
    )


def alt(frame: pd.DataFrame) -> str:
    """What the picture shows, for those who do not see it."""
    if frame.empty:
        return "No run has recorded the inputs of its norms."
    ends = "; ".join(curves.ends(frame, "step", "relative"))
    return f"Line charts of LN inputs over ω√d against the step, one panel a depth. At the end: {ends}."


def draw(frame: pd.DataFrame) -> Figure:
    """Two rows of panels, as in `ln_input`."""
    return ln_input.panels(
        frame,
        "relative",
        "‖LN input‖ / ω√d",
        lambda group: [(math.sqrt(2), "√2: branch as long as shortcut")],
        log_y=False,
    )


PICTURE: RunPicture = Picture(
    name="ln_input_omega",
    short="LN input over ω√d",
    room="chain",
    caption="DeepNet Fig. 3(b) and 3(c) (journal version), each sub-layer's input divided by ω√d.",
    see="The same inputs, each over what its own shortcut gives.",
    read=(Note("The gradient through a norm shrinks as its input grows."),),
    columns=COLUMNS,
    value="relative",
    select=select,
    draw=draw,
    title=title,
    alt=alt,
)
