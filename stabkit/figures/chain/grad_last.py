"""The gradient of the last layer, of the decoder or of an encoder alone, against depth: DeepNet Fig. 2(b).

‖∂L/∂θ_M‖₂ over all parameters of the top layer: at step 0, and as a mean over steps 100 to 250 of runs without
warm-up, where the paper's order of Post-LN and Post-LN-init shows (at the first updates it is the reverse).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from stabkit.figures.drawing import curves
from stabkit.figures.drawing.curves import Curves
from stabkit.figures.picture import Note, Picture, RunPicture
from stabkit.figures.shared.comparison import FACTS, output_layers, shown
from stabkit.figures.shared.numbers import centre
from stabkit.figures.shared.once import once
from stabkit.figures.shared.words import listed, short
from stabkit.storage.store import Run

COLUMNS = (*FACTS, "layers", "when", "grad_norm")
WINDOW = (100, 250)
"""The steps of early training: by then the runs without warm-up have parted."""
LATER = f"mean of steps {WINDOW[0]}–{WINDOW[1]}"


@once
def select(runs: Sequence[Run]) -> pd.DataFrame:
    """One row a run at step 0, and one for the window of a run without warm-up that reaches its end."""
    rows = []
    for each in shown(runs):
        table = each.run.records.get("grad_norm")
        top, layers = output_layers(each.run.spec)[-1], len(output_layers(each.run.spec))
        if table is None or top not in table.sites or not len(table.steps):
            continue
        if each.run.spec.model.encoder_layers not in (0, layers):
            continue  # unequal stacks of one decoder depth are not one curve
        norms = table.at(top)
        facts = {**each.facts(), "layers": layers}
        rows.append({**facts, "when": "step 0", "grad_norm": float(norms[0])})
        inside = (table.steps >= WINDOW[0]) & (table.steps <= WINDOW[1])
        if each.run.spec.train.warmup == 0 and table.steps[-1] >= WINDOW[1]:
            mean = float(norms[inside].mean()) if np.isfinite(norms[inside]).all() else math.nan
            rows.append({**facts, "when": LATER, "grad_norm": mean})
    return pd.DataFrame(rows, columns=list(COLUMNS)).sort_values("when", ascending=False, kind="stable")


def title(runs: Sequence[Run]) -> str:
    """Post-LN-init's over Post-LN's where both are there in the window, else at step 0."""
    frame = select(runs)
    for when in (LATER, "step 0"):
        here = frame[(frame["when"] == when) & frame["method"].isin(["post-ln", "post-ln-init"])]
        here = here[here["encoder_layers"] == here["decoder_layers"]]
        pairs = here.groupby(["layers", "condition", "seed", "method"])["grad_norm"].agg(centre).unstack()
        if {"post-ln", "post-ln-init"} <= set(pairs.columns) and len(pairs := pairs.dropna()):
            ratio = (pairs["post-ln-init"] / pairs["post-ln"]).groupby(["layers", "condition"], sort=False).agg(centre)
            depth, condition = ratio.index[-1]
            place = listed(f"{depth}L-{depth}L", condition)
            times = f"{short(float(ratio.iloc[-1]))} times Post-LN's"
            rest = [short(float(one)) for one in ratio.iloc[:-1]]
            others = f"; at shallower places {' and '.join(rest)} times" if rest else ""
            return f"The last layer's gradient under Post-LN-init is {times} ({place}, {when}{others})"
    return "The gradient of the last layer"


def alt(frame: pd.DataFrame) -> str:
    """What the picture shows, for those who do not see it."""
    if frame.empty:
        return "No run has recorded the gradients of its layers."
    parts = [f"{when}: {'; '.join(curves.ends(own, 'layers', 'grad_norm'))}" for when, own in frame.groupby("when")]
    return f"Gradient norm of the last layer against depth, logarithmic. {'. '.join(parts)}."


def draw(frame: pd.DataFrame) -> Figure:
    """A panel for step 0 and one for the window of steps."""
    ordered = frame.sort_values(["when", "layers"], ascending=[False, True], kind="stable")
    return curves.draw(
        ordered.assign(panel=ordered["when"]),
        Curves(
            x="layers",
            y="grad_norm",
            x_name="layers of the stack",
            y_label="‖∂L/∂θ‖ of the last layer",
            none="No run has recorded the gradients of its layers.",
            ticks=lambda group: sorted(group["layers"].unique()),
            columns=2,
            height=3.0,
        ),
    )


PICTURE: RunPicture = Picture(
    name="grad_last",
    short="Gradient of the last layer",
    room="chain",
    caption="DeepNet Fig. 2(b) (journal version).",
    see="The gradient that the top layer receives.",
    read=(
        Note(
            "If exploding gradients were the root of the trouble it would be the unstable method's that is large; the "
            "paper finds Post-LN-init's larger. Stacks of equal depth, or one stack."
        ),
    ),
    columns=COLUMNS,
    value="grad_norm",
    select=select,
    draw=draw,
    title=title,
    alt=alt,
)
