"""‖ΔF‖/η of one SGD step as η → 0, against depth: the linear regime that DeepNet's theorems speak of.

GOAL of DeepNet §3.3 asks for ‖ΔF‖ = Θ(η), whatever the depth. How such steps are made and trusted is in
`results/slope.py`. Dotted: what the theorem of each group of methods predicts, scaled to meet the shallowest depth.
"""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from stabkit.figures.depth import update_depth
from stabkit.figures.picture import Picture, RunPicture, always
from stabkit.results.slope import COLUMNS, frame, table
from stabkit.wording.slope import title
from stabkit.words import listed, short


def alt(frame: pd.DataFrame) -> str:
    parts = []
    for (label, condition), rows in table(frame).groupby(["label", "condition"], sort=False):
        values = (f"{depth} {short(slope)}" for depth, slope in zip(rows["depth"], rows["slope"], strict=True))
        parts.append(f"{listed(label, condition)}: {', '.join(values)}")
    return f"Chart of ‖ΔF‖/η of one SGD step against depth, both logarithmic. {'; '.join(parts)}."


def draw(frame: pd.DataFrame) -> Figure | None:
    """One panel a condition."""
    return update_depth.against_depth(frame, "‖ΔF‖ / η of one SGD step, output units", ceiling=False)


PICTURE: RunPicture = Picture(
    name="slope",
    short="Slope of one SGD step",
    room="depth",
    caption="DeepNet §3.3, GOAL, and Theorems 2, 3 and 4 (journal version): not drawn in the paper.",
    see="a horizontal line, one step moves the output equally far at every depth",
    here=lambda frame: update_depth.exponents(frame, ceiling=False),
    read=always(
        "Drawn: how far the output moves per unit of learning rate, before any training. A horizontal line is "
        "the papers' GOAL. The order of the methods is the finding; Post-LN's exponent "
        "changes with the seed, because its tokens collapse to one direction at initialisation. Where there are at "
        "most six methods, dotted: Theorem 3 (one stack: 2) from the measured ‖Δθ‖; of Sub-LN in one stack "
        "Theorem 4. Other methods have no theorem."
    ),
    columns=COLUMNS,
    value="update",
    select=frame,
    draw=draw,
    title=title,
    alt=alt,
    none="No run is a single step of SGD.",
    optional=True,
    at_start=True,
    single_steps=True,
)
