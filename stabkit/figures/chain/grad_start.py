"""The gradient of every layer of the output's stack before the first update: DeepNet Fig. 2(a).

‖∂L/∂θ_layer‖₂ over all parameters of the layer, at step 0, on the first training batch of each seed.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from stabkit.figures.chain import grad_norm
from stabkit.figures.drawing import curves
from stabkit.figures.picture import Note, Picture, RunPicture
from stabkit.figures.shared.comparison import FACTS, output_layers, output_stack, shown
from stabkit.figures.shared.once import once
from stabkit.storage.store import Run

COLUMNS = (*FACTS, "layer", "grad_norm")


@once
def select(runs: Sequence[Run]) -> pd.DataFrame:
    """One row a run and layer of its output's stack."""
    rows = []
    for each in shown(runs):
        table = each.run.records.get("grad_norm")
        sites = output_layers(each.run.spec)
        if table is None or not set(sites) <= set(table.sites) or not len(table.steps):
            continue
        facts = each.facts()
        for layer, norm in enumerate(table.select(sites)[0].tolist(), 1):
            rows.append({**facts, "layer": layer, "grad_norm": norm})
    return curves.by_depth(pd.DataFrame(rows, columns=list(COLUMNS)))


def title(runs: Sequence[Run]) -> str:
    """How little arrives at the lowest layer, before training has begun."""
    frame = select(runs)
    share = grad_norm.ratios(frame) if len(frame) else frame
    share = share[(share["layers"] > 1) & (share["ratio"] <= 0.1)] if len(share) else share
    if share.empty:
        return f"The gradient of each {output_stack(frame['decoder_layers'])} layer before the first update"
    least = share.sort_values("ratio", kind="stable").iloc[0]
    return f"Before any update: {grad_norm.receives(least)}"


def alt(frame: pd.DataFrame) -> str:
    """What the picture shows, for those who do not see it."""
    if frame.empty:
        return grad_norm.NONE
    where = f"by {output_stack(frame['decoder_layers'])} layer"
    return f"Gradient norm {where} at step 0, logarithmic. Lowest over top layer: {grad_norm.listing(frame)}."


def draw(frame: pd.DataFrame) -> Figure:
    """A panel a depth."""
    finite = frame.assign(grad_norm=frame["grad_norm"].where(np.isfinite(frame["grad_norm"].astype(float))))
    return curves.draw(finite, grad_norm.what(frame))


PICTURE: RunPicture = Picture(
    name="grad_start",
    short="Gradient before training",
    room="chain",
    caption="DeepNet Fig. 2(a) (journal version), all decoder layers.",
    see=(
        "Before any update nothing has exploded yet: what falls to the left here is lost by the wiring and the "
        "initialisation alone."
    ),
    read=(Note("One training batch a seed; several seeds: median in a band.", ("band",)),),
    columns=COLUMNS,
    index="layer",
    value="grad_norm",
    select=select,
    draw=draw,
    title=title,
    alt=alt,
    at_start=True,
)
